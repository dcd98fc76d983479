//! A client that sends arbitrary requests, valid or not, and parses responses strictly.
//!
//! Each request uses a new connection, so that nothing is retried implicitly.

mod stream;

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

pub(crate) use stream::Stream;

/// Longer than any request takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A client with a token.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    token: String,
}

/// A request under construction.
#[derive(Clone)]
pub(crate) struct Request {
    address: SocketAddr,
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The request, for messages.
    asked: String,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        Self { address, token: token.to_owned() }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A request with the required headers.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request {
            address: self.address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![
                ("Host".to_owned(), self.address.to_string()),
                ("Authorization".to_owned(), format!("Bearer {}", self.token)),
            ],
            body: Vec::new(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path).send()
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path).send()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path).json(body).send()
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.request("PUT", path).json(body).send()
    }

    /// Opens the event stream after a sequence number.
    pub(crate) fn events(&self, after: i64) -> Stream {
        self.request("GET", &format!("/v1/events?after={after}")).open()
    }
}

impl Request {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets a header, replacing one of the same name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        let mut request = self.without(name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    }

    /// Removes a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Sets a JSON body.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().as_bytes())
    }

    /// Sets a body and its content type.
    pub(crate) fn body(self, kind: &str, body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..self.header("Content-Type", kind) }
    }

    /// Expects the thread to be at a version.
    pub(crate) fn if_match(self, version: u64) -> Self {
        self.header("If-Match", &format!("\"{version}\""))
    }

    /// Sets the idempotency key.
    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    /// Sends the request and reads the response.
    pub(crate) fn send(&self) -> Answer {
        self.try_send().unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.path))
    }

    /// Sends the request and reads the response; fails if the server does not respond.
    pub(crate) fn try_send(&self) -> std::io::Result<Answer> {
        let mut connection = connect(self.address)?;
        connection.write_all(&self.head(true))?;
        // A server that has already refused need not read the body.
        let _ = connection.write_all(&self.body);
        read_answer(&self.asked(), &mut BufReader::new(connection))
    }

    /// Sends the request and reads a response without a body.
    pub(crate) fn send_head(&self) -> Answer {
        let mut connection = connect(self.address).expect("the server listens");
        connection.write_all(&self.head(true)).expect("the server reads");
        let (status, headers) = stream::read_head(&mut BufReader::new(connection)).expect("an answer");
        Answer { asked: self.asked(), status, headers, body: Vec::new() }
    }

    /// Sends the request and opens an event stream.
    pub(crate) fn open(&self) -> Stream {
        let mut connection = connect(self.address).expect("the server listens");
        connection.write_all(&self.head(true)).expect("the server reads");
        Stream::read(&self.asked(), connection)
    }

    /// Like `open`, with a small receive buffer, so that the server soon notices a client that does not read.
    pub(crate) fn open_narrow(&self) -> Stream {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let connection = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(4096)?;
            socket.connect(self.address).await?.into_std()
        });
        let mut connection = connection.expect("the server listens");
        connection.set_nonblocking(false).expect("a socket can wait");
        connection.write_all(&self.head(true)).expect("the server reads");
        Stream::read(&self.asked(), connection)
    }

    /// The request line and the headers, as sent.
    pub(crate) fn head(&self, with_length: bool) -> Vec<u8> {
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.path)];
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        if with_length && (!self.body.is_empty() || self.method != "GET") {
            lines.push(format!("Content-Length: {}", self.body.len()));
        }
        format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
    }

    fn asked(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().find(named).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error} in {:?}", self.asked, self.text()))
    }

    /// The code of the problem; empty for other responses.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The body of a successful response; fails the test otherwise.
    #[track_caller]
    pub(crate) fn done(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {} {}", self.asked, self.status, self.text());
        self.json()
    }

    /// The problem of a refused request; fails the test if it is not refused with this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let found = (self.status, self.code());
        assert_eq!(found, (status, code.to_owned()), "{}: {}", self.asked, self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.asked);
        let problem = self.json();
        for field in ["type", "title", "detail", "action"] {
            let is_stated = problem[field].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_stated, "{}: a problem has no {field}: {problem}", self.asked);
        }
        assert_eq!(problem["status"], status, "{}", self.asked);
        problem
    }
}

/// A connection with a long timeout.
pub(crate) fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Sends raw bytes and reads one response.
pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> std::io::Result<Answer> {
    let mut connection = connect(address)?;
    connection.write_all(bytes)?;
    read_answer("bytes", &mut BufReader::new(connection))
}

/// Reads one response; for an unbounded body only its head.
pub(crate) fn read_answer(asked: &str, reader: &mut BufReader<TcpStream>) -> std::io::Result<Answer> {
    let (status, headers) = stream::read_head(reader)?;
    let mut answer = Answer { asked: asked.to_owned(), status, headers, body: Vec::new() };
    if answer.header("content-type") == Some("text/event-stream") {
        return Ok(answer);
    }
    if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().map_err(|_| malformed("a length is a number"))?;
        answer.body = vec![0; length];
        reader.read_exact(&mut answer.body)?;
    } else if answer.header("transfer-encoding").is_some() {
        while let Some(mut piece) = stream::read_chunk(reader)? {
            answer.body.append(&mut piece);
        }
    } else {
        return Err(malformed("an answer says how long it is"));
    }
    Ok(answer)
}

fn malformed(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned())
}
