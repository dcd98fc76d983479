//! One machine: a store and a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_timeline::{
    Caller, Command, Exporter, ImportError, ImportMode, ImportSummary, InsertPosition, MoveOptions,
    NewThread, Rules, SeededClock, Timeline, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;

use crate::scratch::ScratchDir;
use crate::violation::BoxError;

/// What a user sees on a machine, without files that only users wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MachineView {
    /// The entries of the active take.
    pub(super) texts: Vec<String>,
    files: BTreeMap<String, String>,
}

/// The file that only the user of a machine writes.
fn own_file(machine: usize) -> String {
    format!("own-{machine}")
}

pub(super) struct Machine {
    scratch: ScratchDir,
    pub(super) working_copy: WorkingCopy,
    pub(super) thread: ThreadId,
    private: std::cell::Cell<Option<ThreadId>>,
    project: ProjectId,
    number: usize,
}

impl Machine {
    pub(super) fn new(seed: u64, number: usize) -> Result<Self, BoxError> {
        let scratch = ScratchDir::for_files()?;
        let folder = scratch.path().join("project");
        fs::create_dir_all(&folder)?;
        let clock = Arc::new(SeededClock::new(seed));
        let timeline = Timeline::open_with(&scratch.path().join("home"), Rules::default(), clock)?;
        let project = ProjectId::from_bytes([7 + number as u8; 16]);
        let working_copy = WorkingCopy::at(timeline, project, Workspace::of(&folder)?);
        let (thread, private) = (ThreadId::from_bytes([0; 16]), std::cell::Cell::new(None));
        Ok(Self { scratch, working_copy, thread, private, project, number })
    }

    fn timeline(&self) -> &Timeline {
        self.working_copy.timeline()
    }

    pub(super) fn store(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    pub(super) fn create_thread(&mut self) -> Result<(), BoxError> {
        let new = NewThread::in_project(self.project);
        self.thread = self.timeline().create_thread(new, Caller::human())?.thread;
        self.turn("f0", 0)
    }

    pub(super) fn add_private_thread(&self, text: &str) -> Result<(), BoxError> {
        let new = NewThread::in_project(self.project).titled(format!("{text}-{}", self.number));
        let thread = self.timeline().create_thread(new, Caller::human())?.thread;
        let share = Command::Share { visibility: None, private: Some(true), shared_with_support: None };
        self.timeline().change(thread, share, Caller::human())?;
        self.private.set(Some(thread));
        Ok(())
    }

    fn export_of(&self, thread: ThreadId) -> Result<Vec<u8>, BoxError> {
        let mut bytes = Vec::new();
        let timeline = self.timeline();
        Exporter::new(&timeline.read()?).thread(thread, &mut bytes, &mut |_, _| {})?;
        Ok(bytes)
    }

    pub(super) fn export(&self) -> Result<Vec<u8>, BoxError> {
        self.export_of(self.thread)
    }

    pub(super) fn export_private(&self) -> Result<Vec<u8>, BoxError> {
        self.export_of(self.private.get().ok_or("no private thread")?)
    }

    pub(super) fn import(&self, bytes: Vec<u8>, mode: ImportMode) -> Result<ImportSummary, ImportError> {
        self.timeline().import(Cursor::new(bytes), self.project, mode, |_, _| {})
    }

    /// The ids of all operations.
    pub(super) fn log(&self) -> Result<Vec<ContentId>, BoxError> {
        let reader = self.timeline().read()?;
        let (row, head) = (reader.thread(self.thread)?, reader.head(self.thread)?);
        let found = reader.queries().operations_back(row.number, head.operation.version, usize::MAX)?;
        Ok(found.into_iter().rev().map(|stored| stored.id).collect())
    }

    pub(super) fn takes(&self) -> Result<(Vec<TakeId>, TakeId), BoxError> {
        let reader = self.timeline().read()?;
        let state = reader.state(self.thread)?;
        let takes = state.all_takes(&reader.queries())?.into_iter().map(|take| take.id).collect();
        Ok((takes, state.active))
    }

    pub(super) fn texts_of(&self, thread: ThreadId) -> Result<Vec<String>, BoxError> {
        let reader = self.timeline().read()?;
        let take = reader.state(thread)?.active_take(&reader.queries())?;
        let page = reader.entries(thread, &take).page(0..take.entries.len())?;
        Ok(page.iter().map(|view| view.entry.text()).collect())
    }

    pub(super) fn shown(&self) -> Result<MachineView, BoxError> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(self.folder())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Edits by hand stay with the take that was active, so that other moves bring them and take them away.
            if !name.starts_with("own-") {
                files.insert(name, fs::read_to_string(entry.path())?);
            }
        }
        Ok(MachineView { texts: self.texts_of(self.thread)?, files })
    }

    /// A message, and a change of one file by the agent.
    pub(super) fn turn(&self, file: &str, number: u64) -> Result<(), BoxError> {
        let timeline = self.timeline();
        let take = timeline.read()?.state(self.thread)?.active;
        let entry = EntryVersion::from_text("User", &format!("change {file} to {number}"), timeline.now());
        let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
        timeline.change(self.thread, add, Caller::human())?;
        self.working_copy.record_changes(self.thread, Caller::human())?;
        fs::write(self.folder().join(file), number.to_string())?;
        let agent = Caller { actor: Actor::Agent, ..Caller::human() };
        self.working_copy.record_as_caller(self.thread, agent)?;
        Ok(())
    }

    /// Writes the files that another machine shows.
    pub(super) fn check_out(&self, other: &MachineView) -> Result<(), BoxError> {
        for (name, text) in &other.files {
            fs::write(self.folder().join(name), text)?;
        }
        self.working_copy.record_changes(self.thread, Caller::human())?;
        Ok(())
    }

    pub(super) fn edit_by_hand(&self, number: u64) -> Result<(), BoxError> {
        Ok(fs::write(self.folder().join(own_file(self.number)), number.to_string())?)
    }

    pub(super) fn change(&self, command: Command) -> Result<(), BoxError> {
        self.working_copy.change(self.thread, command, Caller::human(), MoveOptions::default())?;
        Ok(())
    }

    pub(super) fn archive(&self, thread: ThreadId) -> Result<(), BoxError> {
        self.timeline().change(thread, Command::Delete, Caller::human())?;
        Ok(())
    }
}
