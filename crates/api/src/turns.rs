//! Turns that run in this server, each in its own thread.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use retake_agent::{Cancel, TurnError, TurnEvent, TurnObserver, TurnOutcome};
use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::operation::Version;
use schemars::JsonSchema;
use serde::Serialize;

use crate::events::{EventBus, TurnEventMessage};
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};

/// Poll interval while waiting for turns to end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The turns of this server.
pub(crate) struct RunningTurns {
    running: Mutex<TurnTable>,
    event_bus: Arc<EventBus>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct TurnTable {
    turns: HashMap<TurnId, ThreadId>,
    cancels: Vec<(Cancel, JoinHandle<()>)>,
    stopping: bool,
}

/// A turn that has started and is on disk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StartedTurn {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// The take.
    pub(crate) take: TakeId,
    /// The turn.
    pub(crate) turn: TurnId,
    /// Version of the thread, including the prompt.
    pub(crate) version: Version,
    /// The first operation of the turn.
    pub(crate) operation: Option<retake_model::content::ContentId>,
    /// Whether an undo reverts it.
    pub(crate) undoable: bool,
    /// Provider.
    pub(crate) provider: String,
    /// Model.
    pub(crate) model: String,
}

/// The work of a turn.
pub(crate) type TurnJob =
    Box<dyn FnOnce(&Cancel, &mut dyn TurnObserver) -> Result<TurnOutcome, TurnError> + Send>;

impl RunningTurns {
    pub(crate) fn new(event_bus: Arc<EventBus>, metrics: Arc<Metrics>) -> Self {
        Self { running: Mutex::default(), event_bus, metrics }
    }

    /// Starts a turn; returns when it is on disk or refused.
    pub(crate) fn begin(self: &Arc<Self>, job: TurnJob) -> Result<StartedTurn, Problem> {
        let (sender, receiver) = channel();
        let cancel = Cancel::new();
        let (turns, own) = (Arc::clone(self), cancel.clone());
        let mut running = self.lock();
        if running.stopping {
            return Err(Problem::new(Code::Unavailable, "the server is stopping"));
        }
        running.cancels.retain(|(_, thread)| !thread.is_finished());
        let spawned = std::thread::Builder::new().name("retake-turn".to_owned()).spawn(move || {
            let mut watcher = EventForwarder { turns: &turns, started: Some(sender), turn: None, number: 0 };
            let outcome = job(&own, &mut watcher);
            let started = watcher.started.take();
            drop(watcher);
            match (outcome, started) {
                (Err(error), Some(started)) => drop(started.send(Err(error.into()))),
                (Err(error), None) => tracing::warn!(%error, "a turn failed"),
                (Ok(_), _) => {}
            }
        });
        let thread = spawned.map_err(|error| Problem::new(Code::Unavailable, error))?;
        running.cancels.push((cancel, thread));
        drop(running);
        receiver.recv().unwrap_or_else(|_| Err(Problem::new(Code::Conflict, "the turn has nothing to do")))
    }

    /// Whether a turn runs in this server.
    pub(crate) fn has(&self, turn: TurnId) -> bool {
        self.lock().turns.contains_key(&turn)
    }

    /// Stops all turns, so that they can be resumed, and refuses new ones; returns how many there are.
    pub(crate) fn shut_down_all(&self) -> usize {
        let mut running = self.lock();
        running.stopping = true;
        running.cancels.iter().for_each(|(cancel, _)| cancel.shut_down());
        running.turns.len()
    }

    /// Waits until no turn is running.
    pub(crate) async fn nothing(&self) {
        while !self.lock().turns.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Stops all turns, and waits until that is on disk or the timeout expires.
    pub(crate) fn end_all(&self, timeout: Duration) {
        self.shut_down_all();
        let until = Instant::now() + timeout;
        let cancels = std::mem::take(&mut self.lock().cancels);
        for (_, thread) in cancels {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(POLL_INTERVAL);
            }
            if thread.is_finished() {
                // A panic has been logged; the next start closes the turn.
                let _ = thread.join();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnTable> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forwards the events of a turn.
struct EventForwarder<'a> {
    turns: &'a RunningTurns,
    started: Option<Sender<Result<StartedTurn, Problem>>>,
    turn: Option<(ThreadId, TakeId, TurnId)>,
    number: u64,
}

/// Removes the turn however it ends, also after a panic.
impl Drop for EventForwarder<'_> {
    fn drop(&mut self) {
        if let Some((_, _, turn)) = self.turn {
            self.turns.lock().turns.remove(&turn);
            self.turns.metrics.turns.dec();
        }
    }
}

impl TurnObserver for EventForwarder<'_> {
    fn on_event(&mut self, event: &TurnEvent) {
        if let TurnEvent::Started { thread, take, turn, provider, model, version, operation } = event {
            self.turn = Some((*thread, *take, *turn));
            self.turns.lock().turns.insert(*turn, *thread);
            self.turns.metrics.turns.inc();
            let started = StartedTurn {
                thread: *thread,
                take: *take,
                turn: *turn,
                version: *version,
                operation: *operation,
                undoable: true,
                provider: provider.clone(),
                model: model.clone(),
            };
            if let Some(sender) = self.started.take() {
                // The client may have disconnected; the turn continues.
                let _ = sender.send(Ok(started));
            }
        }
        let Some((thread, take, turn)) = self.turn else { return };
        self.turns.event_bus.publish(&TurnEventMessage { thread, take, turn, number: self.number, event });
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    use retake_agent::provider::config::ProviderEnvironment;
    use retake_timeline::{Rules, Timeline};

    use super::*;
    use crate::auth::TokenFile;
    use crate::limits::Limits;
    use crate::service::{Options, Service};

    #[test]
    fn a_turn_that_panics_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        let options = Options {
            timeline: Timeline::open(&store, Rules::default()).expect("a store"),
            setup: retake_agent::Setup::default(),
            provider_environment: ProviderEnvironment::from_process,
            folder: folder.path().to_owned(),
            token: TokenFile::at(store.join("serve.token")),
            hosts: Vec::new(),
            limits: Limits::default(),
            pages: None,
        };
        let service = Service::new(options, Cancel::new()).expect("a service");
        let turn = TurnId::from_bytes([7; 16]);
        let job: TurnJob = Box::new(move |cancel, observer| {
            observer.on_event(&TurnEvent::Started {
                thread: ThreadId::from_key([1; 16]),
                take: TakeId::from_bytes([2; 16]),
                turn,
                provider: String::new(),
                model: String::new(),
                operation: None,
                version: 1,
            });
            assert!(!cancel.wait_timeout(Duration::from_mins(1)), "an intended panic");
            Err(TurnError::Nothing)
        });
        let started = service.turns.begin(job).expect("the turn starts");
        assert_eq!((started.turn, service.turns.has(turn), service.metrics.turns.get()), (turn, true, 1));
        service.turns.end_all(Duration::from_secs(10));
        assert_eq!((service.turns.has(turn), service.metrics.turns.get()), (false, 0));
    }
}
