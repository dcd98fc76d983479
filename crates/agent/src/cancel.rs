//! Cancellation of long work.
//!
//! ```text
//!   Ctrl-C, a client, a driver ──► set ──────┬─► is_set         between two steps
//!   SIGTERM, the end of a server ─► shut_down┴─► wait_timeout   instead of sleeping in a thread
//!                                            └─► wait           instead of sleeping in a task
//! ```
//!
//! A flag stays set, so that late work sees it too. Each turn has its own. The first of the two reasons counts: a turn that
//! the user stopped does not become one that waits to be resumed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A cancellation flag, shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    set: AtomicBool,
    shutting_down: AtomicBool,
    lock: Mutex<()>,
    threads: Condvar,
    tasks: Notify,
}

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it and wakes all waiters.
    pub fn set(&self) {
        self.set_because(false);
    }

    /// Sets it because the process has to exit: a turn can be resumed later.
    pub fn shut_down(&self) {
        self.set_because(true);
    }

    /// Whether it was set because the process has to exit.
    pub fn is_shutting_down(&self) -> bool {
        self.0.shutting_down.load(Ordering::SeqCst)
    }

    fn set_because(&self, shutting_down: bool) {
        // Under the lock, so that no thread checks the flag before this and sleeps after it.
        let guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_set() {
            self.0.shutting_down.store(shutting_down, Ordering::SeqCst);
        }
        self.0.set.store(true, Ordering::SeqCst);
        drop(guard);
        self.0.threads.notify_all();
        self.0.tasks.notify_waiters();
    }

    /// Sets it when the guard is dropped.
    pub(crate) fn set_on_drop(&self) -> SetOnDrop<'_> {
        SetOnDrop(self)
    }

    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// Blocks until it is set or the time is over; returns whether it is set.
    pub fn wait_timeout(&self, longest: Duration) -> bool {
        let end = Instant::now() + longest;
        let mut guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_set() {
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            guard = self.0.threads.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits in a task until it is set.
    pub async fn wait(&self) {
        // Register first, so that no notification is lost before the check.
        let notified = self.0.tasks.notified();
        if !self.is_set() {
            notified.await;
        }
    }
}

/// Sets a flag when dropped.
pub(crate) struct SetOnDrop<'a>(&'a Cancel);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
    }

    #[test]
    fn the_first_reason_counts() {
        let (stopped, exiting) = (Cancel::new(), Cancel::new());
        stopped.set();
        stopped.shut_down();
        exiting.shut_down();
        exiting.set();
        assert!(stopped.is_set() && !stopped.is_shutting_down());
        assert!(exiting.is_set() && exiting.is_shutting_down());
    }

    #[test]
    fn waiters_wake_and_late_callers_do_not_wait() {
        let cancel = Cancel::new();
        assert!(!cancel.is_set());
        assert!(!cancel.wait_timeout(Duration::from_millis(5)));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| cancel.wait_timeout(Duration::from_mins(1)));
            let task = scope.spawn(|| {
                runtime().block_on(async {
                    tokio::time::timeout(Duration::from_mins(1), cancel.wait()).await.is_ok()
                })
            });
            std::thread::sleep(Duration::from_millis(20));
            cancel.clone().set();
            assert!(thread.join().expect("no panic"));
            assert!(task.join().expect("no panic"));
        });
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert!(cancel.is_set() && cancel.wait_timeout(Duration::ZERO));
        runtime().block_on(cancel.wait());
    }
}
