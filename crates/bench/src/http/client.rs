//! A minimal client: one connection, sequential requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::Outcome;

pub(crate) struct Client {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    head: String,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, token: &str) -> Outcome<Self> {
        let writer = TcpStream::connect(address)?;
        writer.set_nodelay(true)?;
        let reader = BufReader::new(writer.try_clone()?);
        let head = format!("Host: {address}\r\nAuthorization: Bearer {token}\r\n");
        Ok(Self { writer, reader, head })
    }

    /// Sends a request and returns the answer; anything but success is an error.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<Vec<u8>> {
        self.send(method, path, body, "")
    }

    /// The same with an idempotency key.
    pub(crate) fn ask_once(&mut self, path: &str, body: &str, key: &str) -> Outcome<Vec<u8>> {
        self.send("POST", path, body, &format!("Idempotency-Key: {key}\r\n"))
    }

    fn send(&mut self, method: &str, path: &str, body: &str, more: &str) -> Outcome<Vec<u8>> {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{}{kind}{more}Content-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.writer.write_all(request.as_bytes())?;
        let (status, length) = self.head()?;
        let mut answer = vec![0; length.ok_or("an answer without a length")?];
        self.reader.read_exact(&mut answer)?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer)).into())
    }

    /// Opens an event stream and returns its lines.
    pub(crate) fn stream(mut self, path: &str) -> Outcome<impl BufRead + use<>> {
        let request = format!("GET {path} HTTP/1.1\r\n{}\r\n", self.head);
        self.writer.write_all(request.as_bytes())?;
        match self.head()? {
            (200, _) => Ok(self.reader),
            (status, _) => Err(format!("{path}: {status}").into()),
        }
    }

    fn head(&mut self) -> Outcome<(u16, Option<usize>)> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let status = line.split_whitespace().nth(1).ok_or("no status")?.parse()?;
        let mut length = None;
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            if line.trim_end().is_empty() {
                return Ok((status, length));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
    }
}
