//! A server process, and a client with its own connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::violation::BoxError;

const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

impl Server {
    /// Starts the server with this command and store.
    pub(super) fn start(mut command: Command, store: &Path) -> Result<Self, BoxError> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the server has no output")?).read_line(&mut line)?;
        let reported: Value = serde_json::from_str(&line)
            .map_err(|_| format!("the server did not start: {line:?}, {:?}", child.wait()))?;
        let address = reported["address"].as_str().ok_or("the server did not print its address")?.parse()?;
        let token = std::fs::read_to_string(store.join("serve.token"))?.trim().to_owned();
        Ok(Self { child, address, token })
    }

    /// Sends SIGKILL.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.kill();
    }
}

/// A request that changes something.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: String,
    pub(super) key: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) replayed: bool,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

pub(super) struct Client {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    head: String,
}

impl Client {
    pub(super) fn connect(server: &Server) -> io::Result<Self> {
        Self::to(server.address, &server.token)
    }

    pub(super) fn to(address: SocketAddr, token: &str) -> io::Result<Self> {
        let writer = TcpStream::connect(address)?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        let reader = BufReader::new(writer.try_clone()?);
        let head = format!("Host: {address}\r\nAuthorization: Bearer {token}\r\n");
        Ok(Self { writer, reader, head })
    }

    pub(super) fn post(&mut self, request: &Request) -> io::Result<Reply> {
        let key = format!("Idempotency-Key: {}\r\n", request.key);
        self.send("POST", &request.path, &request.body, &key)
    }

    pub(super) fn get(&mut self, path: &str) -> io::Result<Reply> {
        self.send("GET", path, "", "")
    }

    fn send(&mut self, method: &str, path: &str, body: &str, more: &str) -> io::Result<Reply> {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{}{kind}{more}Content-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.writer.write_all(request.as_bytes())?;
        let cut_off = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let status =
            line.split_whitespace().nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut_off)?;
        let (mut length, mut replayed) = (0, false);
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(cut_off());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name {
                "content-length" => length = value.parse().map_err(|_| cut_off())?,
                "idempotency-replayed" => replayed = true,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).map_err(|_| cut_off())?;
        Ok(Reply { status, replayed, body })
    }
}
