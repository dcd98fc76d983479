//! Checks the objects of an export, and collects them for the operation that needs them.

use std::io::BufRead;
use std::sync::Arc;

use data_encoding::BASE64;
use retake_model::check;
use retake_model::content::{ContentId, Kind};
use retake_model::object::{MemoryObjects, NewObject, ObjectError, Objects};
use retake_model::reference::{Reference, references};
use retake_store::Queries;

use super::{Import, ImportError};
use crate::transfer::export::kind_named;

/// Objects of the next operation, in the order of the export and by id.
#[derive(Default)]
pub(super) struct ObjectBuffer {
    pub(super) order: Vec<NewObject>,
    pub(super) named: MemoryObjects,
}

impl ObjectBuffer {
    fn push(&mut self, object: NewObject) {
        self.named.insert_all([object.clone()]);
        self.order.push(object);
    }
}

/// Buffered objects on top of the stored ones.
pub(super) struct ImportObjects<'import> {
    pub(super) waiting: &'import MemoryObjects,
    pub(super) stored: &'import Queries<'import>,
}

impl Objects for ImportObjects<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.waiting.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id))
    }
}

impl<R: BufRead> Import<'_, '_, R> {
    pub(super) fn object(&mut self, kind: &str, data: &str) -> Result<(), ImportError> {
        let kind = kind_named(kind).ok_or_else(|| self.damaged("an object of an unknown kind"))?;
        if kind == Kind::Sealed {
            return Err(self.damaged("it contains sealed bytes, which are never exported"));
        }
        let bytes = BASE64.decode(data.as_bytes()).map_err(|_| self.damaged("data that is not base64"))?;
        let needed = references(kind, &bytes).map_err(|error| self.damaged(&error.to_string()))?;
        for reference in needed {
            self.need(reference)?;
        }
        check::content(kind, &bytes).map_err(|error| self.bad(&error))?;
        let id = ContentId::of(kind, &bytes);
        self.measures.content(kind, id, &bytes).map_err(|error| self.bad(&error))?;
        self.present.insert((kind, id));
        // An import does not restore content that was redacted here.
        if !can_be_redacted(kind) || !self.writing.is_redacted(id)? {
            self.waiting.push(NewObject { id, kind, bytes: bytes.into() });
        }
        Ok(())
    }

    /// Checks that a referenced object came earlier, or is declared as redacted.
    pub(super) fn need(&mut self, reference: Reference) -> Result<(), ImportError> {
        if self.present.contains(&reference) {
            return Ok(());
        }
        if !self.redacted.remove(&reference) {
            return Err(self.damaged("a referenced object is missing"));
        }
        // Content that was redacted elsewhere but exists here stays: an export must not delete content.
        let (kind, id) = reference;
        if !self.writing.contains(kind, id)? {
            self.writing.put_redaction(kind, id, self.now)?;
        }
        self.present.insert(reference);
        Ok(())
    }

    pub(super) fn redacted(&mut self, id: ContentId, kind: &str) -> Result<(), ImportError> {
        let kind = kind_named(kind).ok_or_else(|| self.damaged("an object of an unknown kind"))?;
        if !can_be_redacted(kind) {
            return Err(self.damaged("only entries, blobs and sealed bytes can be redacted"));
        }
        // Recorded only when something refers to it with the declared kind.
        self.redacted.insert((kind, id));
        Ok(())
    }
}

/// Returns whether a kind of object can be redacted: only content, and not the structure of a thread.
pub(in crate::transfer) fn can_be_redacted(kind: Kind) -> bool {
    // The list of chunks of a file stands for its content.
    matches!(kind, Kind::Entry | Kind::Blob | Kind::Chunks | Kind::Sealed)
}
