//! Events of all threads, whichever process changes them.
//!
//! ```text
//!   the log ──► one thread polls it ──► recent events, encoded once ──┐
//!   (any process)                                                     ├─► stream, stream, stream
//!   turns of this server, watched folders ──► live events ────────────┘
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

use retake_agent::{Cancel, TurnEvent};
use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::turn::PartialAnswer;
use retake_store::runtime::{RuntimeDatabase, RuntimeStamp};
use retake_timeline::ThreadFilter;
use retake_timeline::{LogEvent, Tail, Timeline};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use live::{LiveEvent, LiveEvents};
pub(crate) use stream::{StreamRequest, open};

use crate::auth::Auth;
use crate::folders::FolderEventMessage;
use crate::problem::{Code, Problem};
use crate::service::Service;

/// Poll interval of the log.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Poll interval of turns of other processes.
const TURN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum recent events in memory.
const MAX_RECENT_EVENTS: usize = 2048;
/// Events per read.
const PAGE: usize = 256;
/// Maximum bytes per chunk, unless a single event is larger.
const MAX_CHUNK_BYTES: usize = 256 << 10;
/// Maximum bytes of recent events in memory.
const MAX_RECENT_BYTES: usize = 16 << 20;

/// Distributes events to streams.
pub(crate) struct EventBus {
    recent: Mutex<RecentEvents>,
    newest: watch::Sender<i64>,
    token: watch::Sender<Option<[u8; 32]>>,
    live: LiveEvents,
    /// Set when the streams have to end.
    over: Cancel,
    auth: Arc<Auth>,
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
struct RecentEvents {
    /// All events after this position are in memory.
    after: i64,
    events: VecDeque<Event>,
    bytes: usize,
}

/// A `turn` event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TurnEventMessage<'a> {
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
struct PartialAnswerMessage<'a> {
    thread: ThreadId,
    take: TakeId,
    turn: TurnId,
    event: &'static str,
    entry: retake_model::id::EntryId,
    blocks: &'a [retake_model::entry::Block],
}

impl EventBus {
    pub(crate) fn new(timeline: &Timeline, auth: Arc<Auth>) -> Result<Self, Problem> {
        let newest = timeline.read()?.queries().last_sequence()?;
        Ok(Self {
            recent: Mutex::new(RecentEvents::none(newest)),
            newest: watch::Sender::new(newest),
            token: watch::Sender::new(None),
            live: LiveEvents::default(),
            over: Cancel::new(),
            auth,
        })
    }

    /// Ends all streams, after the events that they have not sent yet.
    pub(crate) fn close(&self) {
        self.over.set();
    }

    /// Publishes an event of a turn.
    pub(crate) fn publish(&self, message: &TurnEventMessage<'_>) {
        self.send_live(Some(message.thread), "turn", message);
    }

    /// Publishes a change of a watched folder.
    pub(crate) fn publish_folder(&self, message: &FolderEventMessage) {
        self.send_live(None, "folder", message);
    }

    /// Whether a stream is open.
    pub(crate) fn has_listeners(&self) -> bool {
        self.live.has_listeners()
    }

    fn send_live(&self, thread: Option<ThreadId>, kind: &str, message: &impl Serialize) {
        if !self.has_listeners() {
            return;
        }
        let Ok(data) = serde_json::to_string(message) else { return };
        self.live.send(LiveEvent { thread, text: format!("event: {kind}\ndata: {data}\n\n") });
    }

    /// Position of the newest event.
    pub(crate) fn newest(&self) -> i64 {
        *self.newest.borrow()
    }

    /// The events after a position, if they are in memory; `None` if the log must be read.
    fn recent_after(&self, after: i64) -> Option<Vec<Event>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if after < recent.after {
            return None;
        }
        let from = recent.events.partition_point(|event| event.sequence <= after);
        Some(take_chunk(recent.events.range(from..).take(PAGE).cloned()))
    }

    /// Publishes the current token to streams if it changed.
    fn refresh_token(&self) {
        let current = self.auth.current_token_hash();
        self.token.send_if_modified(|token| {
            let other = *token != current;
            *token = current;
            other
        });
    }

    fn add(&self, events: Vec<Event>) {
        let Some(last) = events.last().map(|event| event.sequence) else { return };
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).add(events, last);
        self.newest.send_replace(last);
    }
}

impl RecentEvents {
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
        while self.events.len() > MAX_RECENT_EVENTS || self.bytes > MAX_RECENT_BYTES {
            let Some(gone) = self.events.pop_front() else { break };
            self.after = gone.sequence;
            self.bytes -= gone.text.len();
        }
    }
}

impl Event {
    fn of(happened: &LogEvent) -> Self {
        let data = serde_json::to_string(happened).unwrap_or_default();
        let (sequence, thread) = (happened.sequence, happened.change.as_ref().map(|change| change.thread));
        let kind = if thread.is_some() { "operation" } else { "purged" };
        Self { sequence, thread, text: format!("id: {sequence}\nevent: {kind}\ndata: {data}\n\n").into() }
    }
}

/// The first events that fit into a chunk.
fn take_chunk(events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut bytes = 0;
    events
        .take_while(|event| {
            let first = bytes == 0;
            bytes += event.text.len();
            first || bytes <= MAX_CHUNK_BYTES
        })
        .collect()
}

/// Starts a thread that follows the log until shutdown.
pub(crate) fn follow(service: &Arc<Service>) -> std::io::Result<JoinHandle<()>> {
    let service = Arc::clone(service);
    std::thread::Builder::new().name("retake-follow".to_owned()).spawn(move || {
        let mut follower = None;
        while !service.stop.wait_timeout(LOG_POLL_INTERVAL) {
            let looked = catch_panic(|| match &mut follower {
                None => LogFollower::new(&service).map(|new| follower = Some(new)),
                Some(follower) => follower.poll(&service),
            });
            if let Err(problem) = looked {
                tracing::warn!(detail = problem.message, "failed to follow the log");
                follower = None;
                service.stop.wait_timeout(TURN_POLL_INTERVAL);
            }
        }
    })
}

/// Polls once and catches panics, so that a bug in one poll does not stop all events.
fn catch_panic(look: impl FnOnce() -> Result<(), Problem>) -> Result<(), Problem> {
    let mistake = |_| Err(Problem::new(Code::Internal, "the server failed"));
    catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(mistake)
}

/// Follows changes of all processes.
struct LogFollower {
    tail: Tail,
    /// A separate connection, so that writers do not block it.
    runtime_database: RuntimeDatabase,
    stamp: Option<RuntimeStamp>,
    partials: Vec<(TakeId, PartialAnswer)>,
    looked: Option<Instant>,
}

impl LogFollower {
    fn new(service: &Service) -> Result<Self, Problem> {
        let (tail, runtime_database) =
            (service.timeline.tail()?, service.timeline.store().runtime_database()?);
        Ok(Self { tail, runtime_database, stamp: None, partials: Vec::new(), looked: None })
    }

    fn poll(&mut self, service: &Service) -> Result<(), Problem> {
        let event_bus = &service.event_bus;
        let mut news = false;
        while self.tail.last()? > event_bus.newest() {
            let found = self.tail.since(event_bus.newest(), PAGE)?;
            if found.is_empty() {
                break;
            }
            // After reading the log and before publishing: streams opened with an old token must not receive events from
            // after its rotation.
            event_bus.refresh_token();
            event_bus.add(found.iter().map(Event::of).collect());
            news = true;
        }
        if news {
            service.metrics.sequence.set(event_bus.newest());
        }
        event_bus.refresh_token();
        if self.looked.is_none_or(|looked| looked.elapsed() >= TURN_POLL_INTERVAL) {
            self.looked = Some(Instant::now());
            // Keeps the list of threads warm for the next request.
            service.timeline.threads_page(&ThreadFilter::default(), None, 1)?;
            self.poll_other_processes(service)?;
            service.folders.poll(event_bus);
        }
        Ok(())
    }

    /// Publishes partial answers of turns in other processes.
    fn poll_other_processes(&mut self, service: &Service) -> Result<(), Problem> {
        if !service.event_bus.has_listeners() {
            return Ok(());
        }
        let stamp = Some(self.runtime_database.stamp()?);
        if stamp == self.stamp {
            return Ok(());
        }
        self.stamp = stamp;
        let mut partials = Vec::new();
        for running in self.runtime_database.turns()? {
            let Some(partial) = running.partial.filter(|_| !service.turns.has(running.turn)) else {
                continue;
            };
            let known = self.partials.iter().any(|(take, known)| *take == running.take && *known == partial);
            if !known {
                let (thread, take, turn) = (running.thread, running.take, running.turn);
                let (entry, blocks) = (partial.entry, partial.blocks.as_slice());
                let message = PartialAnswerMessage { thread, take, turn, event: "partial", entry, blocks };
                service.event_bus.send_live(Some(thread), "turn", &message);
            }
            partials.push((running.take, partial));
        }
        self.partials = partials;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: i64, bytes: usize) -> Event {
        let thread = Some(ThreadId::from_key([1; 16]));
        Event { sequence, thread, text: "x".repeat(bytes).into() }
    }

    #[test]
    fn a_chunk_has_at_least_one_event_and_respects_the_limit() {
        let check = |sizes: &[usize], expected: usize| {
            let events = sizes.iter().map(|bytes| event(0, *bytes));
            assert_eq!(take_chunk(events).len(), expected, "{sizes:?}");
        };
        check(&[], 0);
        check(&[1, 1, 1], 3);
        check(&[MAX_CHUNK_BYTES * 2, 1], 1);
        check(&[1, MAX_CHUNK_BYTES * 2, 1], 1);
        check(&[MAX_CHUNK_BYTES / 2, MAX_CHUNK_BYTES / 2, 1], 2);
    }

    #[test]
    fn recent_events_are_bounded_and_contiguous() {
        let check = |count: i64, bytes: usize| {
            let mut recent = RecentEvents::none(0);
            (1..=count).for_each(|sequence| recent.add(vec![event(sequence, bytes)], sequence));
            assert!(recent.events.len() <= MAX_RECENT_EVENTS && recent.bytes <= MAX_RECENT_BYTES);
            assert_eq!(recent.bytes, recent.events.len() * bytes);
            let kept: Vec<i64> = recent.events.iter().map(|event| event.sequence).collect();
            assert_eq!(kept, (recent.after + 1..=count).collect::<Vec<_>>());
        };
        check(10, 100);
        check(MAX_RECENT_EVENTS as i64 + 10, 100);
        check(40, MAX_RECENT_BYTES / 10);
        check(3, MAX_RECENT_BYTES * 2);
    }

    #[test]
    fn a_poll_that_panics_returns_an_error() {
        assert!(catch_panic(|| Ok(())).is_ok());
        let failed = |look: fn() -> Result<(), Problem>| catch_panic(look).expect_err("it failed").code;
        assert_eq!(failed(|| Err(Problem::new(Code::Storage, "the disk"))), Code::Storage);
        assert_eq!(failed(|| panic!("an intended panic")), Code::Internal);
    }

    #[test]
    fn a_purge_drops_earlier_events() {
        let mut recent = RecentEvents::none(0);
        recent.add(vec![event(1, 10), event(2, 10)], 2);
        recent.add(vec![event(3, 10), Event { thread: None, ..event(4, 10) }, event(5, 10)], 5);
        assert_eq!((recent.after, recent.events.len(), recent.bytes), (5, 0, 0));
        recent.add(vec![event(6, 10)], 6);
        assert_eq!((recent.after, recent.events.len(), recent.bytes), (5, 1, 10));
    }
}
