//! Small bundles that fit behind each other.

use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::object::NewObject;
use retake_model::replica::ReplicaOperation;
use retake_sync::bundle::{BundleError, BundleId, BundleWriter, operation_id};
use retake_sync::wire::{BundleRow, PushRequest, ThreadHead, ThreadSummary};

/// A push: what it asks for, and the bundle.
#[derive(Clone, Debug)]
pub struct Push {
    /// The thread.
    pub thread: ThreadId,
    /// The request.
    pub request: PushRequest,
    /// The bundle.
    pub bytes: Vec<u8>,
}

impl Push {
    /// A bundle of one operation behind a head.
    pub fn behind(thread: ThreadId, head: Option<ThreadHead>, text: &[u8]) -> Result<Self, BundleError> {
        let (number, first, previous) =
            head.map_or((1, 1, None), |head| (head.number + 1, head.version + 1, Some(head.head)));
        let id = ContentId::of(Kind::Blob, text);
        let object = NewObject { id, kind: Kind::Blob, bytes: text.to_vec().into() };
        let operation = blake3::hash(text).as_bytes().to_vec();
        let operation = ReplicaOperation { objects: vec![object], operation, ..ReplicaOperation::default() };
        let mut writer = BundleWriter::new(thread, first, previous)?;
        writer.add(&operation)?;
        let bytes = writer.finish()?;
        let row = BundleRow {
            number,
            first,
            last: first,
            head: operation_id(&operation),
            bundle: BundleId::of(&bytes),
            bytes: bytes.len() as u64,
        };
        let summary = ThreadSummary { title: format!("version {number}"), ..ThreadSummary::default() };
        Ok(Self { thread, request: PushRequest { row, previous, summary }, bytes })
    }

    /// The head after it.
    pub fn head(&self) -> ThreadHead {
        let row = &self.request.row;
        ThreadHead { number: row.number, version: row.last, head: row.head }
    }

    /// The body of the request.
    pub fn body(&self) -> Vec<u8> {
        let mut body = serde_json::to_vec(&self.request).unwrap_or_default();
        body.push(b'\n');
        body.extend_from_slice(&self.bytes);
        body
    }
}
