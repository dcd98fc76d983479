//! A small S3 server with faults: it delays, cuts, halves and repeats.
//!
//! ```text
//!   request ─► refused before it is handled
//!           ─► handled, and the answer lost or cut in the middle
//!           ─► handled twice, as by a proxy that repeats it
//!           ─► answered with 503
//! ```
//!
//! It keeps every byte that it received.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::rng::Rng;
use crate::violation::BoxError;

/// Which faults the server has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Faults {
    None,
    Random,
}

struct Inside {
    objects: BTreeMap<String, Vec<u8>>,
    received: Vec<Vec<u8>>,
    faults: Faults,
    random: Rng,
    stopped: bool,
}

pub(super) struct BucketServer {
    address: SocketAddr,
    inside: Arc<Mutex<Inside>>,
}

/// A request, as it came.
struct Request {
    method: String,
    target: String,
    only_new: bool,
    body: Vec<u8>,
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Dropped,
    AnswerLost,
    AnswerHalved,
    Repeated,
    Busy,
}

impl BucketServer {
    pub(super) fn start(seed: u64) -> Result<Self, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let inside = Arc::new(Mutex::new(Inside {
            objects: BTreeMap::new(),
            received: Vec::new(),
            faults: Faults::None,
            random: Rng::new(seed ^ 0xb0c4_e75e),
            stopped: false,
        }));
        let shared = Arc::clone(&inside);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if lock(&shared).stopped {
                    return;
                }
                let shared = Arc::clone(&shared);
                // A connection that breaks is one of the faults.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Ok(Self { address, inside })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn set(&self, faults: Faults) {
        lock(&self.inside).faults = faults;
    }

    pub(super) fn image(&self) -> BTreeMap<String, Vec<u8>> {
        lock(&self.inside).objects.clone()
    }

    pub(super) fn restore(&self, image: BTreeMap<String, Vec<u8>>) {
        lock(&self.inside).objects = image;
    }

    /// Every request, with its headers.
    pub(super) fn received(&self) -> Vec<Vec<u8>> {
        lock(&self.inside).received.clone()
    }
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        lock(&self.inside).stopped = true;
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(inside: &Mutex<Inside>) -> MutexGuard<'_, Inside> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, inside: &Mutex<Inside>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = read(&mut reader, inside)? {
        let (fate, delay) = lock(inside).fate();
        std::thread::sleep(delay);
        let answer = match fate {
            Fate::Dropped => return Ok(()),
            Fate::Busy => (503, Vec::new()),
            Fate::Repeated => {
                lock(inside).handle(&request);
                lock(inside).handle(&request)
            }
            Fate::Answered | Fate::AnswerLost | Fate::AnswerHalved => lock(inside).handle(&request),
        };
        let (status, body) = answer;
        let mut text = format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        text.extend_from_slice(&body);
        match fate {
            Fate::AnswerLost => return Ok(()),
            Fate::AnswerHalved => {
                let half = text.len() / 2;
                return writer.write_all(&text[..half]);
            }
            _ => writer.write_all(&text)?,
        }
    }
    Ok(())
}

/// The next request; `None` at the end of the connection.
fn read(reader: &mut BufReader<TcpStream>, inside: &Mutex<Inside>) -> std::io::Result<Option<Request>> {
    let (mut head, mut length, mut only_new) = (Vec::new(), 0, false);
    let mut first = String::new();
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_ascii_lowercase();
        if first.is_empty() {
            first = String::from_utf8_lossy(&line).trim_end().to_owned();
        }
        head.extend_from_slice(&line);
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        only_new |= text.starts_with("if-none-match:");
        if text.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut all = head;
    all.extend_from_slice(&body);
    lock(inside).received.push(all);
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    Ok(Some(Request { method: method.to_owned(), target: target.to_owned(), only_new, body }))
}

impl Inside {
    fn fate(&mut self) -> (Fate, Duration) {
        if self.faults != Faults::Random {
            return (Fate::Answered, Duration::ZERO);
        }
        let delay = Duration::from_micros(self.random.below(500));
        let fate = match self.random.below(60) {
            0 | 1 => Fate::Dropped,
            2 => Fate::AnswerLost,
            3 => Fate::AnswerHalved,
            4..=8 => Fate::Repeated,
            9 => Fate::Busy,
            _ => Fate::Answered,
        };
        (fate, delay)
    }

    fn handle(&mut self, request: &Request) -> (u16, Vec<u8>) {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let name = path.strip_prefix("/threads/").unwrap_or(path).to_owned();
        match request.method.as_str() {
            "GET" if query.contains("list-type=2") => (200, self.list(query)),
            "GET" => match self.objects.get(&name) {
                Some(bytes) => (200, bytes.clone()),
                None => (404, b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
            },
            "PUT" => {
                if request.only_new && self.objects.contains_key(&name) {
                    return (412, Vec::new());
                }
                self.objects.insert(name, request.body.clone());
                (200, Vec::new())
            }
            "DELETE" => {
                self.objects.remove(&name);
                (204, Vec::new())
            }
            _ => (405, Vec::new()),
        }
    }

    fn list(&self, query: &str) -> Vec<u8> {
        let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or_default();
        let prefix = prefix.replace("%2F", "/");
        let mut text = String::from("<ListBucketResult>");
        let mut last = String::new();
        for name in self.objects.keys().filter(|name| name.starts_with(&prefix)) {
            match name[prefix.len()..].split_once('/') {
                Some((folder, _)) if last != folder => {
                    last = folder.to_owned();
                    for part in ["<CommonPrefixes><Prefix>", &prefix, folder, "/</Prefix></CommonPrefixes>"] {
                        text.push_str(part);
                    }
                }
                Some(_) => {}
                None => {
                    for part in ["<Contents><Key>", name, "</Key></Contents>"] {
                        text.push_str(part);
                    }
                }
            }
        }
        text += "</ListBucketResult>";
        text.into_bytes()
    }
}
