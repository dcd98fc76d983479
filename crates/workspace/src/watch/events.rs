//! Events of the kernel about folders, without a thread: they wait in a queue until someone asks.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use inotify::Events;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use none::Events;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Something in the folder, or the folder itself, changed.
    Changed,
    /// The folder was moved, or it is gone.
    Moved,
    /// The watch is no more.
    Ended,
}

/// Whether all events were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    All,
    /// Some were lost, or there are so many that it is cheaper to look at everything.
    TooMany,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod inotify {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{Drained, Event};
    use crate::watch::Limits;

    /// A queue of events, and the watches that feed it.
    pub(crate) struct Events {
        queue: OwnedFd,
        limits: Limits,
        watches: AtomicUsize,
        failed: AtomicBool,
    }

    impl Events {
        /// A queue without watches; nothing if the system gives none.
        pub(in crate::watch) fn begin(limits: Limits) -> Option<Self> {
            let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            Some(Self { queue, limits, watches: AtomicUsize::new(0), failed: AtomicBool::new(false) })
        }

        /// Sets a watch on a folder, or finds the one that it has.
        pub(crate) fn watch(&self, folder: BorrowedFd<'_>) -> Option<i32> {
            if self.has_failed() {
                return None;
            }
            let flags = WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                // A program that writes through a mapping makes no other event.
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            // By the descriptor: what stands at a path may be another folder by now.
            let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
            let watch = inotify::add_watch(&self.queue, path, flags);
            let count = self.watches.fetch_add(1, Ordering::Relaxed);
            if watch.is_err() || count >= self.limits.watches {
                self.failed.store(true, Ordering::Relaxed);
            }
            watch.ok()
        }

        /// Whether a watch could not be set: then events say nothing.
        pub(in crate::watch) fn has_failed(&self) -> bool {
            self.failed.load(Ordering::Relaxed)
        }

        /// Counts the watches anew: a folder that is walked again is asked for again.
        pub(in crate::watch) fn count(&self, watches: usize) {
            self.watches.store(watches, Ordering::Relaxed);
        }

        /// Ends a watch.
        pub(in crate::watch) fn forget(&self, watch: i32) {
            // One whose folder was removed has ended by itself.
            let _ = inotify::remove_watch(&self.queue, watch);
        }

        /// Takes all events from the queue.
        pub(in crate::watch) fn drain(&self, mut visit: impl FnMut(i32, Event)) -> Drained {
            let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
            let mut reader = Reader::new(&self.queue, &mut buffer);
            for _ in 0..self.limits.events {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return Drained::All,
                    Err(Errno::INTR) => continue,
                    Err(_) => return Drained::TooMany,
                };
                let flags = event.events();
                if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                    return Drained::TooMany;
                }
                let moved = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
                let what = if flags.contains(ReadFlags::IGNORED) {
                    Event::Ended
                } else if flags.intersects(moved) {
                    Event::Moved
                } else {
                    Event::Changed
                };
                visit(event.wd(), what);
            }
            Drained::TooMany
        }
    }
}

/// Systems without such a queue: nobody is ever told anything, so everything is looked at.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod none {
    use std::os::fd::BorrowedFd;

    use super::{Drained, Event};
    use crate::watch::Limits;

    /// No events.
    pub(crate) struct Events;

    // The same form as where there are some.
    #[allow(clippy::unused_self)]
    impl Events {
        pub(in crate::watch) fn begin(_: Limits) -> Option<Self> {
            None
        }

        pub(crate) fn watch(&self, _: BorrowedFd<'_>) -> Option<i32> {
            None
        }

        pub(in crate::watch) fn has_failed(&self) -> bool {
            true
        }

        pub(in crate::watch) fn count(&self, _: usize) {}

        pub(in crate::watch) fn forget(&self, _: i32) {}

        pub(in crate::watch) fn drain(&self, _: impl FnMut(i32, Event)) -> Drained {
            Drained::TooMany
        }
    }
}
