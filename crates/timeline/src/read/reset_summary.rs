//! Summarises what a reset of a thread would clear.

use retake_model::state::ThreadState;
use serde::Serialize;

use crate::{ReadError, Reader};

/// The data that a reset clears.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResetSummary {
    /// Number of entries in all takes.
    pub entries: u64,
    /// Number of takes with entries, a draft or files.
    pub takes: u64,
    /// Number of drafts.
    pub drafts: u64,
    /// Number of files, context files and screenshots.
    pub files: u64,
    /// Names of settings that differ from their defaults. Shared prompts stay.
    pub settings: Vec<String>,
}

impl ResetSummary {
    /// Summarises what a reset of that state would clear.
    pub fn of(reader: &Reader<'_>, state: &ThreadState) -> Result<Self, ReadError> {
        let queries = reader.queries();
        let settings = state.own_settings(&queries)?;
        let settings = settings.after_reset().changed(&settings);
        let mut summary = Self { settings, ..Self::default() };
        for take in state.all_takes(&queries)? {
            let files = (take.files.len() + take.context_files.len() + take.screenshots.len()) as u64;
            let draft = u64::from(!(take.draft.is_empty() && take.attached.is_empty()));
            summary.entries += take.entries.len();
            summary.drafts += draft;
            summary.files += files;
            summary.takes += u64::from(take.entries.len() + draft + files > 0);
        }
        Ok(summary)
    }
}
