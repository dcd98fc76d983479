//! Reads the files of a snapshot.
//!
//! `captured.rs` summarises it, `listing.rs` lists and reads its files, `changes.rs` compares it with another one.

use retake_model::content::ContentId;

use crate::Reader;

/// Reads the files of a snapshot.
#[derive(Clone, Copy)]
pub struct SnapshotReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
    pub(crate) id: ContentId,
}
