//! The attacking server, and a host that no client may contact.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use retake_agent::provider::Wire;

use super::Attack;
use super::attack::ordinary;

/// Attacks on the first request, and answers all others correctly.
pub(super) struct HostileServer {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
}

impl HostileServer {
    pub(super) fn start(attack: Option<Attack>, wire: Wire, elsewhere: String) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (sent, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, ended) = (Arc::clone(&sent), Arc::clone(&stopped));
        std::thread::spawn(move || {
            let mut attack = attack;
            for connection in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                // An attack should end with the client closing the connection.
                drop(answer(connection, attack.take(), wire, &elsewhere, &counted, &ended));
            }
        });
        Ok(Self { address, sent, stopped })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

fn answer(
    connection: TcpStream,
    attack: Option<Attack>,
    wire: Wire,
    elsewhere: &str,
    sent: &AtomicU64,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let mut connection = connection;
    let mut send = |bytes: &[u8]| {
        sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        connection.write_all(bytes)
    };
    let Some(attack) = attack else {
        send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
        return ordinary(wire).iter().try_for_each(|data| send(format!("data: {data}\n\n").as_bytes()));
    };
    send(attack.head(elsewhere).as_bytes())?;
    for number in 0.. {
        let Some(piece) = attack.piece(wire, number) else { break };
        send(&piece)?;
        if ended.load(Ordering::Relaxed) {
            break;
        }
        if attack == Attack::SlowDrip {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Another host, which must never receive a key.
pub(super) struct ElsewhereServer {
    address: SocketAddr,
    visits: Arc<AtomicU64>,
}

impl ElsewhereServer {
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let visits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&visits);
        std::thread::spawn(move || {
            for mut connection in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
            }
        });
        Ok(Self { address, visits })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn visits(&self) -> u64 {
        self.visits.load(Ordering::SeqCst)
    }

    /// Connects like a client that follows a redirect.
    pub(super) fn visit(&self) -> std::io::Result<()> {
        let mut connection = TcpStream::connect(self.address)?;
        connection.write_all(b"POST /stolen HTTP/1.1\r\nconnection: close\r\n\r\n")?;
        while self.visits() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
