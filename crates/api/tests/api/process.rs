//! A server in a separate process, so that tests can measure its memory and kill it.
//!
//! The process is this test binary, running only the test that serves.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use retake_api::Limits;

use crate::http::Client;
use crate::world::World;

/// Environment variables: the folder to serve, and the timeout for slow clients.
const FOLDER: &str = "RETAKE_TEST_FOLDER";
const PATIENCE: &str = "RETAKE_TEST_PATIENCE";

/// Printed before the address.
const LISTENING: &str = "listening at ";

/// The file with the full log of the process, at the most verbose level.
pub(crate) fn log_of(world: &World) -> PathBuf {
    world.folder().join("server.log")
}

/// A server in a separate process; dropping it stops it.
pub(crate) struct Process {
    child: Child,
    /// Keeps the pipe open, so that output at shutdown does not fail.
    _output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    token: String,
}

#[test]
fn server_process_for_other_tests() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut limits = Limits::default();
    if let Some(shutdown_grace) = std::env::var(PATIENCE).ok().and_then(|millis| millis.parse().ok()) {
        let shutdown_grace = Duration::from_millis(shutdown_grace);
        limits = Limits {
            head: shutdown_grace,
            arrival: shutdown_grace,
            pause: shutdown_grace,
            write_timeout: shutdown_grace,
            ..limits
        };
    }
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(std::io::stderr)
        .init();
    let world = World::of_another(PathBuf::from(folder), limits);
    let server = world.serve();
    println!("{LISTENING}{}", server.address);
    // Serve until the parent closes stdin.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    server.stop();
}

impl Process {
    /// Starts a server with a timeout for slow clients, or with the default one.
    pub(crate) fn start(world: &World, shutdown_grace: Option<Duration>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program is there"));
        command
            .args(["process::server_process_for_other_tests", "--exact", "--nocapture", "--test-threads=1"])
            .env(FOLDER, world.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log_of(world)).expect("our folder"));
        if let Some(shutdown_grace) = shutdown_grace {
            command.env(PATIENCE, shutdown_grace.as_millis().to_string());
        }
        let mut child = command.spawn().expect("this program starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let address = loop {
            let mut line = String::new();
            assert_ne!(output.read_line(&mut line).expect("it writes text"), 0, "the server did not start");
            if let Some(at) = line.find(LISTENING) {
                break line[at + LISTENING.len()..].trim().parse().expect("an address");
            }
        };
        let token = world.token().read().expect("the server made a token").secret().to_owned();
        Self { child, _output: output, address, token }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, &self.token)
    }

    /// Peak memory in bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the system counts it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// Whether it still runs and responds correctly.
    pub(crate) fn is_well(&mut self) -> bool {
        let running = self.child.try_wait().expect("a child can be asked").is_none();
        running && self.client().get("/health").done()["status"] == "ok"
    }

    /// Kills it without a shutdown.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("a child can be waited for");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Kill it if it does not exit in time.
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
