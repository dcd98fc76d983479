//! What a reset of a thread takes away, told before it is done.

use retake_model::state::ThreadState;
use serde::Serialize;

use crate::{LookError, Looking};

/// What a reset takes away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cleared {
    /// Entries, of all takes together.
    pub entries: u64,
    /// Takes that had entries, a draft or files.
    pub takes: u64,
    /// Drafts.
    pub drafts: u64,
    /// Files, context files and screenshots.
    pub files: u64,
    /// The names of the settings that differed from their defaults. Prompts that threads share are kept.
    pub settings: Vec<String>,
}

impl Looking<'_> {
    /// What a reset of that state would take away.
    pub fn cleared_by_reset(&self, state: &ThreadState) -> Result<Cleared, LookError> {
        let settings = self.settings(state)?;
        let settings = settings.after_reset().changed(&settings);
        let mut cleared = Cleared { settings, ..Cleared::default() };
        for take in state.all_takes(&self.queries())? {
            let files = (take.files.len() + take.context_files.len() + take.screenshots.len()) as u64;
            let draft = u64::from(!(take.draft.is_empty() && take.attached.is_empty()));
            cleared.entries += take.entries.len();
            cleared.drafts += draft;
            cleared.files += files;
            cleared.takes += u64::from(take.entries.len() + draft + files > 0);
        }
        Ok(cleared)
    }
}
