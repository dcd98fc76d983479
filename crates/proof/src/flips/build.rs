//! Builds a store with some history, and copies of its last versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::command::{NewEntry, Spot};
use retake_model::entry::EntryVersion;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::surroundings::Surroundings;
use retake_model::take::{FileItem, FileList};
use retake_model::time::Timestamp;
use retake_store::{Shown, StoreError};
use retake_timeline::{Caller, Command, NewThread, Rules, Timeline, Unit};

use crate::dice::Dice;
use crate::model::clock::StandingClock;
use crate::violation::Trouble;

const THREADS: usize = 3;
/// Steps in the database itself.
const SETTLED: u64 = 45;
/// Steps in the write-ahead log only.
const FLOATING: u64 = 20;

/// The project of all threads.
pub(super) const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);

pub(super) struct Built {
    /// The store after each of its last steps, in order.
    pub(super) moments: Vec<PathBuf>,
    /// The store after its last step, fully checkpointed.
    pub(super) settled: PathBuf,
    pub(super) threads: Vec<ThreadId>,
}

/// Builds the store in this folder.
pub(super) fn build(ground: &Path, seed: u64) -> Result<Built, Trouble> {
    let store = ground.join("store");
    let clock = Arc::new(StandingClock::new(seed));
    let mut dice = Dice::new(seed);
    let open = || Timeline::open_with(&store, Rules::default(), clock.clone());
    let timeline = open()?;
    let mut threads = Vec::new();
    for number in 0..THREADS {
        let new = NewThread::in_project(PROJECT).titled(format!("Thread about {number}"));
        threads.push(timeline.create_thread(new, caller())?.thread);
    }
    // Adds rows that are not derived from a log.
    let folder = ground.join("project");
    fs::create_dir_all(folder.join(".git"))?;
    timeline.project(&folder)?;
    for step in 0..SETTLED {
        clock.advance(3000);
        act(&timeline, threads[dice.index(THREADS)], step, &mut dice)?;
    }
    // Closing checkpoints the log.
    drop(timeline);
    let timeline = open()?;
    let mut moments = vec![copy(&store, &ground.join("moment-0"))?];
    for step in 0..FLOATING {
        clock.advance(3000);
        act(&timeline, threads[dice.index(THREADS)], SETTLED + step, &mut dice)?;
        moments.push(copy(&store, &ground.join(format!("moment-{}", step + 1)))?);
    }
    drop(timeline);
    let settled = copy(&store, &ground.join("settled"))?;
    if settled.join("retake.db-wal").exists() {
        return Err("closing the store left its log behind".into());
    }
    Ok(Built { moments, settled, threads })
}

/// Copies the files of a store, except the shared-memory file.
pub(super) fn copy(from: &Path, to: &Path) -> Result<PathBuf, Trouble> {
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
    let surroundings = Surroundings {
        workspace_root: Some("/home/somebody/project".to_owned()),
        git_branch: Some("main".to_owned()),
        git_commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        ..Surroundings::default()
    };
    Caller { surroundings: Some(surroundings), ..Caller::human() }
}

fn act(timeline: &Timeline, thread: ThreadId, step: u64, dice: &mut Dice) -> Result<(), Trouble> {
    let looking = timeline.look()?;
    let state = looking.state(thread)?;
    let row = looking.thread(thread)?.number;
    let take = state.active_take(&looking.queries())?;
    let entry = match take.entries.len() {
        0 => None,
        count => take.entries.get(&looking.queries(), dice.below(count))?.map(|cell| cell.entry),
    };
    drop(looking);
    let take = take.id;
    let command = match (step % 15, entry) {
        (2, Some(entry)) => Command::EditEntry { take, entry, text: text(step, dice) },
        (4, Some(entry)) => Command::DeleteEntries { take, entries: vec![entry] },
        (5, at) => Command::Branch { from: take, at, name: None },
        (6, _) => Command::Tag { add: vec![format!("tag{step}")], remove: Vec::new() },
        (7, _) => Command::SetDraft { take, text: text(step, dice) },
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
            let shown = Shown { collapsed: true, source: false };
            timeline.store().write(move |writing| -> Result<(), StoreError> {
                writing.set_shown(row, &[entry], shown)
            })?;
            return Ok(());
        }
        _ => {
            let entries = (0..=dice.below(3)).map(|_| {
                let said = text(step, dice);
                NewEntry::from(EntryVersion::from_text("User", &said, Timestamp::from_millis(step as i64)))
            });
            Command::AddEntries { take, at: Spot::End, entries: entries.collect() }
        }
    };
    timeline.change(thread, command, caller())?;
    Ok(())
}

/// Random text, sometimes long enough to fill several compressed pages.
fn text(step: u64, dice: &mut Dice) -> String {
    let mut text = format!("step {step}: ");
    let words = if dice.once_in(8) { 1500 } else { dice.below(30) };
    for _ in 0..words {
        text.push_str(&dice.roll().to_string());
        text.push(' ');
    }
    text
}
