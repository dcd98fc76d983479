//! What the hub does in several steps: bytes first, then the row that refers to them.
//!
//! ```text
//!   row in `garbage` ──► object in the store ──► transaction: row of the bundle, no row in `garbage`
//!        │ a crash here leaves a row, by which the object is found and removed an hour later
//! ```

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_sync::bundle::{BundleId, BundleReader};
use retake_sync::remote::{ObjectSpace, RemoteError};
use retake_sync::wire::{PackRow, ProblemCode, PushRequest, Pushed, Role, UploadState};

use crate::access::{self, AuthorizedSpace, AuthorizedThread, Credentials};
use crate::database::{Connection, Database, DatabaseError};
use crate::error::HubError;
use crate::packs::{self, ProjectName};
use crate::redaction::{self, Replacement};
use crate::threads::{self, Body};
use crate::uploads::{self, Part};
use crate::{links, secret, values};

/// Bundles up to this size are in the row.
const INLINE_ROW: usize = 64 << 10;
/// How long an object may be without a row.
const GRACE: i64 = 60 * 60 * 1000;

/// What an operator sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The quota of new spaces, in bytes.
    pub quota: u64,
    /// The largest bundle.
    pub bundle_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { quota: 10 << 30, bundle_bytes: retake_sync::bundle::MAX_UNPACKED }
    }
}

/// The clock, in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A hub: a database, a store of large objects, and rules. Any number of processes may share the first two.
pub struct Hub {
    database: Box<dyn Database>,
    store: Box<dyn ObjectSpace>,
    clock: Clock,
    rewriting: Mutex<()>,
    /// What an operator sets.
    pub settings: Settings,
}

impl Hub {
    /// A hub on this database and store.
    pub fn new(
        database: Box<dyn Database>,
        store: Box<dyn ObjectSpace>,
        settings: Settings,
        clock: Clock,
    ) -> Self {
        Self { database, store, clock, rewriting: Mutex::default(), settings }
    }

    /// The time.
    pub fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Reads in one snapshot.
    pub fn read<T>(
        &self,
        work: impl FnMut(&mut dyn Connection) -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        self.database.read(work)
    }

    /// Changes rows in one transaction.
    pub fn write<T>(
        &self,
        work: impl FnMut(&mut dyn Connection) -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        self.database.write(work)
    }

    /// Adds a bundle. Without bytes, it was uploaded before.
    pub fn push(
        &self,
        credentials: Option<Credentials>,
        (space, thread): (&str, ThreadId),
        request: &PushRequest,
        inline: &[u8],
    ) -> Result<Pushed, HubError> {
        let now = self.now();
        let row = &request.row;
        // Authorized before the bundle is unpacked.
        let (place, content, parts) = self.read(|connection| {
            let place = access::push(connection, credentials, (space, thread))?;
            let content = redaction::content_of(connection, space, &thread.to_string())?;
            let parts = match inline {
                [] => uploads::parts(connection, place.space(), row.bundle)?,
                _ => Vec::new(),
            };
            Ok((place, content, parts))
        })?;
        if row.bytes > self.settings.bundle_bytes {
            return Err(HubError::new(ProblemCode::TooLarge, "the bundle is larger than this hub takes"));
        }
        let uploaded = inline.is_empty();
        let mut bytes = if uploaded { self.assembled(&parts)? } else { inline.to_vec() };
        check_bundle(thread, request, &bytes)?;
        let mut request = request.clone();
        if let Some(rewritten) = self.rewritten(&bytes, &content)? {
            bytes = rewritten;
            request.row.bundle = BundleId::of(&bytes);
            request.row.bytes = bytes.len() as u64;
        }
        if bytes.len() > INLINE_ROW {
            self.fits(place.space(), request.row.bytes)?;
        }
        let body = self.stored(space, bytes)?;
        self.write(|connection| {
            let place = access::push(connection, credentials, (space, thread))?;
            if redaction::content_of(connection, space, &thread.to_string())? != content {
                return Err(HubError::moved(place.state().map(|state| state.head)));
            }
            let pushed = threads::push(connection, &place, &request, &body, now)?;
            if uploaded {
                uploads::forget(connection, place.space(), row.bundle)?;
            }
            Ok(pushed)
        })
    }

    /// The bundle without redacted content; `None` if it has none of it. One at a time, because each is unpacked in memory.
    fn rewritten(&self, bytes: &[u8], content: &BTreeSet<ContentId>) -> Result<Option<Vec<u8>>, HubError> {
        if content.is_empty() {
            return Ok(None);
        }
        let _turn = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        redaction::rewrite(bytes, content)
    }

    /// Refuses early what the quota will refuse, before megabytes are stored.
    fn fits(&self, space: &AuthorizedSpace, bytes: u64) -> Result<(), HubError> {
        let sql = "SELECT id FROM space WHERE id = $1 AND bytes + $2 > quota";
        let full = self.read(|connection| Ok(connection.row(sql, values![space.id(), bytes])?))?;
        match full {
            Some(_) => Err(HubError::new(ProblemCode::Quota, "the space has no room left for these bytes")),
            None => Ok(()),
        }
    }

    /// The bytes of an upload.
    fn assembled(&self, parts: &[String]) -> Result<Vec<u8>, HubError> {
        if parts.is_empty() {
            return Err(HubError::new(ProblemCode::Refused, "the bundle was not uploaded"));
        }
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend(self.object(part)?);
        }
        Ok(bytes)
    }

    /// Makes bytes durable: small ones with their row, large ones as an object of the store.
    fn stored(&self, space: &str, bytes: Vec<u8>) -> Result<Body, HubError> {
        if bytes.len() <= INLINE_ROW {
            return Ok(Body::Inline(bytes));
        }
        Ok(Body::Stored(self.put_object(&format!("spaces/{space}/objects"), &bytes)?))
    }

    fn put_object(&self, folder: &str, bytes: &[u8]) -> Result<String, HubError> {
        let place = format!("{folder}/{}", secret::new_id());
        let now = self.now();
        self.write(|connection| {
            let sql = "INSERT INTO garbage (place, since) VALUES ($1, $2)";
            Ok(connection.execute(sql, values![&place, now])?)
        })?;
        self.store.put(&place, bytes).map_err(|error| failed(&error))?;
        Ok(place)
    }

    fn object(&self, place: &str) -> Result<Vec<u8>, HubError> {
        let found = self.store.get(place, self.settings.bundle_bytes).map_err(|error| failed(&error))?;
        found.ok_or_else(|| HubError::Store(format!("the object {place} is missing")))
    }

    /// The bytes of a bundle.
    pub fn body(&self, body: Body) -> Result<Vec<u8>, HubError> {
        match body {
            Body::Inline(bytes) => Ok(bytes),
            Body::Stored(place) => self.object(&place),
        }
    }

    /// Adds a part to an upload.
    pub fn upload(
        &self,
        credentials: Option<Credentials>,
        space: &str,
        part: Part,
        bytes: &[u8],
    ) -> Result<UploadState, HubError> {
        let limit = self.settings.bundle_bytes;
        let now = self.now();
        // Authorized and checked before anything is stored.
        self.read(|connection| {
            let space = access::space(connection, credentials, space, Role::Member)?;
            uploads::check_part(connection, &space, part, limit)
        })?;
        let place = self.put_object(&format!("spaces/{space}/uploads"), bytes)?;
        let state = self.write(|connection| {
            let space = access::space(connection, credentials, space, Role::Member)?;
            uploads::add_part(connection, &space, part, (&place, limit), now)
        })?;
        if state.complete {
            self.check_upload(credentials, space, part.id)?;
        }
        Ok(state)
    }

    /// A complete upload has the hash that is its name, or is forgotten.
    fn check_upload(
        &self,
        credentials: Option<Credentials>,
        space: &str,
        id: BundleId,
    ) -> Result<(), HubError> {
        let parts = self.read(|connection| {
            let space = access::space(connection, credentials, space, Role::Member)?;
            uploads::parts(connection, &space, id)
        })?;
        let mut hasher = blake3::Hasher::new();
        for part in &parts {
            hasher.update(&self.object(part)?);
        }
        if hasher.finalize().as_bytes() == id.bytes() {
            return Ok(());
        }
        self.write(|connection| {
            let space = access::space(connection, credentials, space, Role::Member)?;
            uploads::forget(connection, &space, id)
        })?;
        Err(HubError::new(ProblemCode::Refused, "the uploaded bytes do not have the hash that is their name"))
    }

    /// Removes content from every bundle of a thread, and refuses it from now on. A bundle that cannot be read stays, and is
    /// named in the error after all others are done.
    pub fn redact(
        &self,
        credentials: Option<Credentials>,
        place: (&str, ThreadId),
        content: &[ContentId],
    ) -> Result<(), HubError> {
        let now = self.now();
        let authorize = |connection: &mut dyn Connection| -> Result<AuthorizedThread, HubError> {
            access::thread(connection, credentials, place, Role::Member, now)
        };
        self.write(|connection| {
            let thread = authorize(connection)?;
            redaction::begin(connection, &thread, content, now)
        })?;
        // A push that began before the line above is done or fails: it changes the row of the thread, as that line does.
        let (mut after, mut unreadable) = (0, Vec::new());
        loop {
            let (bundles, content) = self.read(|connection| {
                let thread = authorize(connection)?;
                let content = redaction::content_of(connection, place.0, &place.1.to_string())?;
                Ok((redaction::bundles(connection, &thread, after)?, content))
            })?;
            let Some(last) = bundles.last() else { break };
            after = last.number;
            for found in bundles {
                let bytes = self.body(found.body)?;
                let bytes = match self.rewritten(&bytes, &content) {
                    Ok(Some(bytes)) => bytes,
                    Ok(None) => continue,
                    Err(_) => {
                        unreadable.push(found.number.to_string());
                        continue;
                    }
                };
                let (id, size) = (BundleId::of(&bytes), bytes.len() as u64);
                let body = self.stored(place.0, bytes)?;
                let new = Replacement { number: found.number, old: found.id, id, bytes: size, body };
                self.write(|connection| {
                    let thread = authorize(connection)?;
                    redaction::replace(connection, &thread, &new, now)?;
                    match &new.body {
                        Body::Stored(place) => threads::claim(connection, place),
                        Body::Inline(_) => Ok(()),
                    }
                })?;
            }
        }
        self.write(|connection| {
            let thread = authorize(connection)?;
            redaction::finish(connection, &thread)
        })?;
        self.clean_up()?;
        self.database.scrub()?;
        if unreadable.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the content was removed, except from bundles that the hub cannot read: {}; purge the thread to remove them",
            unreadable.join(", ")
        );
        Err(HubError::new(ProblemCode::Refused, message))
    }

    /// Adds a pack of files. Without bytes, it was uploaded before.
    pub fn push_pack(
        &self,
        credentials: Option<Credentials>,
        (space, project): (&str, &ProjectName),
        row: PackRow,
        inline: &[u8],
    ) -> Result<(), HubError> {
        let now = self.now();
        if row.bytes > self.settings.bundle_bytes {
            return Err(HubError::new(ProblemCode::TooLarge, "the pack is larger than this hub takes"));
        }
        let (authorized, parts) = self.read(|connection| {
            let space = access::space(connection, credentials, space, Role::Member)?;
            let parts = match inline {
                [] => uploads::parts(connection, &space, row.pack)?,
                _ => Vec::new(),
            };
            Ok((space, parts))
        })?;
        let bytes = if inline.is_empty() { self.assembled(&parts)? } else { inline.to_vec() };
        if bytes.len() as u64 != row.bytes || BundleId::of(&bytes) != row.pack {
            return Err(HubError::new(
                ProblemCode::Refused,
                "the bytes are not those that the request names",
            ));
        }
        self.fits(&authorized, row.bytes)?;
        let place = self.put_object(&format!("spaces/{space}/packs"), &bytes)?;
        self.write(|connection| {
            let space = access::space(connection, credentials, space, Role::Member)?;
            packs::push(connection, &space, project, row, &place, now)?;
            if inline.is_empty() { uploads::forget(connection, &space, row.pack) } else { Ok(()) }
        })
    }

    /// The bytes of a pack.
    pub fn pack(
        &self,
        credentials: Option<Credentials>,
        (space, project): (&str, &ProjectName),
        number: u64,
    ) -> Result<Vec<u8>, HubError> {
        let place = self.read(|connection| {
            let space = access::space(connection, credentials, space, Role::Reader)?;
            packs::place(connection, &space, project, number)
        })?;
        self.object(&place)
    }

    /// Purges a thread, and removes its objects.
    pub fn purge(
        &self,
        credentials: Option<Credentials>,
        place: (&str, ThreadId),
        expect: Option<u64>,
    ) -> Result<(), HubError> {
        let now = self.now();
        self.write(|connection| {
            let thread = access::thread(connection, credentials, place, Role::Member, now)?;
            threads::purge(connection, &thread, expect, now)
        })?;
        self.clean_up()?;
        Ok(self.database.scrub()?)
    }

    /// Removes expired uploads and links, and objects without a row.
    pub fn clean_up(&self) -> Result<(), HubError> {
        let now = self.now();
        loop {
            let found = self.write(|connection| {
                links::expire(connection, now)?;
                uploads::expire(connection, now)
            })?;
            if found < 100 {
                break;
            }
        }
        loop {
            let places = self.read(|connection| {
                let sql = "SELECT place FROM garbage WHERE since < $1 ORDER BY since, place LIMIT 100";
                let rows = connection.query(sql, values![now - GRACE])?;
                Ok(rows.iter().map(|row| row.text(0).map(str::to_owned)).collect::<Result<Vec<_>, _>>()?)
            })?;
            for place in &places {
                // Marked first: a request that has the object in hand, or a clock that is wrong, cannot claim it any more.
                let sql = "UPDATE garbage SET since = 0 WHERE place = $1";
                if self.write(|connection| Ok(connection.execute(sql, values![place])?))? == 0 {
                    continue;
                }
                self.store.remove(place).map_err(|error| failed(&error))?;
                self.write(|connection| {
                    Ok(connection.execute("DELETE FROM garbage WHERE place = $1", values![place])?)
                })?;
            }
            if places.len() < 100 {
                return Ok(());
            }
        }
    }

    /// Whether database and store answer.
    pub fn check_health(&self) -> Result<(), HubError> {
        self.read(|connection| {
            connection
                .row("SELECT value FROM counter WHERE name = 'access'", &[])?
                .ok_or(DatabaseError::Shape)?;
            Ok(())
        })?;
        self.store.get("health", 16).map(drop).map_err(|error| failed(&error))
    }
}

/// The bytes are those of the row, the header says the same as the row, and all operations can be read: what the hub cannot
/// read, it could not redact either.
fn check_bundle(thread: ThreadId, request: &PushRequest, bytes: &[u8]) -> Result<(), HubError> {
    let refused = |what: &str| {
        HubError::new(ProblemCode::Refused, format!("the hub does not take this bundle: {what}"))
    };
    let row = &request.row;
    if bytes.len() as u64 != row.bytes || BundleId::of(bytes) != row.bundle {
        return Err(refused("its bytes are not those that the request names"));
    }
    let mut reader = BundleReader::new(bytes, row.bytes).map_err(|error| refused(&error.to_string()))?;
    let header = reader.header();
    let same = header.thread == thread
        && (header.first, header.last(), header.previous) == (row.first, row.last, request.previous)
        && (row.number == 1) == (row.first == 1);
    if !same {
        return Err(refused("its header contradicts the request"));
    }
    while reader.next_operation().map_err(|error| refused(&error.to_string()))?.is_some() {}
    Ok(())
}

fn failed(error: &RemoteError) -> HubError {
    HubError::Store(error.to_string())
}
