//! A scripted model server for tests.
//!
//! It listens on loopback, answers each request by a [`Script`], and records requests. Tests and campaigns
//! use it to simulate all failures of real servers.

mod chaos;
mod streams;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use chaos::{Chaos, chaos};
pub use streams::{ScriptedAnswer, call, events, text_answer};

/// A recorded request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The path, with the query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One step of an answer.
#[derive(Clone, Debug)]
pub enum ScriptStep {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Waits until the client disconnects.
    Stall,
    /// Drops the connection.
    Cut,
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Script {
    /// The status.
    pub status: u16,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
    /// The steps in order, followed by a regular end.
    pub acts: Vec<ScriptStep>,
}

impl Script {
    /// A stream of events, each in its own chunk.
    pub fn events(events: impl IntoIterator<Item = String>) -> Self {
        let acts = events.into_iter().map(|event| ScriptStep::Send(event.into_bytes())).collect();
        let kind = ("content-type".to_owned(), "text/event-stream".to_owned());
        Self { status: 200, headers: vec![kind], acts }
    }

    /// An answer without a stream.
    pub fn status(status: u16, body: &str) -> Self {
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        Self { status, headers: vec![kind], acts: vec![ScriptStep::Send(body.as_bytes().to_vec())] }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces everything after a number of steps with one step.
    #[must_use]
    pub fn with_fault_after(mut self, acts: usize, act: ScriptStep) -> Self {
        self.acts.truncate(acts);
        self.acts.push(act);
        self
    }

    /// Inserts a step after a number of steps.
    #[must_use]
    pub fn with(mut self, at: usize, act: ScriptStep) -> Self {
        self.acts.insert(at.min(self.acts.len()), act);
        self
    }

    /// Splits the bytes into chunks of a size.
    #[must_use]
    pub fn in_chunks_of(mut self, size: usize) -> Self {
        let cut = |act: ScriptStep| match act {
            ScriptStep::Send(bytes) => {
                bytes.chunks(size.max(1)).map(|piece| ScriptStep::Send(piece.to_vec())).collect()
            }
            other => vec![other],
        };
        self.acts = self.acts.into_iter().flat_map(cut).collect();
        self
    }
}

/// The server, which stops on drop.
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    disconnects: AtomicUsize,
    stopped: AtomicBool,
}

impl FaultServer {
    /// Answers requests with `respond`, which gets the request and the number of earlier ones.
    pub fn start(
        respond: impl Fn(&Request, usize) -> Script + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (known, respond) = (Arc::clone(&shared), Arc::new(respond));
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if known.stopped.load(Ordering::Relaxed) {
                    break;
                }
                known.connections.fetch_add(1, Ordering::Relaxed);
                let (known, respond) = (Arc::clone(&known), Arc::clone(&respond));
                // Many tests disconnect clients, so that connection errors are ignored.
                std::thread::spawn(move || drop(serve(connection, &known, respond.as_ref())));
            }
        });
        Ok(Self { address, shared })
    }

    /// Answers with these scripts in order and repeats the last one.
    pub fn with(scripts: Vec<Script>) -> std::io::Result<Self> {
        Self::start(move |_, before| {
            let script = scripts.get(before).or(scripts.last());
            script.cloned().unwrap_or_else(|| Script::status(500, "no script"))
        })
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The recorded requests.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Number of clients that disconnected while the server stalled.
    pub fn disconnects(&self) -> usize {
        self.shared.disconnects.load(Ordering::Relaxed)
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wake the listener with a connection.
        drop(TcpStream::connect(self.address));
    }
}

type Respond = dyn Fn(&Request, usize) -> Script + Send + Sync;

fn serve(connection: TcpStream, shared: &Shared, respond: &Respond) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection;
    while let Some(request) = read_request(&mut reader)? {
        let before = {
            let mut requests = shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(request.clone());
            requests.len() - 1
        };
        let script = respond(&request, before);
        let mut head = format!("HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n", script.status);
        let lines = script.headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]);
        head.extend(lines);
        head.push_str("\r\n");
        writer.write_all(head.as_bytes())?;
        for act in script.acts {
            match act {
                ScriptStep::Send(bytes) if bytes.is_empty() => {}
                ScriptStep::Send(bytes) => {
                    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
                    writer.write_all(&chunk)?;
                }
                ScriptStep::Pause(wait) => std::thread::sleep(wait),
                ScriptStep::Stall => {
                    wait_for_end(&mut writer, shared)?;
                    return Ok(());
                }
                ScriptStep::Cut => return writer.shutdown(Shutdown::Both),
            }
        }
        writer.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

/// Waits until the client disconnects or the server stops.
fn wait_for_end(connection: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_millis(5)))?;
    while !shared.stopped.load(Ordering::Relaxed) {
        match connection.read(&mut [0; 64]) {
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            _ => {}
        }
    }
    shared.disconnects.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut request = Request { path, ..Request::default() };
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(request))
}
