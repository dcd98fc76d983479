//! Reads the timeline in one transaction. Readers change nothing and never wait for a writer.
//!
//! [`Reader`] is the transaction with what nearly every caller needs: threads and their states. Each other subject has a
//! reader of its own, which borrows the transaction:
//!
//! ```text
//!   reader.entries(thread, &take)   entries of a take            reader.settings(thread)   settings, roles and presets
//!   reader.history(thread)          operations, undo and redo    reader.project(project)   a project and its files
//!   reader.files(thread)            files of its versions        reader.worktrees()        worktrees of takes
//!   reader.snapshot(id)             content of a snapshot        reader.find()             names that users type
//! ```
//!
//! A summary that is a type of its own is read by that type: `Tree::of(&reader, …)`.

use retake_model::content::ContentId;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::object::load;
use retake_model::operation::Version;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::{
    Queries, ReadTransaction, SettingScope, SharedSettings, StoreError, StoredOperation, ThreadFilter,
    ThreadRow,
};

use crate::files::file_history::FileHistoryReader;
use crate::files::snapshot::SnapshotReader;
use crate::read::entries::EntryReader;
use crate::read::find::Finder;
use crate::read::history::HistoryReader;
use crate::read::project::ProjectReader;
use crate::read::sent::SentConversations;
use crate::read::settings::SettingsReader;
use crate::read::turns::index::TurnCache;
use crate::working_copy::WorktreeReader;
use crate::{ReadError, Timeline};

/// A consistent view of the timeline.
pub struct Reader<'timeline> {
    reading: ReadTransaction<'timeline>,
    turns: &'timeline TurnCache,
    sent: &'timeline SentConversations,
}

impl Timeline {
    /// Begins a read transaction.
    pub fn read(&self) -> Result<Reader<'_>, StoreError> {
        Ok(Reader { reading: self.store.read()?, turns: &self.turns, sent: &self.sent })
    }
}

impl Reader<'_> {
    /// Queries of the underlying store.
    pub fn queries(&self) -> Queries<'_> {
        self.reading.queries()
    }

    /// The settings that threads share, which are stored beside the database.
    pub(crate) fn shared_settings(&self, scope: SettingScope) -> Result<SharedSettings, StoreError> {
        self.reading.store().shared_settings(scope)
    }

    /// The turns of takes, as last read.
    pub(crate) fn turn_cache(&self) -> &TurnCache {
        self.turns
    }

    /// Conversations as they were last sent.
    pub(crate) fn sent(&self) -> &SentConversations {
        self.sent
    }

    /// A thread by id.
    pub fn thread(&self, thread: ThreadId) -> Result<ThreadRow, ReadError> {
        self.queries().thread(thread)?.ok_or(ReadError::NoSuchThread(thread))
    }

    /// Threads that match a filter: pinned ones first, then the most recently changed.
    pub fn threads(&self, filter: &ThreadFilter) -> Result<Vec<ThreadRow>, ReadError> {
        Ok(self.queries().threads(filter)?)
    }

    /// The last operation of a thread.
    pub fn head(&self, thread: ThreadId) -> Result<StoredOperation, ReadError> {
        Ok(self.queries().last_operation(&self.thread(thread)?)?)
    }

    /// The newest state of a thread.
    pub fn state(&self, thread: ThreadId) -> Result<ThreadState, ReadError> {
        Ok(load(&self.queries(), self.head(thread)?.operation.after)?)
    }

    /// The state of a thread after an operation.
    pub fn state_at(&self, thread: ThreadId, version: Version) -> Result<ThreadState, ReadError> {
        let row = self.thread(thread)?;
        match self.queries().operation(row.number, version)? {
            Some(found) if version > 0 => Ok(load(&self.queries(), found.operation.after)?),
            // A log has no gaps: a missing version is damage.
            None if (1..=row.summary.version).contains(&version) => {
                Err(StoreError::Damaged(format!("operation {version} is missing")).into())
            }
            _ => Err(ReadError::NoSuchVersion { asked: version, current: row.summary.version }),
        }
    }

    /// The entries of a take of a thread.
    pub fn entries<'reader>(&'reader self, thread: ThreadId, take: &'reader Take) -> EntryReader<'reader> {
        EntryReader { reader: self, thread, take }
    }

    /// The history of a thread, as seen from its active take.
    pub fn history(&self, thread: ThreadId) -> HistoryReader<'_> {
        HistoryReader { reader: self, thread, take: None }
    }

    /// The files of a thread.
    pub fn files(&self, thread: ThreadId) -> FileHistoryReader<'_> {
        FileHistoryReader { reader: self, thread }
    }

    /// The files of a snapshot.
    pub fn snapshot(&self, snapshot: ContentId) -> SnapshotReader<'_> {
        SnapshotReader { reader: self, id: snapshot }
    }

    /// The settings, roles and presets that apply to a thread.
    pub fn settings(&self, thread: ThreadId) -> SettingsReader<'_> {
        SettingsReader { reader: self, thread }
    }

    /// The threads and files of a project.
    pub fn project(&self, project: ProjectId) -> ProjectReader<'_> {
        ProjectReader { reader: self, project }
    }

    /// The worktrees of all takes.
    pub fn worktrees(&self) -> WorktreeReader<'_> {
        WorktreeReader { reader: self }
    }

    /// Resolves names that users type.
    pub fn find(&self) -> Finder<'_> {
        Finder { reader: self }
    }
}
