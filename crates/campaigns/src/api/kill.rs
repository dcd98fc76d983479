//! Kills the real server while several clients write, restarts it, and compares its state with the acknowledgements.
//!
//! Every request has an idempotency key. A request answered before the kill must get the same answer again; a request
//! cut off by the kill is repeated and must be executed exactly once. Afterwards no turn, no file move and no temporary
//! file may be left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use retake_model::id::RequestId;
use retake_store::ThreadFilter;
use retake_timeline::{Rules, Timeline};
use serde_json::{Value, json};

use super::wire::{Client, Reply, Request, Server};
use crate::concurrent_processes::paths_written;
use crate::folder::Folder;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

/// A store is replaced after this many kills.
const KILLS_PER_STORE: u64 = 10;
/// A server is killed after at most this many answers.
const MAX_ANSWERS: u64 = 60;
/// Longest time to wait for a turn, and for the answers before a kill.
const TURN_TIMEOUT: Duration = Duration::from_mins(1);

/// The size of a run, and the interpretation of unanswered requests.
#[derive(Clone, Copy, Debug)]
pub struct ApiKillPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of kills.
    pub kills: u64,
    /// Number of concurrent clients.
    pub clients: usize,
    /// How an unanswered request is interpreted.
    pub cut_off: UnansweredRequest,
}

/// How an unanswered request is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnansweredRequest {
    /// Executed or not.
    Unknown,
    /// Executed: the control.
    Done,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiKillSummary {
    /// Number of kills.
    pub kills: u64,
    /// Changes that were acknowledged before a kill and answered identically after it.
    pub acknowledged: u64,
    /// Requests that a kill cut off.
    pub cut_off: u64,
    /// How many of them had been executed.
    pub recovered: u64,
    /// Turns that a client saw end.
    pub turns: u64,
    /// Interrupted turns that were resumed.
    pub resumed: u64,
    /// Interrupted turns that were closed.
    pub closed: u64,
}

/// Runs the campaign.
pub fn api_kill(plan: ApiKillPlan) -> Result<ApiKillSummary, CampaignError> {
    let mut rng = Rng::new(plan.seed);
    let mut kills = ApiKillSummary::default();
    while kills.kills < plan.kills {
        let mut world = World::new(plan, rng.split())?;
        for _ in 0..KILLS_PER_STORE.min(plan.kills - kills.kills) {
            kills.kills += 1;
            world.round(&mut kills).map_err(|failed| world.judged(failed, kills.kills))?;
        }
        world.end().map_err(|failed| world.judged(failed, kills.kills))?;
    }
    Ok(kills)
}

enum RoundError {
    /// A broken promise.
    Broken(String),
    /// An error of the campaign itself.
    Trouble(BoxError),
}

impl<E: Into<BoxError>> From<E> for RoundError {
    fn from(error: E) -> Self {
        Self::Trouble(error.into())
    }
}

fn broken_promise<T>(what: impl Into<String>) -> Result<T, RoundError> {
    Err(RoundError::Broken(what.into()))
}

struct World {
    plan: ApiKillPlan,
    rng: Rng,
    writers: Vec<Writer>,
    program: PathBuf,
    scratch: ScratchDir,
}

/// A client that writes to its own thread and to a shared one.
struct Writer {
    name: String,
    own: String,
    shared: String,
    rng: Rng,
    number: u64,
    /// The last entry of its own thread.
    entry: Option<String>,
    /// Requests since the last kill.
    asked: Vec<RecordedRequest>,
    /// Acknowledged operations, by thread.
    operations: BTreeMap<String, Vec<String>>,
    /// Keys of executed requests.
    keys: Vec<String>,
    /// Files of finished turns.
    files: Vec<String>,
    turns: u64,
}

/// A request and its answer; `None` if it was cut off.
struct RecordedRequest {
    request: Request,
    reply: Option<Reply>,
}

impl World {
    fn new(plan: ApiKillPlan, mut rng: Rng) -> Result<Self, BoxError> {
        let scratch = ScratchDir::for_files()?;
        for folder in ["project", "home"] {
            std::fs::create_dir(scratch.path().join(folder))?;
        }
        let program = retake_testing::find_program()?;
        let mut world = Self { plan, rng: rng.split(), writers: Vec::new(), program, scratch };
        let server = world.server()?;
        let mut client = Client::connect(&server)?;
        let mut make = |title: &str| -> Result<String, BoxError> {
            let (path, body) = ("/v1/threads".to_owned(), json!({"title": title}).to_string());
            let reply = client.post(&Request { path, body, key: format!("make-{title}") })?;
            reply.body["thread"].as_str().map(str::to_owned).ok_or_else(|| format!("{reply:?}").into())
        };
        let shared = make("shared")?;
        for number in 0..plan.clients {
            let name = format!("w{number}");
            world.writers.push(Writer {
                own: make(&name)?,
                shared: shared.clone(),
                rng: rng.split(),
                number: 0,
                entry: None,
                asked: Vec::new(),
                operations: BTreeMap::new(),
                keys: Vec::new(),
                files: Vec::new(),
                turns: 0,
                name,
            });
        }
        Ok(world)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--json")
            .current_dir(self.scratch.path().join("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .env("RETAKE_HOME", self.store())
            .env("RETAKE_CONFIG", self.scratch.path().join("config.toml"));
        command
    }

    fn store(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn server(&self) -> Result<Server, BoxError> {
        Server::start(self.command(&["serve", "--listen", "127.0.0.1:0", "--log", "off"]), &self.store())
    }

    fn judged(&self, wrong: RoundError, step: u64) -> CampaignError {
        match wrong {
            RoundError::Trouble(trouble) => CampaignError::Trouble(trouble),
            RoundError::Broken(what) => {
                Violation { campaign: "api kill", seed: self.plan.seed, step, what }.into()
            }
        }
    }

    /// Lets all clients write, kills the server, and compares its successor's state.
    fn round(&mut self, kills: &mut ApiKillSummary) -> Result<(), RoundError> {
        let mut server = self.server()?;
        // Answers are counted, not milliseconds, so that a slow machine is not killed before it did anything.
        let (answers, target) = (AtomicU64::new(0), 1 + self.rng.below(MAX_ANSWERS));
        let phase = self.rng.below(1_000) as f64 / 1_000.0;
        let (address, token) = (server.address, server.token.clone());
        let wrote: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let writing: Vec<_> = self
                .writers
                .iter_mut()
                .map(|writer| {
                    let (token, answers) = (&token, &answers);
                    scope.spawn(move || match Client::to(address, token) {
                        Ok(client) => writer.write(client, answers),
                        Err(_) => Ok(()),
                    })
                })
                .collect();
            let started = Instant::now();
            while answers.load(Ordering::Relaxed) < target && started.elapsed() < TURN_TIMEOUT {
                std::thread::sleep(Duration::from_millis(1));
            }
            // The kill falls anywhere between two answers.
            std::thread::sleep((started.elapsed() / target as u32).mul_f64(phase));
            let killed = server.kill().map_err(|error| error.to_string());
            let ended = writing
                .into_iter()
                .map(|writer| writer.join().unwrap_or_else(|_| Err("a writer panicked".to_owned())));
            ended.chain([killed]).collect()
        });
        if let Some(what) = wrote.into_iter().find_map(Result::err) {
            return broken_promise(what);
        }
        if self.plan.cut_off == UnansweredRequest::Done {
            // The control needs a request that is certainly not executed: one that is sent after the kill.
            for writer in &mut self.writers {
                let (request, _) = writer.next();
                writer.asked.push(RecordedRequest { request, reply: None });
            }
        }
        let server = self.server()?;
        let mut client = Client::connect(&server)?;
        for writer in &mut self.writers {
            writer.preview(&mut client)?;
        }
        for writer in &mut self.writers {
            writer.settle(&mut client, self.plan.cut_off, kills)?;
        }
        let running = client.get("/v1/turns")?.body;
        if running["items"].as_array().is_none_or(|items| !items.is_empty()) {
            return broken_promise(format!("turns are left behind: {running}"));
        }
        drop(server);
        self.check_state()
    }

    /// Every acknowledged operation is in the log, each request exactly once, and nothing is unfinished.
    fn check_state(&self) -> Result<(), RoundError> {
        for look in 0..2 {
            let output = self.command(&["status", "--thread", "shared"]).output()?;
            if !output.status.success() {
                return broken_promise(format!(
                    "`status` failed: {}",
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
            let answer: Value = serde_json::from_slice(&output.stdout)?;
            let paths = answer["changed"]["paths"].as_array().cloned().unwrap_or_default();
            // The first check may record files of a turn whose process died before it recorded them.
            if look > 0 && !paths.is_empty() {
                return broken_promise(format!(
                    "a second `status` finds {paths:?}, although no files changed"
                ));
            }
        }
        let folder = Folder::read(&self.scratch.path().join("project"))?;
        if let Some(left) = folder.leftovers().first() {
            return broken_promise(format!("the temporary file {} was not removed", left.display()));
        }
        let timeline = Timeline::open(&self.store(), Rules::default())?;
        let reader = timeline.read()?;
        if !reader.queries().intents()?.is_empty() {
            return broken_promise("a move of files is unfinished");
        }
        let (mut written, mut known) = (BTreeSet::new(), BTreeSet::new());
        let mut requests: BTreeMap<RequestId, u64> = BTreeMap::new();
        for row in reader.threads(&ThreadFilter::default())? {
            for stored in reader.queries().operations_back(row.number, u64::MAX, usize::MAX)? {
                known.insert((row.summary.id.to_string(), stored.id.to_string()));
                if let Some(files) = &stored.operation.files {
                    paths_written(&reader.queries(), files, &mut written)?;
                }
                if let Some(request) = stored.operation.request {
                    *requests.entry(request).or_default() += 1;
                }
            }
        }
        for writer in &self.writers {
            for (thread, operations) in &writer.operations {
                let gone = operations.iter().find(|id| !known.contains(&(thread.clone(), (*id).clone())));
                if let Some(gone) = gone {
                    return broken_promise(format!(
                        "operation {gone} was acknowledged to {}, but is missing",
                        writer.name
                    ));
                }
            }
            if let Some(gone) = writer.files.iter().find(|path| !written.contains(*path)) {
                return broken_promise(format!("a turn wrote {gone} and ended, and no operation has it"));
            }
            for key in &writer.keys {
                let times = requests.get(&RequestId::of(key.as_bytes())).copied().unwrap_or(0);
                if times != 1 {
                    return broken_promise(format!(
                        "request {key} was acknowledged, and was done {times} times"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The store verifies.
    fn end(&self) -> Result<(), RoundError> {
        let timeline = Timeline::open(&self.store(), Rules::default())?;
        let verified = timeline.store().verify(&mut |_| {})?;
        verified.problems.first().map_or(Ok(()), |problem| broken_promise(format!("verify: {problem}")))
    }
}

impl Writer {
    /// Writes until the server is killed.
    fn write(&mut self, mut client: Client, answers: &AtomicU64) -> Result<(), String> {
        loop {
            let (request, file) = self.next();
            let reply = client.post(&request).ok();
            if let Some(reply) = &reply
                && reply.status >= 500
            {
                return Err(format!("{request:?} was answered with {reply:?}"));
            }
            let alive = reply.is_some();
            answers.fetch_add(u64::from(alive), Ordering::Relaxed);
            let good = reply.as_ref().is_some_and(Reply::good);
            // A refused request changes nothing, and its key can be reused.
            if good || !alive {
                self.asked.push(RecordedRequest { request, reply });
            }
            if !alive {
                return Ok(());
            }
            if let Some(file) = file.filter(|_| good) {
                match self.wait(&mut client) {
                    Some(true) => {
                        self.turns += 1;
                        self.files.push(file);
                    }
                    Some(false) => {}
                    None => return Ok(()),
                }
            }
            if good && self.rng.once_in(4) {
                let Ok(reply) = client.get(&format!("/v1/threads/{}/entries?limit=500", self.own)) else {
                    return Ok(());
                };
                let last = reply.body["items"].as_array().and_then(|items| items.last()?["id"].as_str());
                self.entry = last.map(str::to_owned);
            }
        }
    }

    /// Waits for a turn: whether it succeeded, or `None` if the server is gone.
    fn wait(&self, client: &mut Client) -> Option<bool> {
        let until = Instant::now() + TURN_TIMEOUT;
        while Instant::now() < until {
            let now = client.get(&format!("/v1/threads/{}/turn", self.own)).ok()?.body;
            if now["running"] == false {
                return Some(now["agent"].is_null());
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        Some(false)
    }

    /// The next change, and the file that a turn writes.
    fn next(&mut self) -> (Request, Option<String>) {
        self.number += 1;
        let (name, number) = (&self.name, self.number);
        let entries = json!({"entries": [{"content": format!("{name} says {number}")}]});
        let mut thread = &self.own;
        let mut file = None;
        let (what, body) = match (self.rng.below(10), &self.entry) {
            (0..=2, _) => {
                thread = &self.shared;
                ("entries", entries)
            }
            (3 | 4, _) => {
                let path = format!("{name}/{number}.txt");
                let prompt = format!("create {path} with {number}");
                file = Some(path);
                ("turns", json!({"prompt": prompt, "approve": "edits"}))
            }
            (5, _) => ("undo", json!({})),
            (6, _) => ("redo", json!({})),
            (7, Some(entry)) => ("branch", json!({"entry": entry})),
            _ => ("entries", entries),
        };
        let (path, key) = (format!("/v1/threads/{thread}/{what}"), format!("{name}-{number}-{what}"));
        (Request { path, body: body.to_string(), key }, file)
    }

    /// Previews an undo: interrupted moves are finished and never block a preview.
    fn preview(&mut self, client: &mut Client) -> Result<(), RoundError> {
        self.number += 1;
        let path = format!("/v1/threads/{}/undo?dry_run=true", self.own);
        let key = format!("{}-{}-preview", self.name, self.number);
        let reply = client.post(&Request { path, body: "{}".to_owned(), key })?;
        let interrupted = reply.body["detail"].as_str().is_some_and(|detail| detail.contains("moved"));
        if reply.status >= 500 || interrupted {
            return broken_promise(format!("a preview after the kill was answered with {reply:?}"));
        }
        Ok(())
    }

    /// Repeats all requests from before the kill.
    fn settle(
        &mut self,
        client: &mut Client,
        cut_off: UnansweredRequest,
        kills: &mut ApiKillSummary,
    ) -> Result<(), RoundError> {
        self.close(client, kills)?;
        kills.turns += std::mem::take(&mut self.turns);
        for reported in std::mem::take(&mut self.asked) {
            let RecordedRequest { request, reply } = reported;
            let again = || format!("{request:?}");
            let Some(reply) = reply else {
                kills.cut_off += 1;
                if cut_off == UnansweredRequest::Done {
                    self.keys.push(request.key.clone());
                    continue;
                }
                let first = client.post(&request)?;
                if first.status >= 500 {
                    return broken_promise(format!(
                        "{} was interrupted, and then answered with {first:?}",
                        again()
                    ));
                }
                if first.good() {
                    kills.recovered += u64::from(first.replayed);
                    let second = client.post(&request)?;
                    if second.body["operation"] != first.body["operation"] || !second.replayed {
                        return broken_promise(format!("{}: {first:?}, and again: {second:?}", again()));
                    }
                    self.note(&request, &first);
                }
                self.close(client, kills)?;
                continue;
            };
            kills.acknowledged += 1;
            let repeated = client.post(&request)?;
            if repeated.body != reply.body || repeated.status != reply.status || !repeated.replayed {
                return broken_promise(format!(
                    "{} was answered {reply:?}, and after the kill {repeated:?}",
                    again()
                ));
            }
            self.note(&request, &reply);
        }
        Ok(())
    }

    /// Records an acknowledged change.
    fn note(&mut self, request: &Request, reply: &Reply) {
        let thread = if request.path.contains(&self.shared) { &self.shared } else { &self.own };
        if let Some(operation) = reply.body["operation"].as_str() {
            self.operations.entry(thread.clone()).or_default().push(operation.to_owned());
        }
        self.keys.push(request.key.clone());
    }

    /// Resumes or closes unfinished turns until none is left.
    fn close(&mut self, client: &mut Client, kills: &mut ApiKillSummary) -> Result<(), RoundError> {
        let home = format!("/v1/threads/{}", self.own);
        let until = Instant::now() + TURN_TIMEOUT;
        loop {
            let now = client.get(&format!("{home}/turn"))?.body;
            if now["running"] == false && now["agent"].is_null() {
                return Ok(());
            }
            if Instant::now() > until {
                return broken_promise(format!("a turn does not end: {now}"));
            }
            if now["running"] == true {
                std::thread::sleep(Duration::from_millis(3));
                continue;
            }
            self.number += 1;
            let resumes = self.rng.once_in(2);
            let (what, body) =
                if resumes { ("resume", r#"{"approve":"edits"}"#) } else { ("interrupt", "{}") };
            let (path, key) =
                (format!("{home}/turn/{what}"), format!("{}-{}-{what}", self.name, self.number));
            let reply = client.post(&Request { path, body: body.to_owned(), key })?;
            match reply.status {
                200..300 if resumes => kills.resumed += 1,
                200..300 => kills.closed += 1,
                // The turn ended between the check and the message.
                409 => {}
                _ => {
                    return broken_promise(format!(
                        "{what} of a turn that a kill left was answered with {reply:?}"
                    ));
                }
            }
        }
    }
}
