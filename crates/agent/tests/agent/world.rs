//! A project, a thread and a scripted model.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use retake_agent::approval::{ApprovalMode, ApprovalPolicy as Approval, ApprovalQuestion};
use retake_agent::provider::prices::Prices;
use retake_agent::provider::{Client, Endpoint, Platform, Secret, SignIn, Stop, Timeouts, Wire};
use retake_agent::{
    AgentRuntime, Cancel, ModelBackend, Reply, TurnError, TurnEvent, TurnObserver, TurnOutcome, TurnRequest,
};
use retake_model::agent::RetryPolicy;
use retake_model::command::Prompt;
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::projection::{Dialect, rules};
use retake_testing::fault_server::{FaultServer, Script, ScriptedAnswer, call, events, text_answer};
use retake_timeline::{
    Caller, FileError, Goal, MoveOptions, MoveOutcome, NewThread, Rules, SharedChanges, Timeline, Unit,
    WorkingCopy,
};
use retake_workspace::snapshot::Workspace;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const KEY: &str = "key-that-nobody-may-see";

/// A project with a thread in it.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) runtime: AgentRuntime,
    pub(crate) thread: ThreadId,
    pub(crate) server: FaultServer,
}

/// A callback for events.
pub(crate) type Hook = Box<dyn FnMut(&TurnEvent) + Send>;

/// Records events and answers approval requests.
#[derive(Default)]
pub(crate) struct RecordingObserver {
    pub(crate) events: Vec<TurnEvent>,
    pub(crate) reply: Option<Reply>,
    pub(crate) at: Mutex<Option<Hook>>,
}

impl TurnObserver for RecordingObserver {
    fn on_event(&mut self, event: &TurnEvent) {
        if let Some(at) = self.at.get_mut().expect("one thread").as_mut() {
            at(event);
        }
        self.events.push(event.clone());
    }

    fn ask(&mut self, _: &ApprovalQuestion, _: &Cancel) -> Option<Reply> {
        self.reply.clone()
    }
}

/// A streamed text answer.
pub(crate) fn text(text: &str) -> Script {
    Script::events(events(Wire::Anthropic, &text_answer(text)))
}

/// A streamed answer with tool calls.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Script {
    let blocks: Vec<Block> = calls.iter().map(|(id, name, input)| call(id, name, input)).collect();
    let answer = ScriptedAnswer { blocks, stop: Stop::ToolUse, ..text_answer("") };
    Script::events(events(Wire::Anthropic, &answer))
}

impl World {
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        Self::served_by(FaultServer::with(scripts).expect("a free port"))
    }

    pub(crate) fn served_by(server: FaultServer) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = folder.path().join("project");
        std::fs::create_dir(&project).expect("the temporary folder is writable");
        std::fs::write(project.join("kept.txt"), "kept\n").expect("the temporary folder is writable");
        let timeline = Timeline::open(&folder.path().join("store"), Rules::default()).expect("a store");
        let known = timeline.project(&project).expect("a project");
        let new = NewThread { current: true, ..NewThread::in_project(known.id) };
        let thread = timeline.create_thread(new, Caller::human()).expect("a thread").thread;
        let working_copy =
            WorkingCopy::at(timeline.clone(), known.id, Workspace::of(&project).expect("a workspace"));
        let endpoint = Endpoint {
            provider: "scripted".to_owned(),
            wire: Wire::Anthropic,
            dialect: Dialect::of(Wire::Anthropic),
            base_url: server.url(),
            model: "scripted-1".to_owned(),
            key: Some(Secret::new(KEY)),
            key_hint: "set SCRIPTED_KEY".to_owned(),
            headers: Vec::new(),
            timeouts: Timeouts {
                first_byte: Duration::from_secs(20),
                stall: Duration::from_secs(20),
                ..Timeouts::default()
            },
            platform: Platform::Direct,
            sign_in: SignIn::Key,
        };
        let client = Client::new().expect("a client");
        let runtime = AgentRuntime {
            timeline,
            working_copy: Some(working_copy),
            folder: project.clone(),
            project: known.id,
            backend: ModelBackend::Remote {
                endpoint: Box::new(endpoint),
                thinking: None,
                limits: retake_agent::provider::catalog::limits("test-model"),
                client,
            },
            approval: Approval { mode: ApprovalMode::AllowAll, rules: Vec::new() },
            retry_policy: RetryPolicy { max_attempts: 3, initial_delay: 1, max_delay: 5 },
            rounds: 100,
            calls: 100,
            prices: Prices::default(),
            window: 100_000,
            sized: true,
            actor: Actor::Human,
            environment: None,
            hidden: Vec::new(),
            post_tools: None,
        };
        Self { folder, project, runtime, thread, server }
    }

    pub(crate) fn take(&self) -> TakeId {
        self.runtime
            .timeline
            .read()
            .expect("the store is readable")
            .state(self.thread)
            .expect("a state")
            .active
    }

    pub(crate) fn prompt(&self, text: &str) -> TurnRequest {
        let entry = EntryVersion::from_text("User", text, self.runtime.timeline.now());
        TurnRequest::with(Prompt::Entry(entry.into()))
    }

    pub(crate) fn run_with(
        &self,
        prompt: &str,
        cancel: &Cancel,
        witness: &mut RecordingObserver,
    ) -> Result<TurnOutcome, TurnError> {
        self.runtime.run(self.thread, self.take(), self.prompt(prompt), cancel, witness)
    }

    pub(crate) fn run(&self, prompt: &str) -> (TurnOutcome, Vec<TurnEvent>) {
        let mut witness = RecordingObserver::default();
        let outcome = self.run_with(prompt, &Cancel::new(), &mut witness).expect("the turn runs");
        (outcome, witness.events)
    }

    pub(crate) fn entries(&self) -> Vec<EntryVersion> {
        let reader = self.runtime.timeline.read().expect("the store is readable");
        let state = reader.state(self.thread).expect("a state");
        let take = state.active_take(&reader.queries()).expect("a take");
        let page = reader.entries(self.thread, &take).page(0..take.entries.len()).expect("entries");
        page.into_iter().map(|view| view.entry).collect()
    }

    /// The entries, one line each.
    pub(crate) fn transcript(&self) -> Vec<String> {
        self.entries().iter().map(|entry| format!("{}: {}", entry.role, entry.preview())).collect()
    }

    pub(crate) fn takes(&self) -> u64 {
        self.runtime
            .timeline
            .read()
            .expect("the store is readable")
            .state(self.thread)
            .expect("a state")
            .takes
            .len()
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.project.join(path)).ok()
    }

    pub(crate) fn undo(&self) {
        self.try_undo(SharedChanges::Refuse).expect("an undo");
    }

    /// Undoes a turn, with changes whose author is unknown if they are not refused.
    pub(crate) fn try_undo(&self, shared: SharedChanges) -> Result<MoveOutcome, FileError> {
        let working_copy = self.runtime.working_copy.as_ref().expect("files are recorded");
        let options = MoveOptions { shared, ..MoveOptions::default() };
        working_copy.go(self.thread, Goal::Undo(Unit::Turn, 1), Caller::human(), options)
    }

    /// Checks that every request follows its provider's rules.
    pub(crate) fn check_requests(&self) {
        for request in self.server.requests() {
            let body: Value = serde_json::from_str(&request.body).expect("JSON");
            let broken = rules::check(Wire::Anthropic, &body);
            assert!(broken.is_empty(), "{broken:?} in {body:#}");
        }
    }

    /// The messages of the last request.
    pub(crate) fn last_messages(&self) -> Vec<Value> {
        let requests = self.server.requests();
        let body: Value = serde_json::from_str(&requests.last().expect("a request").body).expect("JSON");
        body["messages"].as_array().expect("messages").clone()
    }

    /// Checks that a turn left nothing behind: no lease, no record, no marker in the folder.
    pub(crate) fn check_rest(&self) {
        let store = self.runtime.timeline.store();
        assert!(
            store.runtime_database().expect("the runtime database opens").turns().expect("turns").is_empty(),
            "a turn was left"
        );
        let reader = self.runtime.timeline.read().expect("the store is readable");
        for folder in reader.queries().folders().expect("folders") {
            assert_eq!(folder.running, None, "something is said to run");
        }
    }
}
