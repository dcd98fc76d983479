//! A project with one thread, a folder, and an agent with a scripted model.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use retake_agent::approval::{ApprovalMode, ApprovalPolicy as Approval};
use retake_agent::provider::prices::Prices;
use retake_agent::provider::{Client, Endpoint, Platform, Secret, SignIn, Timeouts, Wire};
use retake_agent::{AgentRuntime, Cancel, ModelBackend, TurnEvent, TurnHandle, TurnObserver, TurnRequest};
use retake_model::agent::{RetryPolicy, ToolOutcome};
use retake_model::command::Prompt;
use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::projection::Dialect;
use retake_model::take::Take;
use retake_testing::fault_server::FaultServer;
use retake_timeline::{
    Caller, Command, EntryView, Goal, MoveOptions, NewThread, Rules, Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;

use super::TurnsPlan;
use super::scripted_model::ScriptedModel;
use crate::scratch::ScratchDir;
use crate::violation::BoxError;

/// The server is replaced after this many turns, because it stores all requests.
const TURNS_PER_SERVER: u64 = 25;

/// Timeout of an answer: endless comments take longer.
pub(super) const QUICK_ANSWER: Duration = Duration::from_millis(2_500);
/// Small enough that conversations must be compressed.
pub(super) const WINDOW: u64 = 60_000;

pub(super) struct World {
    _ground: ScratchDir,
    pub(super) project: PathBuf,
    pub(super) runtime: AgentRuntime,
    pub(super) working_copy: WorkingCopy,
    pub(super) thread: ThreadId,
    pub(super) assistant: ScriptedModel,
    server: FaultServer,
    served: u64,
}

impl World {
    pub(super) fn new(plan: TurnsPlan) -> Result<Self, BoxError> {
        let scratch = ScratchDir::for_files()?;
        let project = scratch.path().join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(project.join("kept.txt"), "kept\n")?;
        let timeline = Timeline::open(&scratch.path().join("store"), Rules::default())?;
        let known = timeline.project(&project)?;
        let new = NewThread { current: true, ..NewThread::in_project(known.id) };
        let thread = timeline.create_thread(new, Caller::human())?.thread;
        let working_copy = WorkingCopy::at(timeline.clone(), known.id, Workspace::of(&project)?);
        let assistant = ScriptedModel::new(project.clone(), plan.chaos, plan.mistake);
        let server = assistant.serve()?;
        let endpoint = endpoint(Wire::Anthropic, &server, QUICK_ANSWER);
        let runtime = AgentRuntime {
            timeline,
            working_copy: Some(working_copy.clone()),
            folder: project.clone(),
            project: known.id,
            backend: ModelBackend::Remote {
                endpoint: Box::new(endpoint),
                thinking: None,
                limits: retake_agent::provider::catalog::limits("test-model"),
                client: Client::new()?,
            },
            approval: Approval { mode: ApprovalMode::AllowAll, rules: Vec::new() },
            retry_policy: RetryPolicy { max_attempts: 2, initial_delay: 1, max_delay: 5 },
            rounds: 100,
            calls: 24,
            prices: Prices::default(),
            window: WINDOW,
            sized: true,
            actor: Actor::Human,
            environment: None,
            hidden: Vec::new(),
            post_tools: None,
        };
        Ok(Self { _ground: scratch, project, runtime, working_copy, thread, assistant, server, served: 0 })
    }

    /// Uses this wire and answer timeout for the next turn.
    pub(super) fn use_wire(&mut self, wire: Wire, answer: Duration) -> Result<(), BoxError> {
        self.served += 1;
        if self.served.is_multiple_of(TURNS_PER_SERVER) {
            self.server = self.assistant.serve()?;
        }
        let new = endpoint(wire, &self.server, answer);
        if let ModelBackend::Remote { endpoint, .. } = &mut self.runtime.backend {
            **endpoint = new;
        }
        Ok(())
    }

    /// Uses a provider to which no key may be sent, so that the next turn cannot start.
    pub(super) fn use_unreachable_provider(&mut self) {
        if let ModelBackend::Remote { endpoint, .. } = &mut self.runtime.backend {
            "http://example.org".clone_into(&mut endpoint.base_url);
        }
    }

    pub(super) fn beginning(&self, text: &str) -> TurnRequest {
        let entry = EntryVersion::from_text("User", text, self.runtime.timeline.now());
        TurnRequest::with(Prompt::Entry(entry.into()))
    }

    pub(super) fn active(&self) -> Result<Take, BoxError> {
        let reader = self.runtime.timeline.read()?;
        Ok(reader.state(self.thread)?.active_take(&reader.queries())?)
    }

    pub(super) fn entries(&self) -> Result<Vec<EntryView>, BoxError> {
        let take = self.active()?;
        Ok(self.runtime.timeline.read()?.entries(self.thread, &take).page(0..take.entries.len())?)
    }

    /// A context window that is too small for the active take; `None` if it has hardly any entries.
    pub(super) fn tight_window(&self) -> Result<Option<u64>, BoxError> {
        let tokens: u64 = self.entries()?.iter().map(|view| view.entry.size() as u64 / 4).sum();
        // The system prompt and the tools take about 1,100 tokens, and a quarter is reserved for the answer.
        Ok((tokens > 300).then(|| (tokens / 2 + 1_300) * 4 / 3))
    }

    pub(super) fn takes(&self) -> Result<Vec<Take>, BoxError> {
        let reader = self.runtime.timeline.read()?;
        Ok(reader.state(self.thread)?.all_takes(&reader.queries())?)
    }

    /// Creates another take while a turn is running in this one; returns its version, or `None` if no turn runs.
    fn make_take(&self, from: TakeId, fork: bool) -> Result<Option<u64>, String> {
        let text = |error: BoxError| error.to_string();
        let take = self.active().map_err(text)?;
        if take.id != from || !take.agent.is_some_and(|agent| agent.state.is_running()) {
            return Ok(None);
        }
        let entries = self.entries().map_err(text)?;
        let message = entries.iter().find(|view| RoleKind::of(&view.entry.role) == RoleKind::User);
        let command = match message.filter(|_| fork) {
            Some(message) => Command::Fork { from, at: message.id, name: None },
            None => Command::Branch { from, at: None, name: None },
        };
        let changed = self.working_copy.change(self.thread, command, Caller::human(), MoveOptions::default());
        match changed.map_err(|error| error.to_string())?.done {
            Some(done) => Ok(Some(done.version)),
            None => Err("nothing was done".to_owned()),
        }
    }

    pub(super) fn version(&self) -> Result<u64, BoxError> {
        Ok(self.runtime.timeline.read()?.head(self.thread)?.operation.version)
    }
}

fn endpoint(wire: Wire, server: &FaultServer, answer: Duration) -> Endpoint {
    Endpoint {
        provider: "scripted".to_owned(),
        wire,
        dialect: Dialect::of(wire),
        base_url: server.url(),
        model: format!("scripted-{}", wire.name()),
        key: Some(Secret::new("a-key")),
        key_hint: "set SCRIPTED_KEY".to_owned(),
        headers: Vec::new(),
        timeouts: Timeouts { first_byte: Duration::from_secs(10), stall: Duration::from_millis(300), answer },
        platform: Platform::Direct,
        sign_in: SignIn::Key,
    }
}

/// An action in the middle of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// None.
    None,
    /// Stops it.
    Interrupt,
    /// Stops it because the process has to exit.
    ShutDown,
    /// Sends a message.
    Steer,
    /// Undoes it while it runs.
    Undo,
    /// Creates another take: a branch, or a fork at a message.
    NewTake { fork: bool },
    /// Stops it with a message, while a tool prints continuously.
    StopNoise,
    /// The fault: only claims to have stopped it.
    ClaimStop,
}

/// Observes a turn and interferes at an event.
pub(super) struct InterferingObserver<'world> {
    pub(super) world: &'world World,
    pub(super) take: TakeId,
    pub(super) cancel: Cancel,
    pub(super) interruption: Interruption,
    pub(super) left: u64,
    /// Finished calls, in order.
    pub(super) ended: Vec<(String, ToolOutcome)>,
    pub(super) undone: bool,
    /// The version that created another take during the turn, or the error.
    pub(super) made: Option<Result<u64, String>>,
    /// When it was asked to stop.
    pub(super) stop_requested: Option<Instant>,
}

impl TurnObserver for InterferingObserver<'_> {
    fn on_event(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Started { take, .. } => self.take = *take,
            TurnEvent::ToolEnded { call, outcome, .. } => self.ended.push((call.clone(), *outcome)),
            _ => {}
        }
        if matches!(self.interruption, Interruption::StopNoise | Interruption::ClaimStop) {
            if matches!(event, TurnEvent::ToolProgress { .. }) {
                let interruption = std::mem::replace(&mut self.interruption, Interruption::None);
                let sender = TurnHandle::new(&self.world.runtime.timeline).ok();
                let sent = sender.is_some_and(|sender| {
                    interruption == Interruption::ClaimStop || sender.interrupt(self.take).is_ok()
                });
                self.stop_requested = sent.then(Instant::now);
            }
            return;
        }
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        match std::mem::replace(&mut self.interruption, Interruption::None) {
            Interruption::None | Interruption::StopNoise | Interruption::ClaimStop => {}
            Interruption::Interrupt => self.cancel.set(),
            Interruption::ShutDown => self.cancel.shut_down(),
            Interruption::Steer => {
                // The turn may be over by now.
                if let Ok(sender) = TurnHandle::new(&self.world.runtime.timeline) {
                    let _ = sender.steer(self.take, "And one more thing.");
                }
            }
            Interruption::NewTake { fork } => self.made = self.world.make_take(self.take, fork).transpose(),
            Interruption::Undo => {
                let goal = Goal::Undo(Unit::Turn, 1);
                let gone = self.world.working_copy.go(
                    self.world.thread,
                    goal,
                    Caller::human(),
                    MoveOptions::default(),
                );
                self.undone = gone.is_ok();
            }
        }
    }
}
