//! Events of all threads, whichever process changes them.
//!
//! ```text
//!   the log ──► one thread polls it ──► recent events, encoded once ──┐
//!   (any process)                                                     ├─► stream, stream, stream
//!   turns of this server ──► live events ─────────────────────────────┘
//!                                    a stream that is behind reads the log itself
//! ```
//!
//! The id of a log event is its position in the log, so that a client resumes from the last id without gaps or
//! repetitions. Live events have no id: their text becomes an entry in the log soon after.

mod live;
mod stream;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use retake_agent::TurnEvent;
use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::turn::PartialAnswer;
use retake_timeline::store::{Ledger, LedgerStamp, ThreadFilter};
use retake_timeline::{Happened, Tail, Timeline};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use live::{Live, LiveEvents};
pub(crate) use stream::{Following, open};

use crate::problem::{Code, Problem};
use crate::service::Service;

/// Poll interval of the log.
const MOMENT: Duration = Duration::from_millis(20);
/// Poll interval of turns of other processes.
const WHILE: Duration = Duration::from_millis(100);
/// Maximum recent events in memory.
const RECENT: usize = 2048;
/// Events per read.
const PAGE: usize = 256;
/// Maximum bytes per chunk, unless a single event is larger.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum bytes of recent events in memory.
const RECENT_BYTES: usize = 16 << 20;

/// Distributes events to streams.
pub(crate) struct Hub {
    recent: Mutex<Recent>,
    newest: watch::Sender<i64>,
    token: watch::Sender<Option<[u8; 32]>>,
    live: LiveEvents,
}

/// An encoded event.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) sequence: i64,
    /// The thread; `None` if it was purged, which all streams receive.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) text: Arc<str>,
}

/// The newest events.
struct Recent {
    /// All events after this position are in memory.
    after: i64,
    events: VecDeque<Event>,
    bytes: usize,
}

/// A `turn` event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TurnNews<'a> {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// The take.
    pub(crate) take: TakeId,
    /// The turn.
    pub(crate) turn: TurnId,
    /// Number of the event in its turn; a gap means that events were dropped.
    pub(crate) number: u64,
    #[serde(flatten)]
    pub(crate) event: &'a TurnEvent,
}

/// The partial answer of a turn in another process.
#[derive(Serialize)]
struct PartialNews<'a> {
    thread: ThreadId,
    take: TakeId,
    turn: TurnId,
    event: &'static str,
    entry: retake_model::id::EntryId,
    blocks: &'a [retake_model::entry::Block],
}

impl Hub {
    pub(crate) fn new(timeline: &Timeline) -> Result<Self, Problem> {
        let newest = timeline.look()?.queries().last_sequence()?;
        Ok(Self {
            recent: Mutex::new(Recent::none(newest)),
            newest: watch::Sender::new(newest),
            token: watch::Sender::new(None),
            live: LiveEvents::default(),
        })
    }

    /// Publishes an event of a turn.
    pub(crate) fn tell(&self, news: &TurnNews<'_>) {
        self.send_live(news.thread, news);
    }

    fn send_live(&self, thread: ThreadId, news: &impl Serialize) {
        if !self.live.has_listeners() {
            return;
        }
        let Ok(data) = serde_json::to_string(news) else { return };
        self.live.send(Live { thread, text: format!("event: turn\ndata: {data}\n\n") });
    }

    /// Position of the newest event.
    pub(crate) fn newest(&self) -> i64 {
        *self.newest.borrow()
    }

    /// The events after a position, if they are in memory; `None` if the log must be read.
    fn at_hand(&self, after: i64) -> Option<Vec<Event>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if after < recent.after {
            return None;
        }
        let from = recent.events.partition_point(|event| event.sequence <= after);
        Some(one_piece(recent.events.range(from..).take(PAGE).cloned()))
    }

    fn add(&self, events: Vec<Event>) {
        let Some(last) = events.last().map(|event| event.sequence) else { return };
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).add(events, last);
        self.newest.send_replace(last);
    }
}

impl Recent {
    /// No events: earlier ones are read from the log.
    fn none(after: i64) -> Self {
        Self { after, events: VecDeque::new(), bytes: 0 }
    }

    fn add(&mut self, events: Vec<Event>, last: i64) {
        // Events in memory may contain purged content, which the log no longer has.
        if events.iter().any(|event| event.thread.is_none()) {
            *self = Self::none(last);
            return;
        }
        self.bytes += events.iter().map(|event| event.text.len()).sum::<usize>();
        self.events.extend(events);
        while self.events.len() > RECENT || self.bytes > RECENT_BYTES {
            let Some(gone) = self.events.pop_front() else { break };
            self.after = gone.sequence;
            self.bytes -= gone.text.len();
        }
    }
}

impl Event {
    fn of(happened: &Happened) -> Self {
        let data = serde_json::to_string(happened).unwrap_or_default();
        let (sequence, thread) = (happened.sequence, happened.change.as_ref().map(|change| change.thread));
        let kind = if thread.is_some() { "operation" } else { "purged" };
        Self { sequence, thread, text: format!("id: {sequence}\nevent: {kind}\ndata: {data}\n\n").into() }
    }
}

/// The first events that fit into a chunk.
fn one_piece(events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut bytes = 0;
    events
        .take_while(|event| {
            let first = bytes == 0;
            bytes += event.text.len();
            first || bytes <= PIECE_BYTES
        })
        .collect()
}

/// Starts a thread that follows the log until shutdown.
pub(crate) fn follow(service: &Arc<Service>) -> std::io::Result<JoinHandle<()>> {
    let service = Arc::clone(service);
    std::thread::Builder::new().name("retake-follow".to_owned()).spawn(move || {
        let mut follower = None;
        while !service.stop.wait_timeout(MOMENT) {
            let looked = carefully(|| match &mut follower {
                None => Follower::new(&service).map(|new| follower = Some(new)),
                Some(follower) => follower.look(&service),
            });
            if let Err(problem) = looked {
                tracing::warn!(detail = problem.detail, "failed to follow the log");
                follower = None;
                service.stop.wait_timeout(WHILE);
            }
        }
    })
}

/// Polls once and catches panics, so that a bug in one poll does not stop all events.
fn carefully(look: impl FnOnce() -> Result<(), Problem>) -> Result<(), Problem> {
    let mistake = |_| Err(Problem::new(Code::Internal, "the server failed"));
    catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(mistake)
}

/// Follows changes of all processes.
struct Follower {
    tail: Tail,
    /// A separate connection, so that writers do not block it.
    ledger: Ledger,
    stamp: Option<LedgerStamp>,
    partials: Vec<(TakeId, PartialAnswer)>,
    looked: Option<Instant>,
}

impl Follower {
    fn new(service: &Service) -> Result<Self, Problem> {
        let (tail, ledger) = (service.timeline.tail()?, service.timeline.store().ledger()?);
        Ok(Self { tail, ledger, stamp: None, partials: Vec::new(), looked: None })
    }

    fn look(&mut self, service: &Service) -> Result<(), Problem> {
        let hub = &service.hub;
        let mut news = false;
        while self.tail.last()? > hub.newest() {
            let found = self.tail.since(hub.newest(), PAGE)?;
            if found.is_empty() {
                break;
            }
            // After reading the log and before publishing: streams opened with an old token must not receive events from
            // after its rotation.
            look_at_token(service);
            hub.add(found.iter().map(Event::of).collect());
            news = true;
        }
        if news {
            service.metrics.sequence.set(hub.newest());
        }
        look_at_token(service);
        if self.looked.is_none_or(|looked| looked.elapsed() >= WHILE) {
            self.looked = Some(Instant::now());
            // Keeps the list of threads warm for the next request.
            service.timeline.threads_page(&ThreadFilter::default(), None, 1)?;
            self.look_at_others(service)?;
        }
        Ok(())
    }

    /// Publishes partial answers of turns in other processes.
    fn look_at_others(&mut self, service: &Service) -> Result<(), Problem> {
        if !service.hub.live.has_listeners() {
            return Ok(());
        }
        let stamp = Some(self.ledger.stamp()?);
        if stamp == self.stamp {
            return Ok(());
        }
        self.stamp = stamp;
        let mut partials = Vec::new();
        for running in self.ledger.turns()? {
            let Some(partial) = running.partial.filter(|_| !service.turns.has(running.turn)) else {
                continue;
            };
            let known = self.partials.iter().any(|(take, known)| *take == running.take && *known == partial);
            if !known {
                let (thread, take, turn) = (running.thread, running.take, running.turn);
                let (entry, blocks) = (partial.entry, partial.blocks.as_slice());
                let news = PartialNews { thread, take, turn, event: "partial", entry, blocks };
                service.hub.send_live(thread, &news);
            }
            partials.push((running.take, partial));
        }
        self.partials = partials;
        Ok(())
    }
}

/// Publishes the current token to streams if it changed.
fn look_at_token(service: &Service) {
    let current = service.gate.current();
    service.hub.token.send_if_modified(|token| {
        let other = *token != current;
        *token = current;
        other
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: i64, bytes: usize) -> Event {
        let thread = Some(ThreadId::from_key([1; 16]));
        Event { sequence, thread, text: "x".repeat(bytes).into() }
    }

    #[test]
    fn a_chunk_has_at_least_one_event_and_at_most_what_fits() {
        let check = |sizes: &[usize], expected: usize| {
            let events = sizes.iter().map(|bytes| event(0, *bytes));
            assert_eq!(one_piece(events).len(), expected, "{sizes:?}");
        };
        check(&[], 0);
        check(&[1, 1, 1], 3);
        check(&[PIECE_BYTES * 2, 1], 1);
        check(&[1, PIECE_BYTES * 2, 1], 1);
        check(&[PIECE_BYTES / 2, PIECE_BYTES / 2, 1], 2);
    }

    #[test]
    fn recent_events_are_bounded_and_contiguous() {
        let check = |count: i64, bytes: usize| {
            let mut recent = Recent::none(0);
            (1..=count).for_each(|sequence| recent.add(vec![event(sequence, bytes)], sequence));
            assert!(recent.events.len() <= RECENT && recent.bytes <= RECENT_BYTES);
            assert_eq!(recent.bytes, recent.events.len() * bytes);
            let kept: Vec<i64> = recent.events.iter().map(|event| event.sequence).collect();
            assert_eq!(kept, (recent.after + 1..=count).collect::<Vec<_>>());
        };
        check(10, 100);
        check(RECENT as i64 + 10, 100);
        check(40, RECENT_BYTES / 10);
        check(3, RECENT_BYTES * 2);
    }

    #[test]
    fn a_poll_that_panics_returns_an_error() {
        assert!(carefully(|| Ok(())).is_ok());
        let failed = |look: fn() -> Result<(), Problem>| carefully(look).expect_err("it failed").code;
        assert_eq!(failed(|| Err(Problem::new(Code::Storage, "the disk"))), Code::Storage);
        assert_eq!(failed(|| panic!("an intended panic")), Code::Internal);
    }

    #[test]
    fn a_purge_drops_earlier_events() {
        let mut recent = Recent::none(0);
        recent.add(vec![event(1, 10), event(2, 10)], 2);
        recent.add(vec![event(3, 10), Event { thread: None, ..event(4, 10) }, event(5, 10)], 5);
        assert_eq!((recent.after, recent.events.len(), recent.bytes), (5, 0, 0));
        recent.add(vec![event(6, 10)], 6);
        assert_eq!((recent.after, recent.events.len(), recent.bytes), (5, 1, 10));
    }
}
