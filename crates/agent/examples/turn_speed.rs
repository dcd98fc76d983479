//! What a turn costs beside a bare client, and what it costs to begin one in a long thread.
//!
//! ```text
//!   cargo run --release -p retake-agent --example turn_speed
//!
//!   overhead   one server, the same stream, in turn: client.call alone · a whole turn on the timeline
//!   beginning  from the call of `run` to the first byte of the request at the server, by the thread's length
//! ```

use std::error::Error;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use retake_agent::approval::{ApprovalMode, ApprovalPolicy as Approval};
use retake_agent::provider::prices::Prices;
use retake_agent::provider::{Client, Endpoint, Platform, Secret, SignIn, Timeouts, Wire};
use retake_agent::{AgentRuntime, Cancel, ModelBackend, TurnEvent, TurnObserver, TurnRequest};
use retake_model::agent::RetryPolicy;
use retake_model::command::Prompt;
use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::operation::Actor;
use retake_model::projection::{Body, Dialect};
use retake_testing::fault_server::{FaultServer, Script, ScriptStep, ScriptedAnswer, events, text_answer};
use retake_timeline::{Caller, Command, InsertPosition, NewEntry, NewThread, Rules, Timeline, WorkingCopy};
use retake_workspace::snapshot::Workspace;
use serde_json::Value;
use tempfile::TempDir;

/// Tokens of an answer, one in each event.
const TOKENS: usize = 2_000;
/// How often each is measured.
const ROUNDS: usize = 15;
/// Entries that are put in at a time.
const CHUNK_BYTES: u64 = 2_000;

struct NoObserver;

impl TurnObserver for NoObserver {
    fn on_event(&mut self, _: &TurnEvent) {}
}

struct Fixture {
    _folder: TempDir,
    runtime: AgentRuntime,
    thread: ThreadId,
    server: FaultServer,
    asked: Receiver<Instant>,
}

fn main() -> Result<(), Box<dyn Error>> {
    for pace in [None, Some(Duration::from_micros(200))] {
        overhead(pace)?;
    }
    println!("\nbeginning of a turn, until the server is asked (median of {ROUNDS})");
    for (entries, window) in [(100, u64::MAX), (10_000, u64::MAX), (100_000, u64::MAX), (100_000, 200_000)] {
        beginning(entries, window)?;
    }
    Ok(())
}

/// A bare client and a whole turn, in turn.
fn overhead(pace: Option<Duration>) -> Result<(), Box<dyn Error>> {
    let place = Fixture::new(&script(TOKENS, pace), u64::MAX)?;
    let endpoint = place.endpoint();
    place.turn(place.thread)?;
    let body: Value = serde_json::from_str(&place.server.requests()[0].body)?;
    let client = Client::new()?;
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    for round in 0..2 * ROUNDS {
        // In a thread of its own, so that both send the same.
        let thread = place.new_thread()?;
        let began = Instant::now();
        if round % 2 == 0 {
            client.call(&endpoint, &Body::from(body.clone()), &Cancel::new(), &mut |_| ())?;
            bare.push(began.elapsed());
        } else {
            place.turn(thread)?;
            whole.push(began.elapsed());
        }
    }
    let (bare, whole) = (median(bare), median(whole));
    let more = whole.saturating_sub(bare);
    let pace = pace.map_or("as fast as it goes".to_owned(), |pace| format!("a token each {pace:?} or more"));
    println!(
        "{TOKENS} tokens, {pace}: bare client {}, whole turn {}, {:.1} % or {} more (medians of {ROUNDS})",
        shown(bare),
        shown(whole),
        100.0 * more.as_secs_f64() / bare.as_secs_f64(),
        shown(more)
    );
    Ok(())
}

/// How long it takes until the model is asked, in a thread of that length.
fn beginning(entries: u64, window: u64) -> Result<(), Box<dyn Error>> {
    let place = Fixture::new(&script(1, None), window)?;
    place.fill(entries)?;
    let mut until = Vec::new();
    for _ in 0..ROUNDS {
        while place.asked.try_recv().is_ok() {}
        let began = Instant::now();
        place.turn(place.thread)?;
        until.push(place.asked.recv()?.saturating_duration_since(began));
    }
    let first = until[0];
    let window = if window == u64::MAX { "any window".to_owned() } else { format!("a window of {window}") };
    println!("{entries:>7} entries, {window:<19}: {} (the first one {})", shown(median(until)), shown(first));
    Ok(())
}

/// An answer of so many tokens, one at a time.
fn script(tokens: usize, pace: Option<Duration>) -> Script {
    let answer = ScriptedAnswer { piece: 5, ..text_answer(&"word ".repeat(tokens)) };
    let mut script = Script::events(events(Wire::Anthropic, &answer));
    if let Some(pace) = pace {
        script.acts = script.acts.into_iter().flat_map(|act| [act, ScriptStep::Pause(pace)]).collect();
    }
    script
}

impl Fixture {
    fn new(script: &Script, window: u64) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(project.join("kept.txt"), "kept\n")?;
        let timeline = Timeline::open(&folder.path().join("store"), Rules::default())?;
        let known = timeline.project(&project)?;
        let new = NewThread { current: true, ..NewThread::in_project(known.id) };
        let thread = timeline.create_thread(new, Caller::human())?.thread;
        let working_copy = WorkingCopy::at(timeline.clone(), known.id, Workspace::of(&project)?);
        let (sender, asked) = channel();
        let (sender, script) = (Arc::new(Mutex::new(sender)), script.clone());
        let server = FaultServer::start(move |_, _| {
            let now = Instant::now();
            // The receiver may be gone.
            let _ = sender.lock().map(|sender| sender.send(now));
            script.clone()
        })?;
        let backend = ModelBackend::Remote {
            endpoint: Box::new(endpoint(&server)),
            thinking: None,
            limits: retake_agent::provider::catalog::limits("test-model"),
            client: Client::new()?,
        };
        let runtime = AgentRuntime {
            timeline,
            working_copy: Some(working_copy),
            folder: project,
            project: known.id,
            backend,
            approval: Approval { mode: ApprovalMode::AllowAll, rules: Vec::new() },
            retry_policy: RetryPolicy { max_attempts: 3, initial_delay: 1, max_delay: 5 },
            rounds: 100,
            calls: 100,
            prices: Prices::default(),
            window,
            sized: true,
            actor: Actor::Human,
            environment: None,
            hidden: Vec::new(),
            post_tools: None,
        };
        Ok(Self { _folder: folder, runtime, thread, server, asked })
    }

    fn endpoint(&self) -> Endpoint {
        endpoint(&self.server)
    }

    fn new_thread(&self) -> Result<ThreadId, Box<dyn Error>> {
        let new = NewThread::in_project(self.runtime.project);
        Ok(self.runtime.timeline.create_thread(new, Caller::human())?.thread)
    }

    fn turn(&self, thread: ThreadId) -> Result<(), Box<dyn Error>> {
        let entry = EntryVersion::from_text("User", "Go on.", self.runtime.timeline.now());
        let beginning = TurnRequest::with(Prompt::Entry(entry.into()));
        let take = self.runtime.timeline.read()?.state(thread)?.active;
        let outcome = self.runtime.run(thread, take, beginning, &Cancel::new(), &mut NoObserver)?;
        match outcome.message {
            None => Ok(()),
            Some(message) => Err(message.into()),
        }
    }

    fn fill(&self, entries: u64) -> Result<(), Box<dyn Error>> {
        let take = self.runtime.timeline.read()?.state(self.thread)?.active;
        for start in (0..entries).step_by(CHUNK_BYTES as usize) {
            let entry = |number: u64| {
                let role = if number.is_multiple_of(2) { "User" } else { "AI" };
                let text = format!("Message {number} of a conversation that goes on and on.");
                NewEntry::from(EntryVersion::from_text(role, &text, self.runtime.timeline.now()))
            };
            let entries = (start..entries.min(start + CHUNK_BYTES)).map(entry).collect();
            let add = Command::AddEntries { take, at: InsertPosition::End, entries };
            self.runtime.timeline.change(self.thread, add, Caller::human())?;
        }
        Ok(())
    }
}

fn endpoint(server: &FaultServer) -> Endpoint {
    Endpoint {
        provider: "scripted".to_owned(),
        wire: Wire::Anthropic,
        dialect: Dialect::of(Wire::Anthropic),
        base_url: server.url(),
        model: "scripted-1".to_owned(),
        key: Some(Secret::new("a-key")),
        key_hint: "set SCRIPTED_KEY".to_owned(),
        headers: Vec::new(),
        timeouts: Timeouts::default(),
        platform: Platform::Direct,
        sign_in: SignIn::Key,
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
