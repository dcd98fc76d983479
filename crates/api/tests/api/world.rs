//! A separate world for each test: a store, a project folder, and servers on both.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use retake_agent::provider::Secret;
use retake_agent::provider::config::{KeyFileError, ProviderEnvironment};
use retake_agent::{Cancel, Setup};
use retake_api::{Limits, Options, ServeError, TokenFile};
use retake_timeline::{Clock, Rules, Timeline};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A store and a project for one test.
pub(crate) struct World {
    folder: PathBuf,
    limits: Limits,
    /// Removes the folder at the end; `None` if another process owns it.
    _kept: Option<TempDir>,
}

/// A server in this process; dropping it stops it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Cancel,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    token: TokenFile,
}

impl World {
    /// A world with an empty project.
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    /// Like `new`, with limits for its servers.
    pub(crate) fn with(limits: Limits) -> Self {
        let kept = TempDir::new().expect("there is room for a temporary folder");
        for name in ["store", "project"] {
            std::fs::create_dir(kept.path().join(name)).expect("the folder is ours");
        }
        Self { folder: kept.path().to_owned(), limits, _kept: Some(kept) }
    }

    /// A world that another process created.
    pub(crate) fn of_another(folder: PathBuf, limits: Limits) -> Self {
        Self { folder, limits, _kept: None }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// The content of a file of the project; `None` if missing.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.project().join(name)).ok()
    }

    pub(crate) fn token(&self) -> TokenFile {
        TokenFile::at(self.store().join("serve.token"))
    }

    /// Opens the store as another process does.
    pub(crate) fn timeline(&self) -> Timeline {
        Timeline::open(&self.store(), Rules::default()).expect("the store opens")
    }

    /// Starts a server. Several can run at once.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(Setup::default())
    }

    pub(crate) fn serve_with(&self, setup: Setup) -> Server {
        self.serve_over(self.timeline(), setup)
    }

    /// Starts a server with a clock of the test.
    pub(crate) fn serve_by(&self, clock: Arc<dyn Clock>) -> Server {
        let timeline = Timeline::open_with(&self.store(), Rules::default(), clock);
        self.serve_over(timeline.expect("the store opens"), Setup::default())
    }

    fn serve_over(&self, timeline: Timeline, setup: Setup) -> Server {
        // Create the store first: a folder with other files does not become one.
        let token = self.token();
        token.read_or_create().expect("a token is made");
        let options = Options {
            timeline,
            setup,
            provider_environment: nothing,
            folder: self.project(),
            token: token.clone(),
            hosts: Vec::new(),
            limits: self.limits.clone(),
            pages: None,
        };
        let stop = Cancel::new();
        let (sender, receiver) = channel();
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            retake_api::serve(options, ANY_PORT, &stopping, |address| {
                sender.send(address).expect("the test waits for it");
            })
        });
        let address = receiver.recv_timeout(Duration::from_secs(20)).expect("the server starts");
        Server { address, stop, thread: Some(thread), token }
    }
}

/// An environment without keys, so that the offline assistant answers.
fn nothing() -> ProviderEnvironment<'static> {
    fn no_file(path: &Path) -> Result<Secret, KeyFileError> {
        unreachable!("nobody asks for {}", path.display())
    }
    fn no_command(command: &str) -> Result<Secret, KeyFileError> {
        unreachable!("nobody runs {command}")
    }
    ProviderEnvironment {
        variable: &|_| None,
        key_file: &no_file,
        key_command: &no_command,
        stored_key: &|_| Ok(None),
        stored_names: &Vec::new,
    }
}

impl Server {
    /// A client with the current token.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, self.token.read().expect("there is a token").secret())
    }

    /// Tells the server to stop without waiting.
    pub(crate) fn tell_to_stop(&self) {
        self.stop.set();
    }

    /// Stops the server; returns how long that took.
    pub(crate) fn stop(mut self) -> Duration {
        let started = Instant::now();
        self.stop.set();
        let thread = self.thread.take().expect("it runs until it is stopped");
        thread.join().expect("a server does not panic").expect("a server stops without a failure");
        started.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A failed test has already reported why.
            let _ = thread.join();
        }
    }
}

/// Common steps of tests.
impl Client {
    /// Creates a thread; returns its id.
    pub(crate) fn thread(&self, title: &str) -> String {
        let done = self.post("/v1/threads", &json!({"title": title})).done();
        done["thread"].as_str().expect("an id").to_owned()
    }

    /// Adds an entry to a thread; returns the response.
    pub(crate) fn say(&self, thread: &str, role: &str, content: &str) -> Value {
        let body = json!({"entries": [{"role": role, "content": content}]});
        self.post(&format!("/v1/threads/{thread}/entries"), &body).done()
    }

    /// All entries of a thread's active take.
    pub(crate) fn entries(&self, thread: &str) -> Vec<Value> {
        let (mut entries, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/v1/threads/{thread}/entries?limit=500{cursor}")).done();
            entries.extend_from_slice(page["items"].as_array().expect("a list"));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return entries,
            }
        }
    }

    pub(crate) fn version(&self, thread: &str) -> u64 {
        self.get(&format!("/v1/threads/{thread}/undo-status")).done()["version"].as_u64().expect("a number")
    }

    /// Starts a turn whose tools may write files; returns the response.
    pub(crate) fn prompt(&self, thread: &str, prompt: &str) -> Value {
        let body = json!({"prompt": prompt, "approve": "edits"});
        self.post(&format!("/v1/threads/{thread}/turns"), &body).done()
    }

    /// The turn of a thread's active take.
    pub(crate) fn turn(&self, thread: &str) -> Value {
        self.get(&format!("/v1/threads/{thread}/turn")).done()
    }

    /// Waits until no turn runs in a thread's active take.
    pub(crate) fn idle(&self, thread: &str) {
        until("the turn is over", || self.turn(thread)["running"] == false);
    }

    /// The last sequence number of the log.
    pub(crate) fn sequence(&self) -> i64 {
        self.get("/health").done()["sequence"].as_i64().expect("a number")
    }
}

/// Waits until a condition holds; fails after half a minute.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    started.elapsed()
}
