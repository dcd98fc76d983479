//! The real program as a hub, with the embedded database or a real Postgres, and a balancer in front of several.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use retake_model::id::ThreadId;
use retake_sync::wire::{BundleList, BundleRow, Feed, Problem, ProblemCode};
use retake_testing::{HttpAnswer, HttpClient, PostgresServer, find_program, free_port};
use tempfile::TempDir;

use super::bundles::Push;
use super::load::{LoadTarget, PushAnswer};
use crate::violation::BoxError;

/// Which database a hub has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The one in the program.
    Sqlite,
    /// A real Postgres.
    Postgres,
}

/// Where hubs have their data.
pub(super) struct Site {
    folder: TempDir,
    pub(super) postgres: Option<PostgresServer>,
}

impl Site {
    pub(super) fn new(engine: Engine) -> Result<Self, BoxError> {
        let postgres = (engine == Engine::Postgres).then(|| PostgresServer::start(&[]));
        Ok(Self { folder: tempfile::tempdir()?, postgres })
    }

    fn command(&self) -> Result<Command, BoxError> {
        let mut command = Command::new(find_program()?);
        command.arg("hub").arg("--data").arg(self.folder.path().join("hub"));
        if let Some(postgres) = &self.postgres {
            command.env("RETAKE_HUB_DATABASE", postgres.address("hub"));
        }
        command.env("RETAKE_HOME", self.folder.path().join("store"));
        Ok(command)
    }

    /// Runs a command of the operator; returns what it prints.
    pub(super) fn administer(&self, arguments: &[&str]) -> Result<String, BoxError> {
        let output = self.command()?.args(arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    pub(super) fn start(&self, port: u16) -> Result<HubProcess, BoxError> {
        let address = format!("127.0.0.1:{port}");
        let mut command = self.command()?;
        command.args(["--json", "serve", "--log", "off", "--workers", "16", "--listen", &address]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        if line.is_empty() {
            let _ = child.kill();
            return Err(format!("the hub at {address} did not start").into());
        }
        Ok(HubProcess { child })
    }

    /// haproxy in front of hubs.
    pub(super) fn balance(&self, hubs: &[u16]) -> Result<Balancer, BoxError> {
        let port = free_port();
        let servers: Vec<String> = hubs
            .iter()
            .map(|port| format!("    server hub{port} 127.0.0.1:{port} check inter 200ms fall 2 rise 1\n"))
            .collect();
        let servers = servers.concat();
        let configuration = format!(
            "global\n    maxconn 1000\ndefaults\n    mode http\n    timeout connect 1s\n    timeout client 60s\n    \
             timeout server 60s\nfrontend devices\n    bind 127.0.0.1:{port}\n    default_backend hubs\nbackend hubs\n    \
             balance roundrobin\n    option httpchk GET /health\n    option redispatch\n    retries 3\n    retry-on \
             conn-failure empty-response 503\n{servers}"
        );
        let file = self.folder.path().join("haproxy.cfg");
        std::fs::write(&file, configuration)?;
        let child = Command::new("haproxy")
            .arg("-f")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        wait_for(address)?;
        Ok(Balancer { child, address })
    }
}

fn wait_for(address: SocketAddr) -> Result<(), BoxError> {
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        if began.elapsed() > Duration::from_secs(20) {
            return Err(format!("nothing listens at {address}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A running hub, killed when dropped.
pub(super) struct HubProcess {
    child: Child,
}

impl HubProcess {
    /// `kill -9`.
    pub(super) fn kill(mut self) -> Result<(), BoxError> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running haproxy.
pub(super) struct Balancer {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Devices of one account at a hub or a balancer.
pub(super) struct Devices {
    address: SocketAddr,
    authorization: Vec<String>,
    clients: Vec<Mutex<HttpClient>>,
    space: String,
}

/// How long a request is repeated.
const PATIENCE: Duration = Duration::from_mins(1);

impl Devices {
    /// Adds an account with so many devices.
    pub(super) fn new(site: &Site, address: SocketAddr, count: u64) -> Result<Self, BoxError> {
        site.administer(&["account", "add", "ada"])?;
        let mut authorization = Vec::new();
        for number in 0..=count {
            let token = site.administer(&["token", "add", "ada", &format!("device{number}")])?;
            authorization.push(format!("Bearer {token}"));
        }
        let clients = authorization.iter().map(|_| Mutex::new(HttpClient::new(address))).collect();
        let mut devices = Self { address, authorization, clients, space: String::new() };
        let account = devices.repeat(0, "GET", "/v1/account", b"", &AtomicU64::new(0))?.json();
        devices.space = account["spaces"][0]["id"].as_str().ok_or("no space")?.to_owned();
        Ok(devices)
    }

    /// Sends a request until it has an answer that is not temporary.
    fn repeat(
        &self,
        device: usize,
        method: &str,
        target: &str,
        body: &[u8],
        repeated: &AtomicU64,
    ) -> Result<HttpAnswer, BoxError> {
        let began = Instant::now();
        let mut client = self.clients[device].lock().unwrap_or_else(PoisonError::into_inner);
        let headers = [("authorization", self.authorization[device].as_str())];
        loop {
            match client.send(method, target, &headers, body) {
                Ok(answer) if answer.status < 500 && answer.status != 429 => return Ok(answer),
                answer => {
                    if began.elapsed() > PATIENCE {
                        let shown =
                            answer.map_or_else(|error| error.to_string(), |answer| answer.status.to_string());
                        return Err(format!(
                            "{method} {target} at {}: {shown} for {PATIENCE:?}",
                            self.address
                        )
                        .into());
                    }
                }
            }
            repeated.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/s/{}/{rest}", self.space)
    }

    /// The device that only reads.
    fn reader(&self) -> usize {
        self.clients.len() - 1
    }
}

fn decode<T: serde::de::DeserializeOwned>(answer: &HttpAnswer) -> Result<T, BoxError> {
    let shown = || format!("HTTP {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).map_err(|_| shown().into())
}

impl LoadTarget for Devices {
    fn push(&self, writer: u64, push: &Push, repeated: &AtomicU64) -> Result<PushAnswer, BoxError> {
        let target = self.path(&format!("t/{}/push", push.thread));
        let answer = self.repeat(writer as usize, "POST", &target, &push.body(), repeated)?;
        match answer.status {
            200 => Ok(PushAnswer::Added),
            409 => {
                let problem: Problem = decode(&answer)?;
                if problem.code != ProblemCode::Moved {
                    return Err(problem.message.into());
                }
                Ok(PushAnswer::Moved(problem.head))
            }
            _ => Err(format!("a push was answered with {}: {}", answer.status, answer.json()).into()),
        }
    }

    fn log(&self, thread: ThreadId, repeated: &AtomicU64) -> Result<Vec<BundleRow>, BoxError> {
        let mut rows: Vec<BundleRow> = Vec::new();
        loop {
            let after = rows.last().map_or(0, |row| row.number);
            let target = self.path(&format!("t/{thread}/log?after={after}"));
            let answer = self.repeat(self.reader(), "GET", &target, b"", repeated)?;
            if answer.status == 404 {
                return Ok(rows);
            }
            let page: BundleList = decode(&answer)?;
            rows.extend(page.bundles);
            if !page.more {
                return Ok(rows);
            }
        }
    }

    fn bundle(&self, thread: ThreadId, row: &BundleRow) -> Result<Vec<u8>, BoxError> {
        let target = self.path(&format!("t/{thread}/b/{}/{}", row.number, row.bundle));
        Ok(self.repeat(self.reader(), "GET", &target, b"", &AtomicU64::new(0))?.body)
    }

    fn feed(&self) -> Result<Vec<(u64, ThreadId)>, BoxError> {
        let mut events = Vec::new();
        loop {
            let after = events.last().map_or(0, |(seq, _)| *seq);
            let target = self.path(&format!("feed?after={after}"));
            let page: Feed = decode(&self.repeat(self.reader(), "GET", &target, b"", &AtomicU64::new(0))?)?;
            if page.events.is_empty() {
                return Ok(events);
            }
            events.extend(page.events.iter().map(|event| (event.seq, event.thread)));
        }
    }
}
