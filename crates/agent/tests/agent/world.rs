//! A project, a thread and a scripted model.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use retake_agent::approval::{Mode, Policy as Approval, Question};
use retake_agent::fault_server::{FaultServer, Script, Telling, call, events, said};
use retake_agent::provider::prices::Prices;
use retake_agent::provider::{Client, Endpoint, Platform, Secret, SignIn, Stop, Timeouts, Wire};
use retake_agent::{Audience, Beginning, Brain, Cancel, Outcome, Reply, TurnError, TurnEvent, Workshop};
use retake_model::agent::Policy;
use retake_model::command::Prompt;
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::projection::{Dialect, rules};
use retake_timeline::{Caller, Desk, Goal, Handling, NewThread, Rules, Timeline, Unit};
use retake_workspace::snapshot::Workspace;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const KEY: &str = "key-that-nobody-may-see";

/// A project with a thread in it.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) shop: Workshop,
    pub(crate) thread: ThreadId,
    pub(crate) server: FaultServer,
}

/// A callback for events.
pub(crate) type Hook = Box<dyn FnMut(&TurnEvent) + Send>;

/// Records events and answers approval requests.
#[derive(Default)]
pub(crate) struct Witness {
    pub(crate) events: Vec<TurnEvent>,
    pub(crate) reply: Option<Reply>,
    pub(crate) at: Mutex<Option<Hook>>,
}

impl Audience for Witness {
    fn hear(&mut self, event: &TurnEvent) {
        if let Some(at) = self.at.get_mut().expect("one thread").as_mut() {
            at(event);
        }
        self.events.push(event.clone());
    }

    fn ask(&mut self, _: &Question, _: &dyn Fn() -> bool) -> Option<Reply> {
        self.reply.clone()
    }
}

/// A streamed text answer.
pub(crate) fn text(text: &str) -> Script {
    Script::events(events(Wire::Anthropic, &said(text)))
}

/// A streamed answer with tool calls.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Script {
    let blocks: Vec<Block> = calls.iter().map(|(id, name, input)| call(id, name, input)).collect();
    let telling = Telling { blocks, stop: Stop::ToolUse, ..said("") };
    Script::events(events(Wire::Anthropic, &telling))
}

impl World {
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        Self::served_by(FaultServer::with(scripts).expect("a port"))
    }

    pub(crate) fn served_by(server: FaultServer) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = folder.path().join("project");
        std::fs::create_dir(&project).expect("it is ours");
        std::fs::write(project.join("kept.txt"), "kept\n").expect("it is ours");
        let timeline = Timeline::open(&folder.path().join("store"), Rules::default()).expect("a store");
        let known = timeline.project(&project).expect("a project");
        let new = NewThread { current: true, ..NewThread::in_project(known.id) };
        let thread = timeline.create_thread(new, Caller::human()).expect("a thread").thread;
        let desk = Desk::at(timeline.clone(), known.id, Workspace::of(&project).expect("a workspace"));
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
        let shop = Workshop {
            timeline,
            desk: Some(desk),
            folder: project.clone(),
            project: known.id,
            brain: Brain::Remote {
                endpoint: Box::new(endpoint),
                thinking: None,
                limits: retake_agent::provider::catalog::limits("test-model"),
                client,
            },
            approval: Approval { mode: Mode::AllowAll, rules: Vec::new() },
            patience: Policy { most_attempts: 3, first_delay: 1, longest_delay: 5 },
            rounds: 100,
            calls: 100,
            prices: Prices::default(),
            window: 100_000,
            sized: true,
            actor: Actor::Human,
            surroundings: None,
            hidden: Vec::new(),
        };
        Self { folder, project, shop, thread, server }
    }

    pub(crate) fn take(&self) -> TakeId {
        self.shop.timeline.look().expect("a look").state(self.thread).expect("a state").active
    }

    pub(crate) fn prompt(&self, text: &str) -> Beginning {
        let entry = EntryVersion::from_text("User", text, self.shop.timeline.now());
        Beginning::with(Prompt::Entry(entry.into()))
    }

    pub(crate) fn run_with(
        &self,
        prompt: &str,
        cancel: &Cancel,
        witness: &mut Witness,
    ) -> Result<Outcome, TurnError> {
        self.shop.run(self.thread, self.take(), self.prompt(prompt), cancel, witness)
    }

    pub(crate) fn run(&self, prompt: &str) -> (Outcome, Vec<TurnEvent>) {
        let mut witness = Witness::default();
        let outcome = self.run_with(prompt, &Cancel::new(), &mut witness).expect("the turn runs");
        (outcome, witness.events)
    }

    pub(crate) fn entries(&self) -> Vec<EntryVersion> {
        let looking = self.shop.timeline.look().expect("a look");
        let state = looking.state(self.thread).expect("a state");
        let take = state.active_take(&looking.queries()).expect("a take");
        let page = looking.page(self.thread, &take, 0..take.entries.len()).expect("entries");
        page.into_iter().map(|view| view.entry).collect()
    }

    /// The entries, one line each.
    pub(crate) fn said(&self) -> Vec<String> {
        self.entries().iter().map(|entry| format!("{}: {}", entry.role, entry.preview())).collect()
    }

    pub(crate) fn takes(&self) -> u64 {
        self.shop.timeline.look().expect("a look").state(self.thread).expect("a state").takes.len()
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.project.join(path)).ok()
    }

    pub(crate) fn undo(&self) {
        let desk = self.shop.desk.as_ref().expect("files are kept");
        desk.go(self.thread, Goal::Undo(Unit::Turn, 1), Caller::human(), Handling::default())
            .expect("an undo");
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
        let store = self.shop.timeline.store();
        assert!(store.ledger().expect("a ledger").turns().expect("turns").is_empty(), "a turn was left");
        let looking = self.shop.timeline.look().expect("a look");
        for folder in looking.queries().folders().expect("folders") {
            assert_eq!(folder.running, None, "something is said to run");
        }
    }
}
