//! Exports a complete thread as JSON lines.
//!
//! ```text
//!   {"retake":"thread","format":1,"thread":"…","title":"…","version":7,…}
//!   {"object":"entry","data":"…"}            every object once, after those that it refers to
//!   {"operation":1,"data":"…"}               the log, in order
//!   {"redacted":"…","kind":"entry"}          erased content
//!   {"end":true,"lines":123,"digest":"…"}    the hash of everything before
//! ```
//!
//! The data are the canonical bytes in base64, so that the file contains exactly the content of the store: all takes, all
//! history, every byte. The import checks every hash again. Two more formats export one take for readers: `markdown` for
//! people, `transcript` for programs.

mod markdown;
mod transcript;

use std::collections::HashSet;
use std::io::{self, Write};

use data_encoding::BASE64;
use retake_model::content::{ContentId, Kind, encode};
use retake_model::entry::Block;
use retake_model::id::ThreadId;
use retake_model::object::{ObjectError, Objects};
use retake_model::reference::{Reference, references};
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_model::take::Attachments;
use retake_model::time::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::{EntryView, ReadError, Reader};

/// Version of the export format.
pub(crate) const FORMAT: u64 = 1;

/// Entries to load at a time.
const PAGE: u64 = 500;

/// Formatting that depends on the front end.
pub trait ExportFormatter {
    /// Formats a time for people.
    fn time(&self, moment: Timestamp) -> String;
    /// Formats a number for people.
    fn count(&self, number: u64) -> String;
    /// Writes a value as JSON on one line.
    fn json(&self, out: &mut dyn Write, piece: &ExportItem<'_>) -> io::Result<()>;
}

/// A value in an export.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum ExportItem<'a> {
    /// A thread.
    Thread(&'a ThreadSummary),
    /// A take.
    Take(&'a TakeSummary),
    /// A text.
    Text(&'a str),
    /// The pictures of a draft.
    Pictures(&'a Attachments),
    /// An entry.
    Entry(&'a EntryView),
    /// A block of an entry.
    Block(&'a Block),
}

/// Summary of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExportSummary {
    /// Number of operations.
    pub operations: u64,
    /// Number of objects.
    pub objects: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of excluded sealed contents: replaced versions of ignored or secret files. Only this machine can open
    /// them.
    #[serde(skip_serializing_if = "is_zero")]
    pub sealed_excluded: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why an export failed. A partial file has no end line, so an import rejects it.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The thread could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Files cannot be excluded, because an entry refers to one.
    #[error("an entry of this thread refers to files, so it cannot be exported without them")]
    NamesFiles,
    /// The file could not be written.
    #[error("the export could not be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes threads and takes to files.
#[derive(Clone, Copy)]
pub struct Exporter<'reader> {
    reader: &'reader Reader<'reader>,
}

impl<'reader> Exporter<'reader> {
    /// Exports from a transaction.
    pub fn new(reader: &'reader Reader<'reader>) -> Self {
        Self { reader }
    }

    /// Writes a complete thread. `progress` receives the number of operations done and in total.
    pub fn thread(
        &self,
        thread: ThreadId,
        to: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportSummary, ExportError> {
        self.write(thread, ExportScope::Both, to, progress)
    }

    /// Writes a thread without files and without their names. Its log differs: it mentions changes of files without
    /// their content. Where the thread already exists, it is imported as a copy.
    pub fn thread_without_files(
        &self,
        thread: ThreadId,
        to: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportSummary, ExportError> {
        self.write(thread, ExportScope::Conversation, to, progress)
    }

    fn write(
        self,
        thread: ThreadId,
        half: ExportScope,
        to: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportSummary, ExportError> {
        let row = self.reader.thread(thread)?;
        let mut previous = None;
        let mut lines = Lines { to, hasher: blake3::Hasher::new(), count: 0, bytes: 0 };
        lines.line(&json!({
            "retake": "thread",
            "format": FORMAT,
            "thread": thread,
            "title": row.summary.title,
            "version": row.summary.version,
            "program": env!("CARGO_PKG_VERSION"),
        }))?;
        let mut walk = Walk { reader: self.reader, half, seen: HashSet::new(), objects: 0, sealed: 0 };
        for version in 1..=row.summary.version {
            let stored = self.reader.queries().operation(row.number, version).map_err(ReadError::from)?;
            let stored =
                stored.ok_or(ReadError::NoSuchVersion { asked: version, current: row.summary.version })?;
            let mut operation = stored.operation;
            if half == ExportScope::Conversation {
                (operation.files, operation.last_file_operation, operation.previous) = (None, None, previous);
            }
            let body = encode(&operation);
            previous = Some(ContentId::of(Kind::Operation, &body));
            let needed = references(Kind::Operation, &body).unwrap_or_default();
            walk.write_all(needed, &mut lines)?;
            lines.line(&json!({"operation": version, "data": BASE64.encode(&body)}))?;
            progress(version, row.summary.version);
        }
        let digest = lines.hasher.finalize().to_hex().to_string();
        let count = lines.count;
        lines.line(&json!({"end": true, "lines": count, "digest": digest}))?;
        lines.to.flush()?;
        Ok(ExportSummary {
            operations: row.summary.version,
            objects: walk.objects,
            bytes: lines.bytes,
            sealed_excluded: walk.sealed,
        })
    }
}

/// Scope of an export.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportScope {
    /// Conversation and files.
    Both,
    /// The conversation only.
    Conversation,
}

struct Walk<'looking, 'timeline> {
    reader: &'looking Reader<'timeline>,
    half: ExportScope,
    seen: HashSet<Reference>,
    objects: u64,
    sealed: u64,
}

impl Walk<'_, '_> {
    /// Writes objects after everything they refer to. Not recursive, since states can be deep.
    fn write_all(&mut self, needed: Vec<Reference>, lines: &mut Lines<'_>) -> Result<(), ExportError> {
        let queries = self.reader.queries();
        let mut stack: Vec<Step> = needed.into_iter().rev().map(Step::Open).collect();
        while let Some(step) = stack.pop() {
            match step {
                Step::Open(reference) if !self.seen.insert(reference) => {}
                Step::Open((Kind::Snapshot, _)) if self.half == ExportScope::Conversation => {
                    return Err(ExportError::NamesFiles);
                }
                Step::Open((kind, id)) => {
                    // Only this machine can open sealed bytes, so they are not exported.
                    self.sealed += u64::from(kind == Kind::Sealed);
                    if kind == Kind::Sealed || self.is_gone(kind, id)? {
                        lines.line(&json!({"redacted": id, "kind": kind_name(kind)}))?;
                        continue;
                    }
                    let bytes = queries.bytes(kind, id).map_err(ReadError::from)?;
                    let below = references(kind, &bytes)
                        .map_err(|_| ReadError::from(ObjectError::Damaged { kind, id }))?;
                    stack.push(Step::Write(kind, bytes));
                    stack.extend(below.into_iter().rev().map(Step::Open));
                }
                Step::Write(kind, bytes) => {
                    lines.line(&json!({"object": kind_name(kind), "data": BASE64.encode(&bytes)}))?;
                    self.objects += 1;
                }
            }
        }
        Ok(())
    }

    /// Returns whether content was erased and not stored again since.
    fn is_gone(&self, kind: Kind, id: ContentId) -> Result<bool, ExportError> {
        let queries = self.reader.queries();
        let redacted = queries.is_redacted(id).map_err(ReadError::from)?;
        Ok(redacted && !queries.contains(kind, id).map_err(ReadError::from)?)
    }
}

enum Step {
    Open(Reference),
    Write(Kind, std::sync::Arc<[u8]>),
}

struct Lines<'out> {
    to: &'out mut dyn Write,
    hasher: blake3::Hasher,
    count: u64,
    bytes: u64,
}

impl Lines<'_> {
    fn line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        let mut text = value.to_string();
        text.push('\n');
        self.hasher.update(text.as_bytes());
        self.count += 1;
        self.bytes += text.len() as u64;
        self.to.write_all(text.as_bytes())
    }
}

/// Names of the exportable kinds in the file.
const KINDS: [(Kind, &str); 15] = [
    (Kind::Blob, "blob"),
    (Kind::Entry, "entry"),
    (Kind::Entries, "entries"),
    (Kind::Take, "take"),
    (Kind::Takes, "takes"),
    (Kind::Settings, "settings"),
    (Kind::State, "state"),
    (Kind::Environment, "surroundings"),
    (Kind::Tree, "tree"),
    (Kind::Parts, "parts"),
    (Kind::Chunks, "chunks"),
    (Kind::Snapshot, "snapshot"),
    (Kind::Excluded, "left_out"),
    (Kind::Sealed, "sealed"),
    (Kind::SealedFiles, "sealed_files"),
];

fn kind_name(kind: Kind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("operation", |(_, name)| name)
}

pub(crate) fn kind_named(name: &str) -> Option<Kind> {
    KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
}
