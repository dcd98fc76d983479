//! Redaction: destroying the content of an entry while its name lives on in the log.
//!
//! A secret that was pasted into a conversation is in every version of the thread from then on. Redaction
//! removes the bytes and remembers the name, so that the history around it goes on working: reading the entry
//! gives a placeholder. Only what holds no structure can be redacted: entries and blobs.
//!
//! Text that was copied elsewhere (an edited version) is other content with another name; the caller names all that is
//! meant, and the texts themselves. What was made of them and is part of a state or of the log, such as a title, is
//! written anew without them (see [`rewrite`]).
//!
//! ```text
//!   shared settings ► ledger ► search index ► content, states and logs: one transaction ► packs, pages, log
//!   └──── the content still tells what to look for ────┘                                  └─ finished by the next command
//! ```
//!
//! So a redaction that was cut off is finished by running it again.

mod locate;
mod rewrite;
mod secrets;

use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use rusqlite::params;
use serde::Serialize;

use crate::budget::files_of;
use crate::location::{backups, search};
use crate::maintenance::LogState;
use crate::objects::unpack;
use crate::packs::{Care, Row};
use crate::{SearchError, SearchIndex, Store, StoreError, Writing};

pub use locate::SecretLocation;
pub(crate) use rewrite::{REDACTED, item_holds};
pub use secrets::Secrets;

/// What was redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Redacted {
    /// Pieces of content that were there and are gone.
    pub objects: u64,
    /// Bytes that they took in the store.
    pub bytes: u64,
    /// Operations that were written anew, because they or what follows from them held the text: a title, a draft.
    pub operations: u64,
    /// Every place in the store that still holds one of the texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<SecretLocation>,
    /// Whether the logs of the databases are rid of them too.
    pub log: LogState,
    /// Backups beside the store, which may still hold copies.
    pub backups: u64,
}

/// Why nothing was redacted.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// Redacting structure would take away all that hangs on it.
    #[error("{kind:?} {} cannot be redacted, only entries and blobs can", id.short())]
    Structure {
        /// What it is.
        kind: Kind,
        /// Its name.
        id: ContentId,
    },
    /// A move of files has begun, and holds an operation of its own.
    #[error(
        "a move of files was cut off; run `retake status` in its folder, which finishes it, and try again"
    )]
    Moving,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The search index failed.
    #[error(transparent)]
    Search(#[from] SearchError),
}

impl Store {
    /// Destroys the bytes of this content. Content that is not stored is passed over.
    pub fn redact(&self, contents: &[(Kind, ContentId)], now: Timestamp) -> Result<Redacted, RedactError> {
        self.redact_with(contents, &Secrets::default(), &[], now)
    }

    /// The same, and all that was made of these texts in these threads: titles, drafts, names and messages, in the
    /// log, the ledger, the search index and shared settings. In other threads, what holds one of them whole.
    ///
    /// If it fails or is cut off, running it again finishes it: the content goes last. For content that is gone
    /// already it finishes what is left to do.
    pub fn redact_with(
        &self,
        contents: &[(Kind, ContentId)],
        secrets: &Secrets,
        threads: &[ThreadId],
        now: Timestamp,
    ) -> Result<Redacted, RedactError> {
        if !secrets.is_empty() && !rewrite::is_settled(&self.read()?.queries())? {
            return Err(RedactError::Moving);
        }
        for &(kind, id) in contents {
            if !matches!(kind, Kind::Entry | Kind::Blob | Kind::Sealed) {
                return Err(RedactError::Structure { kind, id });
            }
        }
        let in_settings = if secrets.is_empty() { 0 } else { self.redact_shared_settings(secrets)? };
        let ledger_log = match self.existing_ledger()? {
            Some(ledger) => ledger.forget_secrets(threads, secrets)?,
            None => LogState::Emptied,
        };
        self.redact_words(contents)?;
        let erasing = self.begin_erasing()?;
        let mut redacted = self.alone(|alone| {
            let mut redacted = alone.transact(|writing| {
                writing.sort_recent()?;
                let mut redacted = Redacted::default();
                for &(kind, id) in contents {
                    if let Some(bytes) = writing.redact_one(kind, id, now)? {
                        redacted.objects += 1;
                        redacted.bytes += bytes;
                    }
                }
                if !secrets.is_empty() {
                    writing.redact_copies(secrets, threads, now, &mut redacted)?;
                }
                writing.record_erasure()?;
                // Nothing may be served from memory, and summaries may quote what is gone.
                self.cache.clear();
                if redacted.objects > 0 || redacted.operations > 0 {
                    writing.derive_all_again()?;
                }
                Ok(redacted)
            })?;
            alone.sweep_packs(i64::MIN)?;
            alone.give_back_pages()?;
            redacted.log = alone.empty_log()?.and(ledger_log);
            Ok(redacted)
        })?;
        // A reader may have filled the cache while the transaction ran, and a search may have made the index anew.
        self.cache.clear();
        self.redact_words(contents)?;
        redacted.log = redacted.log.and(self.erase_words(erasing)?);
        redacted.objects += in_settings;
        redacted.backups = files_of(&backups(&self.folder))?.len() as u64;
        redacted.remaining = self.locate(secrets)?;
        Ok(redacted)
    }

    /// Takes the words of these contents out of the search index, if there is one.
    fn redact_words(&self, contents: &[(Kind, ContentId)]) -> Result<(), RedactError> {
        if !search(&self.folder).exists() {
            return Ok(());
        }
        let entries = contents.iter().filter(|(kind, _)| *kind == Kind::Entry);
        let versions: Vec<ContentId> = entries.map(|(_, id)| *id).collect();
        SearchIndex::open(&self.folder)?.forget(&versions)?;
        Ok(())
    }
}

impl Writing<'_> {
    /// Removes one piece of content and remembers its name; its stored bytes, if it was there.
    fn redact_one(&self, kind: Kind, id: ContentId, now: Timestamp) -> Result<Option<u64>, StoreError> {
        let removed = self.remove_stored(kind, id)?;
        if removed.is_some() {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO redaction (id, kind, time) VALUES (?1, ?2, ?3)")?
                .execute(params![id.bytes(), kind as i64, now.millis()])?;
        }
        Ok(removed)
    }

    /// Destroys what was made of these texts and is part of states, of the log, or of what was sent to a model.
    fn redact_copies(
        &self,
        secrets: &Secrets,
        threads: &[ThreadId],
        now: Timestamp,
        redacted: &mut Redacted,
    ) -> Result<(), StoreError> {
        let rewritten = self.rewrite_logs(secrets, threads, now)?;
        redacted.operations = rewritten.operations;
        for (kind, id) in rewritten.replaced {
            redacted.bytes += self.remove_stored(kind, id)?.unwrap_or_default();
        }
        for blob in rewritten.sent {
            redacted.bytes += self.redact_one(Kind::Blob, blob, now)?.unwrap_or_default();
        }
        self.forget_quarantined(secrets)?;
        Ok(())
    }

    /// Removes one piece of content; its stored bytes, if it was there.
    fn remove_stored(&self, kind: Kind, id: ContentId) -> Result<Option<u64>, StoreError> {
        if self.stored_object(kind, id)?.is_none() {
            return Ok(None);
        }
        let rows = {
            let mut statement = self.connection.prepare_cached(
                "SELECT number, packing, body FROM object_index JOIN object USING (number)
                 WHERE prefix = ?1 AND object.kind = ?2",
            )?;
            let rows = statement.query_map(params![id.prefix(), kind as i64], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
            })?;
            rows.collect::<Result<Vec<_>, _>>()?
        };
        let mut removed = 0;
        if kind == Kind::Blob {
            let packed = self.packed_like(id.prefix())?;
            removed += packed.iter().map(Row::bytes).sum::<u64>();
            self.forget_packed(&packed, Care::Destroy)?;
        }
        for (number, packing, body) in rows {
            // Other content whose name begins alike stays; a damaged copy of this one does not.
            let found = unpack(packing, &body).map(|bytes| ContentId::of(kind, &bytes));
            if found.is_none_or(|found| found == id || found.prefix() != id.prefix()) {
                self.remove_object(number, id.prefix())?;
                removed += body.len() as u64;
            }
        }
        self.connection
            .prepare_cached("DELETE FROM quarantine WHERE source = 'object' AND prefix = ?1")?
            .execute([id.prefix()])?;
        Ok(Some(removed))
    }
}
