//! Redaction: destroys the content of an entry while its id stays in the log.
//!
//! A secret pasted into a conversation is in every later version of the thread. Redaction removes the bytes and
//! records the id, so that the history around it stays readable: reading the entry gives a placeholder. Only content
//! without references can be redacted: entries and blobs.
//!
//! Copies of the text (an edited version) have other ids, so the caller names every copy and the texts themselves.
//! Titles and other text derived from them are part of states and of the log; those are rewritten (see [`rewrite`]).
//!
//! ```text
//!   shared settings ► runtime database ► search index ► content, states, logs: one transaction ► packs, pages, WAL
//!   └──── the content still shows what to search for ────┘                                      └─ completed by the next command
//! ```
//!
//! Running an interrupted redaction again completes it.

mod chunks;
mod locate;
mod rewrite;
mod secrets;

use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use crate::location::{backups, search};
use crate::maintenance::budget::list_files;
use crate::maintenance::exclusive::WalState;
use crate::objects::packs::{PackedRow, RemovalMode};
use crate::objects::read_write::unpack;
use crate::{SearchError, SearchIndex, Store, StoreError, WriteTransaction};

pub use locate::SecretLocation;
pub(crate) use rewrite::{REDACTED, item_holds};
pub use secrets::Secrets;

/// The result of a redaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedactionReport {
    /// Redacted objects.
    pub objects: u64,
    /// Their stored size.
    pub bytes: u64,
    /// Operations that were rewritten because they contained the text, such as a title or a draft.
    pub operations: u64,
    /// Locations in the store that still contain one of the texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<SecretLocation>,
    /// The state of the write-ahead logs.
    pub log: WalState,
    /// Backups next to the store, which may still contain copies.
    pub backups: u64,
}

/// Why nothing was redacted.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// Redacting structure would make everything below it unreachable.
    #[error("{kind:?} {} cannot be redacted, only entries and blobs can", id.short())]
    Structure { kind: Kind, id: ContentId },
    /// A pending file move contains an unpublished operation.
    #[error("a file move was interrupted; run `retake status` in its folder to complete it, and try again")]
    PendingMove,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Search(#[from] SearchError),
}

impl Store {
    /// Destroys the bytes of this content. Content that is not stored is skipped.
    pub fn redact(
        &self,
        contents: &[(Kind, ContentId)],
        now: Timestamp,
    ) -> Result<RedactionReport, RedactError> {
        self.redact_with(contents, &Secrets::default(), &[], now)
    }

    /// The same, including text derived from the secrets in these threads (titles, drafts, names, messages), in the
    /// log, the runtime database, the search index and shared settings. In other threads, only text that contains a
    /// whole secret is redacted.
    ///
    /// If it fails or is interrupted, run it again: content is destroyed last. For content that is gone already, it
    /// completes the remaining steps.
    pub fn redact_with(
        &self,
        contents: &[(Kind, ContentId)],
        secrets: &Secrets,
        threads: &[ThreadId],
        now: Timestamp,
    ) -> Result<RedactionReport, RedactError> {
        if !secrets.is_empty() && !rewrite::has_no_pending_moves(&self.read()?.queries())? {
            return Err(RedactError::PendingMove);
        }
        for &(kind, id) in contents {
            if !matches!(kind, Kind::Entry | Kind::Blob | Kind::Sealed) {
                return Err(RedactError::Structure { kind, id });
            }
        }
        let in_settings = if secrets.is_empty() { 0 } else { self.redact_shared_settings(secrets)? };
        let runtime_wal = match self.existing_runtime_database()? {
            Some(runtime_database) => runtime_database.erase_secrets(threads, secrets)?,
            None => WalState::Emptied,
        };
        self.remove_from_search_index(contents)?;
        let erasure_marker = self.begin_erasure()?;
        let mut redacted = self.with_exclusive_access(|exclusive| {
            let mut redacted = exclusive.transact(|writing| {
                writing.sort_recent()?;
                let mut redacted = RedactionReport::default();
                let (files, chunks) = writing.chunked_among(contents)?;
                for (kind, id) in contents.iter().copied().chain(chunks) {
                    if let Some(bytes) = writing.redact_one(kind, id, now)? {
                        redacted.objects += 1;
                        redacted.bytes += bytes;
                    }
                }
                for file in files {
                    writing.record_redaction(Kind::Blob, file, now)?;
                }
                if !secrets.is_empty() {
                    writing.redact_copies(secrets, threads, now, &mut redacted)?;
                }
                writing.record_erasure()?;
                // Nothing may be served from memory, and summaries may quote redacted text.
                self.cache.clear();
                if redacted.objects > 0 || redacted.operations > 0 {
                    writing.rebuild_derived_rows()?;
                }
                Ok(redacted)
            })?;
            exclusive.sweep_packs(i64::MIN)?;
            redacted.log = exclusive.destroy_deleted_rows()?.and(runtime_wal);
            Ok(redacted)
        })?;
        // A reader may have filled the cache while the transaction ran, and a search may have rebuilt the index.
        self.cache.clear();
        self.remove_from_search_index(contents)?;
        redacted.log = redacted.log.and(self.erase_from_search_index(erasure_marker)?);
        redacted.objects += in_settings;
        redacted.backups = list_files(&backups(&self.folder))?.len() as u64;
        redacted.remaining = self.locate(secrets)?;
        Ok(redacted)
    }

    /// Removes the words of these contents from the search index, if there is one.
    fn remove_from_search_index(&self, contents: &[(Kind, ContentId)]) -> Result<(), RedactError> {
        if !search(&self.folder).exists() {
            return Ok(());
        }
        let entries = contents.iter().filter(|(kind, _)| *kind == Kind::Entry);
        let versions: Vec<ContentId> = entries.map(|(_, id)| *id).collect();
        SearchIndex::open(&self.folder)?.forget(&versions)?;
        Ok(())
    }
}

impl WriteTransaction<'_> {
    /// Removes an object and records its id; returns its stored size, if it existed.
    fn redact_one(&self, kind: Kind, id: ContentId, now: Timestamp) -> Result<Option<u64>, StoreError> {
        let removed = self.remove_stored(kind, id)?;
        if removed.is_some() {
            self.record_redaction(kind, id, now)?;
        }
        Ok(removed)
    }

    /// Records that this content was destroyed, so that it is not captured again.
    fn record_redaction(&self, kind: Kind, id: ContentId, now: Timestamp) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO redaction (id, kind, time) VALUES (?1, ?2, ?3)")?
            .execute(params![id.bytes(), kind as i64, now.millis()])?;
        Ok(())
    }

    /// Destroys text derived from the secrets in states, in the log, and in sent requests.
    fn redact_copies(
        &self,
        secrets: &Secrets,
        threads: &[ThreadId],
        now: Timestamp,
        redacted: &mut RedactionReport,
    ) -> Result<(), StoreError> {
        let rewritten = self.rewrite_logs(secrets, threads, now)?;
        redacted.operations = rewritten.operations;
        for (kind, id) in rewritten.replaced {
            redacted.bytes += self.remove_stored(kind, id)?.unwrap_or_default();
        }
        for blob in rewritten.sent {
            redacted.bytes += self.redact_one(Kind::Blob, blob, now)?.unwrap_or_default();
        }
        self.redact_remotes(secrets)?;
        self.purge_quarantined(secrets)?;
        Ok(())
    }

    /// Removes an object; returns its stored size, if it existed.
    fn remove_stored(&self, kind: Kind, id: ContentId) -> Result<Option<u64>, StoreError> {
        if self.stored_object(kind, id)?.is_none() {
            return Ok(None);
        }
        let mut removed = 0;
        if kind == Kind::Blob {
            let packed = self.packed_rows_with_prefix(id.prefix())?;
            removed += packed.iter().map(PackedRow::bytes).sum::<u64>();
            self.remove_packed(&packed, RemovalMode::Destroy)?;
        }
        // Other content with the same name prefix stays; a damaged copy of this one does not.
        let is_other = |found: Option<ContentId>| {
            found.is_some_and(|found| found != id && found.prefix() == id.prefix())
        };
        for place in self.all_rows_with_prefix(id.prefix())? {
            if place < 0 {
                removed += self.remove_from_bundle(-place, &|object| {
                    let found = object.bytes.as_ref().map(|bytes| ContentId::of(object.kind, bytes));
                    let named = object.name == id.prefix() || found == Some(id);
                    named && !is_other(found)
                })?;
                continue;
            }
            let row: Option<(i64, i64, Vec<u8>)> = self
                .connection
                .prepare_cached("SELECT kind, packing, body FROM object WHERE number = ?1")?
                .query_row([place], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((_, packing, body)) = row.filter(|row| row.0 == kind as i64) else { continue };
            if !is_other(unpack(packing, &body).map(|bytes| ContentId::of(kind, &bytes))) {
                self.remove_object(place, id.prefix())?;
                removed += body.len() as u64;
            }
        }
        // A damaged bundle may contain it.
        self.connection.prepare_cached("DELETE FROM quarantine WHERE source = 'bundle'")?.execute([])?;
        self.connection
            .prepare_cached("DELETE FROM quarantine WHERE source = 'object' AND prefix = ?1")?
            .execute([id.prefix()])?;
        Ok(Some(removed))
    }
}
