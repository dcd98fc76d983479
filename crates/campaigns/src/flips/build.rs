//! Builds a store with some history, and copies of its last versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::command::{InsertPosition, NewEntry};
use retake_model::entry::EntryVersion;
use retake_model::environment::Environment;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::take::{FileItem, FileList};
use retake_model::time::Timestamp;
use retake_store::{EntryPresentation, StoreError};
use retake_timeline::{Caller, Command, NewThread, Rules, Timeline, Unit};

use crate::model::clock::ManualClock;
use crate::rng::Rng;
use crate::violation::BoxError;

const THREADS: usize = 3;
/// Steps in the database itself.
const CHECKPOINTED_STEPS: u64 = 45;
/// Steps in the write-ahead log only.
const LOGGED_STEPS: u64 = 20;

/// The project of all threads.
pub(super) const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);

pub(super) struct BuiltStore {
    /// The store after each of its last steps, in order.
    pub(super) moments: Vec<PathBuf>,
    /// The store after its last step, fully checkpointed.
    pub(super) settled: PathBuf,
    pub(super) threads: Vec<ThreadId>,
}

/// Builds the store in this folder.
pub(super) fn build(scratch: &Path, seed: u64) -> Result<BuiltStore, BoxError> {
    let store = scratch.join("store");
    let clock = Arc::new(ManualClock::new(seed));
    let mut rng = Rng::new(seed);
    let open = || Timeline::open_with(&store, Rules::default(), clock.clone());
    let timeline = open()?;
    let mut threads = Vec::new();
    for number in 0..THREADS {
        let new = NewThread::in_project(PROJECT).titled(format!("Thread about {number}"));
        threads.push(timeline.create_thread(new, caller())?.thread);
    }
    // Adds rows that are not derived from a log.
    let folder = scratch.join("project");
    fs::create_dir_all(folder.join(".git"))?;
    timeline.project(&folder)?;
    for step in 0..CHECKPOINTED_STEPS {
        clock.advance(3000);
        act(&timeline, threads[rng.index(THREADS)], step, &mut rng)?;
    }
    // Closing checkpoints the log.
    drop(timeline);
    let timeline = open()?;
    let mut moments = vec![copy(&store, &scratch.join("moment-0"))?];
    for step in 0..LOGGED_STEPS {
        clock.advance(3000);
        act(&timeline, threads[rng.index(THREADS)], CHECKPOINTED_STEPS + step, &mut rng)?;
        moments.push(copy(&store, &scratch.join(format!("moment-{}", step + 1)))?);
    }
    drop(timeline);
    let settled = copy(&store, &scratch.join("settled"))?;
    if settled.join("retake.db-wal").exists() {
        return Err("closing the store did not remove its write-ahead log".into());
    }
    Ok(BuiltStore { moments, settled, threads })
}

/// Copies the files of a store, except the shared-memory file.
pub(super) fn copy(from: &Path, to: &Path) -> Result<PathBuf, BoxError> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        let name = file.file_name();
        if file.file_type()?.is_file() && !name.to_string_lossy().ends_with("-shm") {
            fs::copy(file.path(), to.join(name))?;
        }
    }
    Ok(to.to_owned())
}

fn caller() -> Caller {
    let environment = Environment {
        workspace_root: Some("/home/somebody/project".to_owned()),
        git_branch: Some("main".to_owned()),
        git_commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        ..Environment::default()
    };
    Caller { environment: Some(environment), ..Caller::human() }
}

fn act(timeline: &Timeline, thread: ThreadId, step: u64, rng: &mut Rng) -> Result<(), BoxError> {
    let reader = timeline.read()?;
    let state = reader.state(thread)?;
    let row = reader.thread(thread)?.number;
    let take = state.active_take(&reader.queries())?;
    let entry = match take.entries.len() {
        0 => None,
        count => take.entries.get(&reader.queries(), rng.below(count))?.map(|cell| cell.entry),
    };
    drop(reader);
    let take = take.id;
    let command = match (step % 15, entry) {
        (2, Some(entry)) => Command::EditEntry { take, entry, text: text(step, rng) },
        (4, Some(entry)) => Command::DeleteEntries { take, entries: vec![entry] },
        (5, at) => Command::Branch { from: take, at, name: None },
        (6, _) => Command::Tag { add: vec![format!("tag{step}")], remove: Vec::new() },
        (7, _) => Command::SetDraft { take, text: text(step, rng) },
        (8, _) => Command::Rename { title: format!("Renamed at {step}") },
        (9, _) => {
            let items = vec![FileItem::new(format!("src/{step}.rs"))];
            Command::SetFiles { take, list: FileList::Files, items }
        }
        (10, _) => Command::Set { values: vec![("temperature".to_owned(), format!("0.{}", step % 10))] },
        (11, _) => Command::Pin { pinned: step.is_multiple_of(2) },
        (12, _) => Command::Save { name: format!("moment {step}") },
        (13, _) => {
            // There may be nothing to undo yet.
            let _ = timeline.undo(thread, Unit::Turn, 1, caller());
            return Ok(());
        }
        (14, Some(entry)) => {
            let shown = EntryPresentation { collapsed: true, source: false };
            timeline.store().write(move |writing| -> Result<(), StoreError> {
                writing.set_presentation(row, &[entry], shown)
            })?;
            return Ok(());
        }
        _ => {
            let entries = (0..=rng.below(3)).map(|_| {
                let result = text(step, rng);
                NewEntry::from(EntryVersion::from_text("User", &result, Timestamp::from_millis(step as i64)))
            });
            Command::AddEntries { take, at: InsertPosition::End, entries: entries.collect() }
        }
    };
    timeline.change(thread, command, caller())?;
    Ok(())
}

/// Random text, sometimes long enough to fill several compressed pages.
fn text(step: u64, rng: &mut Rng) -> String {
    let mut text = format!("step {step}: ");
    let words = if rng.once_in(8) { 1500 } else { rng.below(30) };
    for _ in 0..words {
        text.push_str(&rng.next_u64().to_string());
        text.push(' ');
    }
    text
}
