//! A small HTTP client: one connection, requests one after another.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection that is opened when needed.
pub struct HttpClient {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers, with names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl HttpClient {
    /// A client of a server.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }

    /// Sends a request. An error means that nothing is known of what the server did.
    pub fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<HttpAnswer> {
        let sent = self.try_to_send(method, target, headers, body);
        if sent.as_ref().map_or(true, |answer| answer.header("connection") == Some("close")) {
            self.connection = None;
        }
        sent
    }

    fn try_to_send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<HttpAnswer> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(70)))?;
                none.insert(BufReader::new(stream))
            }
        };
        let (address, length) = (self.address, body.len());
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let lines = lines.concat();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {address}\r\n{lines}content-length: {length}\r\n\r\n"
        );
        connection.get_mut().write_all(&[head.as_bytes(), body].concat())?;
        read_answer(connection, method)
    }
}

fn read_answer(connection: &mut BufReader<TcpStream>, method: &str) -> std::io::Result<HttpAnswer> {
    let broken = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(broken());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut answer = HttpAnswer { status, headers, body: Vec::new() };
    let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    if method != "HEAD" && status != 204 {
        answer.body.resize(length, 0);
        connection.read_exact(&mut answer.body)?;
    }
    Ok(answer)
}
