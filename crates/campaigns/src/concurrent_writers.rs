//! Records and moves files while other writers rewrite, replace, create and remove files in the same folder.
//!
//! ```text
//!   four writers, without pause    replaced/  whole files of one letter, replaced by rename
//!                                  rewritten  one file, overwritten in place again and again
//!                                  fleeting/  files and folders that are created and removed
//!                                  lingering/ a file that stays open and grows
//!   the working copy, meanwhile    record · undo · redo · restore · …        on the agent's own files
//! ```
//!
//! No operation may fail, no replaced file may be read partially, the agent's own file always has the expected content,
//! and afterwards the store agrees with the folder. Changes of the writers between the agent's snapshots count as the
//! agent's and move with them, so the writers tolerate that their folders disappear.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use retake_model::id::ProjectId;
use retake_model::operation::Actor;
use retake_timeline::{Caller, FileError, Goal, MoveOptions, NewThread, Rules, Timeline, Unit, WorkingCopy};
use retake_workspace::snapshot::Workspace;

use crate::folder::{FileNode, Folder};
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

/// Size of the replaced files: more than one read of any program.
const FILE_BYTES: usize = 300_000;

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConcurrentWritersSummary {
    /// Number of rounds of record, undo and redo.
    pub rounds: u64,
    /// Approximate number of concurrent changes.
    pub changes: u64,
}

/// How files are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceMethod {
    /// By rename: readers see the old or the new file.
    ByRename,
    /// In place, so that readers can see a partial file: the control.
    InPlace,
}

/// Runs the campaign.
pub fn concurrent_writers(
    rounds: u64,
    replacing: ReplaceMethod,
) -> Result<ConcurrentWritersSummary, CampaignError> {
    let scratch = ScratchDir::for_files().map_err(CampaignError::trouble)?;
    let folder = scratch.path().join("project");
    for name in ["replaced", "fleeting", "agent"] {
        fs::create_dir_all(folder.join(name)).map_err(CampaignError::trouble)?;
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (folder, stop) = (folder.as_path(), &stop);
        let hands = [
            scope.spawn(move || replace(folder, stop, replacing)),
            scope.spawn(move || rewrite(folder, stop)),
            scope.spawn(move || Ok(create_and_remove(folder, stop))),
            scope.spawn(move || Ok(append_to_open_file(folder, stop))),
        ];
        let judged = work(&scratch.path().join("home"), folder, rounds, stop);
        stop.store(true, Ordering::Relaxed);
        let mut changes = 0;
        for hand in hands {
            changes += hand.join().map_err(|_| CampaignError::trouble("a hand panicked"))??;
        }
        let working_copy = judged?;
        quiet(&working_copy, folder).map_err(broken)?;
        Ok(ConcurrentWritersSummary { rounds, changes })
    })
}

fn broken(what: String) -> CampaignError {
    CampaignError::Violation(Violation { campaign: "concurrent-writers", seed: 0, step: 0, what })
}

struct Session {
    working_copy: WorkingCopy,
    thread: retake_model::id::ThreadId,
}

fn work(store: &Path, folder: &Path, rounds: u64, stop: &AtomicBool) -> Result<Session, CampaignError> {
    let fail = |error: &FileError| broken(format!("it failed: {error}: {error:?}"));
    let project = ProjectId::from_bytes([7; 16]);
    let timeline = Timeline::open(store, Rules::default()).map_err(CampaignError::trouble)?;
    let thread = timeline
        .create_thread(NewThread::in_project(project), Caller::human())
        .map_err(CampaignError::trouble)?
        .thread;
    let working_copy =
        WorkingCopy::at(timeline, project, Workspace::of(folder).map_err(CampaignError::trouble)?);
    let own = folder.join("agent/own");
    let says = |text: &str| fs::read_to_string(&own).unwrap_or_default() == text;
    let go = |goal| working_copy.go(thread, goal, Caller::human(), MoveOptions::default());
    for round in 0..rounds {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        working_copy.record_changes(thread, Caller::human()).map_err(|error| fail(&error))?;
        let (before, after) = (fs::read_to_string(&own).unwrap_or_default(), format!("round {round}\n"));
        fs::write(&own, &after).map_err(CampaignError::trouble)?;
        working_copy
            .record_as_caller(thread, Caller { actor: Actor::Agent, ..Caller::human() })
            .map_err(|error| fail(&error))?;
        go(Goal::Undo(Unit::Turn, 1)).map_err(|error| fail(&error))?;
        if !says(&before) {
            return Err(broken(format!("round {round}: the undo did not bring the agent's file back")));
        }
        go(Goal::Redo(Unit::Turn, 1)).map_err(|error| fail(&error))?;
        if !says(&after) {
            return Err(broken(format!("round {round}: the redo did not bring the agent's file back")));
        }
        whole(folder).map_err(broken)?;
    }
    Ok(Session { working_copy, thread })
}

/// Every replaced file must consist of one letter.
fn whole(folder: &Path) -> Result<(), String> {
    for name in ["a", "b"] {
        let Ok(bytes) = fs::read(folder.join("replaced").join(name)) else { continue };
        if bytes.len() != FILE_BYTES || bytes.iter().any(|byte| *byte != bytes[0]) {
            return Err(format!("replaced/{name} is half one thing and half another"));
        }
    }
    Ok(())
}

/// Afterwards no temporary file is left, and a second snapshot finds no changes.
fn quiet(at: &Session, folder: &Path) -> Result<(), String> {
    let look =
        || at.working_copy.record_changes(at.thread, Caller::human()).map_err(|error| error.to_string());
    look()?;
    let again = look()?;
    if !again.files.paths.is_empty() {
        return Err(format!("looking twice finds {} changes", again.files.paths.len()));
    }
    let found = Folder::read(folder).map_err(|error| error.to_string())?;
    if let Some(left) = found.leftovers().first() {
        return Err(format!("{} was left behind", left.display()));
    }
    let files = found.0.values().filter(|thing| !matches!(thing, FileNode::Folder(_))).count() as u64;
    let reader = at.working_copy.timeline().read().map_err(|error| error.to_string())?;
    let held: retake_model::tree::Snapshot =
        retake_model::object::load(&reader.queries(), again.snapshot).map_err(|error| error.to_string())?;
    if held.files() != files {
        return Err(format!("{} files are held, and there are {files}", held.files()));
    }
    let verified =
        at.working_copy.timeline().store().verify(&mut |_| {}).map_err(|error| error.to_string())?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
}

fn replace(folder: &Path, stop: &AtomicBool, replacing: ReplaceMethod) -> Result<u64, BoxError> {
    let mut changes = 0;
    while !stop.load(Ordering::Relaxed) {
        let letter = b'a' + (changes % 26) as u8;
        let place = folder.join("replaced").join(if changes % 2 == 0 { "a" } else { "b" });
        let aside = folder.with_file_name("aside");
        match replacing {
            ReplaceMethod::ByRename => {
                fs::write(&aside, vec![letter; FILE_BYTES])?;
                fs::rename(&aside, place)?;
            }
            ReplaceMethod::InPlace => fs::write(place, vec![letter; FILE_BYTES])?,
        }
        changes += 1;
    }
    Ok(changes)
}

fn rewrite(folder: &Path, stop: &AtomicBool) -> Result<u64, BoxError> {
    let mut changes = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut file = fs::File::create(folder.join("rewritten"))?;
        for line in 0..200 {
            writeln!(file, "line {line} of version {changes}")?;
        }
        changes += 1;
    }
    Ok(changes)
}

fn create_and_remove(folder: &Path, stop: &AtomicBool) -> u64 {
    let mut changes = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let place = folder.join("fleeting").join((changes % 7).to_string());
        // An undo may happen between any two of these.
        if place.is_dir() {
            let _ = fs::remove_dir_all(&place);
        } else {
            let _ = fs::create_dir_all(&place);
            for name in 0..5 {
                let _ = fs::write(place.join(name.to_string()), changes.to_string());
            }
        }
        changes += 1;
    }
    changes
}

/// Writes to a file that stays open, which an undo may move aside with its folder.
fn append_to_open_file(folder: &Path, stop: &AtomicBool) -> u64 {
    let place = folder.join("lingering");
    let mut changes = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let _ = fs::create_dir_all(&place);
        if let Ok(mut log) = fs::File::create(place.join("log")) {
            for line in 0..6 {
                let _ = writeln!(log, "line {line} of version {changes}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = fs::remove_dir_all(&place);
        changes += 1;
    }
    changes
}
