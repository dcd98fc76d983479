//! Kernel events about folders. There is no thread: events wait in a queue.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use inotify::Events;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use none::Events;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The folder or something in it changed.
    Changed,
    /// The folder was moved or removed.
    Moved,
    /// The watch was removed.
    Ended,
}

/// Whether all events were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainOutcome {
    All,
    /// Some were lost, or there are so many that a full walk is cheaper.
    TooMany,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod inotify {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{DrainOutcome, Event};
    use crate::watch::Limits;

    /// An event queue with its watches.
    pub(crate) struct Events {
        queue: OwnedFd,
        limits: Limits,
        watches: AtomicUsize,
        failed: AtomicBool,
    }

    impl Events {
        /// Creates a queue without watches; `None` if the system provides none.
        pub(in crate::watch) fn begin(limits: Limits) -> Option<Self> {
            let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            Some(Self { queue, limits, watches: AtomicUsize::new(0), failed: AtomicBool::new(false) })
        }

        /// Sets a watch on a folder, or returns the existing one.
        pub(crate) fn watch(&self, folder: BorrowedFd<'_>) -> Option<i32> {
            if self.has_failed() {
                return None;
            }
            let flags = WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                // A write through a mapping causes no other event.
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            // By descriptor, since another folder may have taken the path.
            let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
            let watch = inotify::add_watch(&self.queue, path, flags);
            let count = self.watches.fetch_add(1, Ordering::Relaxed);
            if watch.is_err() || count >= self.limits.watches {
                self.failed.store(true, Ordering::Relaxed);
            }
            watch.ok()
        }

        /// Returns whether setting a watch failed, which makes the events incomplete.
        pub(in crate::watch) fn has_failed(&self) -> bool {
            self.failed.load(Ordering::Relaxed)
        }

        /// Resets the number of watches, since a full walk sets them again.
        pub(in crate::watch) fn count(&self, watches: usize) {
            self.watches.store(watches, Ordering::Relaxed);
        }

        /// Removes a watch.
        pub(in crate::watch) fn forget(&self, watch: i32) {
            // The watch of a removed folder has ended already.
            let _ = inotify::remove_watch(&self.queue, watch);
        }

        /// Reads all events from the queue.
        pub(in crate::watch) fn drain(&self, mut visit: impl FnMut(i32, Event)) -> DrainOutcome {
            let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
            let mut reader = Reader::new(&self.queue, &mut buffer);
            for _ in 0..self.limits.events {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return DrainOutcome::All,
                    Err(Errno::INTR) => continue,
                    Err(_) => return DrainOutcome::TooMany,
                };
                let flags = event.events();
                if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                    return DrainOutcome::TooMany;
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
            DrainOutcome::TooMany
        }
    }
}

/// Systems without such a queue: no events, so every snapshot walks everything.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod none {
    use std::os::fd::BorrowedFd;

    use super::{DrainOutcome, Event};
    use crate::watch::Limits;

    /// No events.
    pub(crate) struct Events;

    // The same interface as with events.
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

        pub(in crate::watch) fn drain(&self, _: impl FnMut(i32, Event)) -> DrainOutcome {
            DrainOutcome::TooMany
        }
    }
}
