//! Incremental reading of responses: head, chunks, events.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{PATIENCE, malformed};

/// An open event stream.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    /// Received, but not yet parsed.
    text: String,
    events: VecDeque<Event>,
    over: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<i64>,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Stream {
    pub(super) fn read(asked: &str, connection: TcpStream) -> Self {
        let mut reader = BufReader::new(connection);
        let (status, _) = read_head(&mut reader).unwrap_or_else(|error| panic!("{asked}: {error}"));
        let (text, events) = (String::new(), VecDeque::new());
        Self { reader, text, events, over: status != 200 }
    }

    /// The next event; `None` if the stream ended or the time is up.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Event> {
        let until = Instant::now() + within;
        while self.events.is_empty() && !self.over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // The timeout applies only between chunks, so that none is lost half read.
            self.set_timeout(left);
            match self.reader.fill_buf() {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => self.over = true,
                Ok(_) => {
                    self.set_timeout(PATIENCE);
                    match read_chunk(&mut self.reader) {
                        Ok(Some(piece)) => self.take_in(&piece),
                        Ok(None) | Err(_) => self.over = true,
                    }
                }
            }
        }
        self.events.pop_front()
    }

    /// The next operation; skips other events.
    pub(crate) fn next_operation(&mut self, within: Duration) -> Option<Event> {
        let until = Instant::now() + within;
        loop {
            let event = self.next(until.saturating_duration_since(Instant::now()))?;
            if event.kind == "operation" {
                return Some(event);
            }
        }
    }

    /// Whether the server has closed the stream.
    pub(crate) fn is_over(&self) -> bool {
        self.over && self.events.is_empty()
    }

    fn set_timeout(&self, longest: Duration) {
        self.reader.get_ref().set_read_timeout(Some(longest)).expect("a socket takes a time");
    }

    fn take_in(&mut self, piece: &[u8]) {
        self.text.push_str(std::str::from_utf8(piece).expect("events are text, and pieces are whole events"));
        while let Some(end) = self.text.find("\n\n") {
            let block: String = self.text.drain(..end + 2).collect();
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            // A comment is a keep-alive.
            let Some(data) = field("data: ") else { continue };
            self.events.push_back(Event {
                id: field("id: ").map(|id| id.parse().expect("an id is a number")),
                kind: field("event: ").unwrap_or("message").to_owned(),
                data: serde_json::from_str(data).expect("data is JSON"),
            });
        }
    }
}

/// Reads the status and the headers of a response.
pub(super) fn read_head(reader: &mut BufReader<TcpStream>) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let first = read_line(reader)?;
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| malformed(&format!("{first:?} is no status")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header has a colon"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// Reads the next chunk of a body; `None` at its end.
pub(super) fn read_chunk(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let length = read_line(reader)?;
    let length = usize::from_str_radix(&length, 16).map_err(|_| malformed("a chunk has a length"))?;
    let mut piece = vec![0; length];
    reader.read_exact(&mut piece)?;
    read_line(reader)?;
    Ok(if length == 0 { None } else { Some(piece) })
}

fn read_line(reader: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let line = line.strip_suffix("\r\n").ok_or_else(|| malformed("a line is whole"))?;
    Ok(line.to_owned())
}
