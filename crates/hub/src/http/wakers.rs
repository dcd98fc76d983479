//! Wakes the devices that wait for news of a space.
//!
//! A push in this process wakes them at once. What other processes did is found by one small query every quarter of a
//! second, for all spaces with waiting devices: how far their feeds are, and whether anybody's access has changed. So a
//! revoked token ends its streams within a second on every hub.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::database::{DatabaseError, Value};
use crate::error::HubError;
use crate::service::Hub;

/// Between two polls of the database.
const PAUSE: Duration = Duration::from_millis(250);
/// Between two checks whether the server stops.
const TICK: Duration = Duration::from_millis(50);
/// Spaces of one query.
const CHUNK: usize = 50;

#[derive(Default)]
pub(super) struct Wakers {
    spaces: Mutex<HashMap<String, Waiting>>,
}

struct Waiting {
    sender: watch::Sender<u64>,
    seq: Option<u64>,
}

impl Wakers {
    /// News of a space, from now on.
    pub(super) fn subscribe(&self, space: &str) -> watch::Receiver<u64> {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Waiting { sender: watch::channel(0).0, seq: None };
        spaces.entry(space.to_owned()).or_insert_with(new).sender.subscribe()
    }

    /// Wakes those who wait for a space.
    pub(super) fn wake(&self, space: &str) {
        let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = spaces.get(space) {
            waiting.sender.send_modify(|count| *count += 1);
        }
    }

    /// Wakes everybody.
    pub(super) fn wake_all(&self) {
        let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.values().for_each(|waiting| waiting.sender.send_modify(|count| *count += 1));
    }

    /// Reads the database once. `access` is the counter as it was seen last.
    pub(super) fn poll(&self, hub: &Hub, access: &mut Option<i64>) -> Result<(), HubError> {
        let names: Vec<String> = {
            let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
            spaces.retain(|_, waiting| waiting.sender.receiver_count() > 0);
            spaces.keys().cloned().collect()
        };
        if names.is_empty() {
            *access = None;
            return Ok(());
        }
        let (now, found) = hub.read(|connection| {
            let row = connection.row("SELECT value FROM counter WHERE name = 'access'", &[])?;
            let access = row.ok_or(DatabaseError::Shape)?.int(0)?;
            let mut found = Vec::new();
            for chunk in names.chunks(CHUNK) {
                // Always the same statement, which is prepared once.
                let marks: Vec<String> = (1..=CHUNK).map(|at| format!("${at}")).collect();
                let sql = format!("SELECT id, seq FROM space WHERE id IN ({})", marks.join(", "));
                let mut values: Vec<Value> = chunk.iter().map(Value::from).collect();
                values.resize(CHUNK, Value::from(""));
                for row in connection.query(&sql, &values)? {
                    found.push((row.text(0)?.to_owned(), row.count(1)?));
                }
            }
            Ok((access, found))
        })?;
        if access.replace(now).is_none_or(|before| before != now) {
            self.wake_all();
        }
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        for (space, seq) in found {
            let Some(waiting) = spaces.get_mut(&space) else { continue };
            if waiting.seq.replace(seq) != Some(seq) {
                waiting.sender.send_modify(|count| *count += 1);
            }
        }
        Ok(())
    }
}

/// Reads the database until the server stops, and ends the streams then.
pub(super) fn watch(wakers: &Wakers, hub: &Hub, stop: &AtomicBool, stopping: &watch::Sender<bool>) {
    let (mut access, mut polled) = (None, Instant::now());
    while !stop.load(Ordering::SeqCst) {
        if polled.elapsed() >= PAUSE {
            if let Err(error) = wakers.poll(hub, &mut access) {
                tracing::warn!(%error, "cannot poll for news");
            }
            polled = Instant::now();
        }
        std::thread::sleep(TICK);
    }
    stopping.send_replace(true);
}
