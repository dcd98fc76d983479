//! The log of a thread as other machines get it: the conversation without files.
//!
//! ```text
//!   here      1 ── 2 ── 3 (files) ── 4          a machine adds its own files to the operations that it made
//!   replica   1 ── 2 ── 3' ───────── 4'         the same on every machine, byte for byte
//! ```
//!
//! Snapshots stay on the machine, because other threads write to the same folder, private ones too. An operation of the
//! replica is therefore the operation here without its files, and with the hash of the replica's previous operation.

use crate::content::{ContentId, Kind, encode};
use crate::object::NewObject;
use crate::operation::Operation;
use crate::reference::Reference;

/// One operation of a replica, with the content that it needs first.
#[derive(Clone, Debug, Default)]
pub struct ReplicaOperation {
    /// Its canonical bytes.
    pub operation: Vec<u8>,
    /// Content that no earlier operation needs, each piece after those it refers to.
    pub objects: Vec<NewObject>,
    /// Content that it needs and that was redacted.
    pub redacted: Vec<Reference>,
}

/// The bytes and the id of an operation in the replica, after the replica's operation `previous`.
pub fn without_files(operation: &Operation, previous: Option<ContentId>) -> (Vec<u8>, ContentId) {
    let operation = Operation { previous, files: None, last_file_operation: None, ..operation.clone() };
    let bytes = encode(&operation);
    let id = ContentId::of(Kind::Operation, &bytes);
    (bytes, id)
}
