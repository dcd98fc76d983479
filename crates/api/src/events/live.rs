//! Live events of running turns and watched folders, for the streams that are open now.
//!
//! Each stream has a queue of its own, limited in number and in bytes. A stream that reads slowly loses the oldest
//! of its events, which the numbers of events show, and costs the others nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use retake_model::id::ThreadId;
use tokio::sync::Notify;

/// Maximum live events queued for one stream.
const MAX_PENDING_EVENTS: usize = 1024;
/// Maximum bytes queued for one stream, unless a single event is larger.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// A live event, encoded.
pub(crate) struct LiveEvent {
    /// The thread; `None` if every stream gets it.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) text: String,
}

/// Delivers live events to all listeners.
#[derive(Default)]
pub(super) struct LiveEvents(Mutex<Vec<Weak<Queue>>>);

/// Receives live events until dropped.
pub(super) struct Listener(Arc<Queue>);

#[derive(Default)]
struct Queue {
    waiting: Mutex<PendingEvents>,
    arrived: Notify,
}

#[derive(Default)]
struct PendingEvents {
    events: VecDeque<Arc<LiveEvent>>,
    bytes: usize,
}

impl LiveEvents {
    /// Adds a listener.
    pub(super) fn listen(&self) -> Listener {
        let queue = Arc::default();
        self.lock().push(Arc::downgrade(&queue));
        Listener(queue)
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.lock().iter().any(|queue| queue.strong_count() > 0)
    }

    /// Delivers an event. Never waits.
    pub(super) fn send(&self, live: LiveEvent) {
        let live = Arc::new(live);
        self.lock().retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            queue.lock().push(Arc::clone(&live));
            queue.arrived.notify_one();
            true
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Waits for the next event.
    pub(super) async fn next(&self) -> Arc<LiveEvent> {
        loop {
            if let Some(live) = self.0.lock().pop() {
                return live;
            }
            // An event that arrived just now has left a permit, which this consumes.
            self.0.arrived.notified().await;
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, PendingEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingEvents {
    fn push(&mut self, live: Arc<LiveEvent>) {
        self.bytes += live.text.len();
        self.events.push_back(live);
        while self.events.len() > MAX_PENDING_EVENTS
            || (self.bytes > MAX_PENDING_BYTES && self.events.len() > 1)
        {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Arc<LiveEvent>> {
        let live = self.events.pop_front()?;
        self.bytes -= live.text.len();
        Some(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(number: usize, bytes: usize) -> LiveEvent {
        let number = number.to_string();
        let text = "0".repeat(bytes.saturating_sub(number.len())) + &number;
        LiveEvent { thread: Some(ThreadId::from_key([1; 16])), text }
    }

    #[test]
    fn a_slow_stream_keeps_the_newest_events_that_fit() {
        let check = |count: usize, bytes: usize, kept: usize| {
            let events = LiveEvents::default();
            assert!(!events.has_listeners());
            let (slow, quick) = (events.listen(), events.listen());
            for number in 0..count {
                events.send(live(number, bytes));
                assert!(quick.0.lock().pop().is_some(), "a fast reader misses nothing");
            }
            let waiting = slow.0.lock();
            assert_eq!(waiting.events.len(), kept);
            assert_eq!(waiting.bytes, kept * bytes);
            assert_eq!(
                waiting.events.back().map(|live| live.text.clone()),
                Some(live(count - 1, bytes).text)
            );
            drop(waiting);
            drop((slow, quick));
            events.send(live(0, 1));
            assert!(!events.has_listeners());
        };
        check(10, 100, 10);
        check(MAX_PENDING_EVENTS + 10, 100, MAX_PENDING_EVENTS);
        check(100, MAX_PENDING_BYTES / 10, 10);
        check(3, MAX_PENDING_BYTES * 2, 1);
    }
}
