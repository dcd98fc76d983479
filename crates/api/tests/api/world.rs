//! A world of its own for each test: a store, a project's folder, and servers over both.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use retake_agent::provider::Secret;
use retake_agent::provider::config::{KeyFileError, Surroundings};
use retake_agent::{Cancel, Setup};
use retake_api::{Limits, Options, ServeError, TokenFile};
use retake_timeline::{Clock, Rules, Timeline};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A store and a project that nobody shares.
pub(crate) struct World {
    folder: PathBuf,
    limits: Limits,
    /// Removes the folder at the end; none where it is another process's.
    _kept: Option<TempDir>,
}

/// A server that runs in this process, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Cancel,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    token: TokenFile,
}

impl World {
    /// A world with an empty project in it.
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    /// The same, where servers have these limits.
    pub(crate) fn with(limits: Limits) -> Self {
        let kept = TempDir::new().expect("there is room for a temporary folder");
        for name in ["store", "project"] {
            std::fs::create_dir(kept.path().join(name)).expect("the folder is ours");
        }
        Self { folder: kept.path().to_owned(), limits, _kept: Some(kept) }
    }

    /// A world that another process has made.
    pub(crate) fn of_another(folder: PathBuf, limits: Limits) -> Self {
        Self { folder, limits, _kept: None }
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The store's folder.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// The project's folder.
    pub(crate) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// What a file of the project holds; `None` if it is not there.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.project().join(name)).ok()
    }

    /// The file that the token is in.
    pub(crate) fn token(&self) -> TokenFile {
        TokenFile::at(self.store().join("serve.token"))
    }

    /// The store as another program sees it.
    pub(crate) fn timeline(&self) -> Timeline {
        Timeline::open(&self.store(), Rules::default()).expect("the store opens")
    }

    /// Starts a server. There may be several at once.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(Setup::default())
    }

    /// Starts a server with another setup.
    pub(crate) fn serve_with(&self, setup: Setup) -> Server {
        self.serve_over(self.timeline(), setup)
    }

    /// Starts a server with a clock of the test's.
    pub(crate) fn serve_by(&self, clock: Arc<dyn Clock>) -> Server {
        let timeline = Timeline::open_with(&self.store(), Rules::default(), clock);
        self.serve_over(timeline.expect("the store opens"), Setup::default())
    }

    fn serve_over(&self, timeline: Timeline, setup: Setup) -> Server {
        // The store is there first: a folder with something else in it does not become one.
        let token = self.token();
        token.read_or_make().expect("a token is made");
        let options = Options {
            timeline,
            setup,
            around: nothing,
            folder: self.project(),
            token: token.clone(),
            hosts: Vec::new(),
            limits: self.limits.clone(),
            pages: None,
        };
        let stop = Cancel::new();
        let (sender, receiver) = channel();
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            retake_api::serve(options, ANY_PORT, &told, |address| {
                sender.send(address).expect("the test waits for it");
            })
        });
        let address = receiver.recv_timeout(Duration::from_secs(20)).expect("the server starts");
        Server { address, stop, thread: Some(thread), token }
    }
}

/// Nothing is around: no key, so that the offline assistant answers.
fn nothing() -> Surroundings<'static> {
    fn no_file(path: &Path) -> Result<Secret, KeyFileError> {
        unreachable!("nobody asks for {}", path.display())
    }
    fn no_command(command: &str) -> Result<Secret, KeyFileError> {
        unreachable!("nobody runs {command}")
    }
    Surroundings {
        variable: &|_| None,
        key_file: &no_file,
        key_command: &no_command,
        stored_key: &|_| Ok(None),
        stored_names: &Vec::new,
    }
}

impl Server {
    /// A client with the token that holds now.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, self.token.read().expect("there is a token").secret())
    }

    /// Tells the server to stop, and does not wait.
    pub(crate) fn tell_to_stop(&self) {
        self.stop.set();
    }

    /// Stops the server; says how long that took.
    pub(crate) fn stop(mut self) -> Duration {
        let begun = Instant::now();
        self.stop.set();
        let thread = self.thread.take().expect("it runs until it is stopped");
        thread.join().expect("a server does not panic").expect("a server stops without a failure");
        begun.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A test that failed already says why.
            let _ = thread.join();
        }
    }
}

/// What tests do first, most of the time.
impl Client {
    /// Makes a thread; gives its id.
    pub(crate) fn thread(&self, title: &str) -> String {
        let done = self.post("/v1/threads", &json!({"title": title})).done();
        done["thread"].as_str().expect("an id").to_owned()
    }

    /// Adds an entry to a thread; gives what came of it.
    pub(crate) fn say(&self, thread: &str, role: &str, content: &str) -> Value {
        let body = json!({"entries": [{"role": role, "content": content}]});
        self.post(&format!("/v1/threads/{thread}/entries"), &body).done()
    }

    /// The entries of a thread's active take, all of them.
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

    /// A thread's version.
    pub(crate) fn version(&self, thread: &str) -> u64 {
        self.get(&format!("/v1/threads/{thread}/undo-status")).done()["version"].as_u64().expect("a number")
    }

    /// Begins a turn in which tools may write files; gives what came of it.
    pub(crate) fn prompt(&self, thread: &str, prompt: &str) -> Value {
        let body = json!({"prompt": prompt, "approve": "edits"});
        self.post(&format!("/v1/threads/{thread}/turns"), &body).done()
    }

    /// What the agent of a thread's active take does.
    pub(crate) fn turn(&self, thread: &str) -> Value {
        self.get(&format!("/v1/threads/{thread}/turn")).done()
    }

    /// Waits until no turn runs in a thread's active take.
    pub(crate) fn idle(&self, thread: &str) {
        until("the turn is over", || self.turn(thread)["running"] == false);
    }

    /// How far the log is.
    pub(crate) fn sequence(&self) -> i64 {
        self.get("/health").done()["sequence"].as_i64().expect("a number")
    }
}

/// Waits until something holds; it must within half a minute.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it was waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}
