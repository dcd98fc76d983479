//! A wish to stop, that any thread can voice and that waits nowhere.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// A switch that is set once. Its clones are the same switch.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    set: Mutex<bool>,
    sleepers: Condvar,
    streams: Notify,
}

impl Cancel {
    /// A switch that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it. Whoever waits on it goes on at once.
    pub fn set(&self) {
        *self.0.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.sleepers.notify_all();
        self.0.streams.notify_waiters();
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        *self.0.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps, but no longer than until it is set. Tells whether it is.
    pub fn sleep(&self, longest: Duration) -> bool {
        let set = self.0.set.lock().unwrap_or_else(PoisonError::into_inner);
        let slept = self.0.sleepers.wait_timeout_while(set, longest, |set| !*set);
        *slept.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Done as soon as it is set.
    pub(crate) async fn happened(&self) {
        let noticed = self.0.streams.notified();
        tokio::pin!(noticed);
        // To be on the list before looking: else a switch set in between would be missed.
        noticed.as_mut().enable();
        if !self.is_set() {
            noticed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_sleeper_wakes_when_it_is_set() {
        let cancel = Cancel::new();
        assert!(!cancel.sleep(Duration::from_millis(1)));
        let other = cancel.clone();
        let setter = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            other.set();
        });
        let began = Instant::now();
        assert!(cancel.sleep(Duration::from_mins(1)));
        assert!(began.elapsed() < Duration::from_secs(10));
        setter.join().expect("the thread only sets it");
        assert!(cancel.is_set());
    }
}
