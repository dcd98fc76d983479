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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// Minimum number of concurrent changes: on a machine on which the writers are slow, more rounds are run.
const MIN_CHANGES: u64 = 200;

/// The control's files are half written for this long, so that the check finds one on any machine.
const HALF_WRITTEN: Duration = Duration::from_millis(2);

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConcurrentWritersSummary {
    /// Number of rounds of record, undo and redo.
    pub rounds: u64,
    /// Number of concurrent changes.
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

/// The end of the run, and the changes of all writers.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    changes: AtomicU64,
}

impl Progress {
    /// Counts a change of a writer.
    fn count(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn is_running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Runs the campaign for at least this many rounds.
pub fn concurrent_writers(
    rounds: u64,
    replacing: ReplaceMethod,
) -> Result<ConcurrentWritersSummary, CampaignError> {
    let scratch = ScratchDir::for_files().map_err(CampaignError::trouble)?;
    let folder = scratch.path().join("project");
    for name in ["replaced", "fleeting", "agent"] {
        fs::create_dir_all(folder.join(name)).map_err(CampaignError::trouble)?;
    }
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let (folder, progress) = (folder.as_path(), &progress);
        let writers = [
            scope.spawn(move || replace(folder, progress, replacing)),
            scope.spawn(move || rewrite(folder, progress)),
            scope.spawn(move || {
                create_and_remove(folder, progress);
                Ok(())
            }),
            scope.spawn(move || {
                append_to_open_file(folder, progress);
                Ok(())
            }),
        ];
        let outcome = work(&scratch.path().join("home"), folder, rounds, progress);
        progress.stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().map_err(|_| CampaignError::trouble("a writer panicked"))??;
        }
        let (session, rounds) = outcome?;
        check_end(&session, folder).map_err(broken)?;
        Ok(ConcurrentWritersSummary { rounds, changes: progress.changes.load(Ordering::Relaxed) })
    })
}

fn broken(what: String) -> CampaignError {
    CampaignError::Violation(Violation { campaign: "concurrent-writers", seed: 0, step: 0, what })
}

struct Session {
    working_copy: WorkingCopy,
    thread: retake_model::id::ThreadId,
}

/// Records, undoes and redoes; returns the number of rounds.
fn work(
    store: &Path,
    folder: &Path,
    rounds: u64,
    progress: &Progress,
) -> Result<(Session, u64), CampaignError> {
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
    let has_text = |text: &str| fs::read_to_string(&own).unwrap_or_default() == text;
    let go = |goal| working_copy.go(thread, goal, Caller::human(), MoveOptions::default());
    let mut round = 0;
    while round < rounds || progress.changes.load(Ordering::Relaxed) < MIN_CHANGES {
        working_copy.record_changes(thread, Caller::human()).map_err(|error| fail(&error))?;
        let (before, after) = (fs::read_to_string(&own).unwrap_or_default(), format!("round {round}\n"));
        fs::write(&own, &after).map_err(CampaignError::trouble)?;
        working_copy
            .record_as_caller(thread, Caller { actor: Actor::Agent, ..Caller::human() })
            .map_err(|error| fail(&error))?;
        go(Goal::Undo(Unit::Turn, 1)).map_err(|error| fail(&error))?;
        if !has_text(&before) {
            return Err(broken(format!("round {round}: the undo did not restore the agent's file")));
        }
        go(Goal::Redo(Unit::Turn, 1)).map_err(|error| fail(&error))?;
        if !has_text(&after) {
            return Err(broken(format!("round {round}: the redo did not restore the agent's file")));
        }
        check_replaced(folder).map_err(broken)?;
        round += 1;
    }
    Ok((Session { working_copy, thread }, round))
}

/// Every replaced file must consist of one letter.
fn check_replaced(folder: &Path) -> Result<(), String> {
    for name in ["a", "b"] {
        let Ok(bytes) = fs::read(folder.join("replaced").join(name)) else { continue };
        if bytes.len() != FILE_BYTES || bytes.iter().any(|byte| *byte != bytes[0]) {
            return Err(format!("replaced/{name} is a mixture of two versions"));
        }
    }
    Ok(())
}

/// Afterwards no temporary file is left, and a second snapshot finds no changes.
fn check_end(session: &Session, folder: &Path) -> Result<(), String> {
    let working_copy = &session.working_copy;
    let record =
        || working_copy.record_changes(session.thread, Caller::human()).map_err(|error| error.to_string());
    record()?;
    let again = record()?;
    if !again.files.paths.is_empty() {
        return Err(format!("a second snapshot finds {} changes", again.files.paths.len()));
    }
    let found = Folder::read(folder).map_err(|error| error.to_string())?;
    if let Some(left) = found.leftovers().first() {
        return Err(format!("the temporary file {} was not removed", left.display()));
    }
    let files = found.0.values().filter(|node| !matches!(node, FileNode::Folder(_))).count() as u64;
    let reader = working_copy.timeline().read().map_err(|error| error.to_string())?;
    let snapshot: retake_model::tree::Snapshot =
        retake_model::object::load(&reader.queries(), again.snapshot).map_err(|error| error.to_string())?;
    if snapshot.files() != files {
        return Err(format!("the snapshot has {} files, the folder {files}", snapshot.files()));
    }
    let verified = working_copy.timeline().store().verify(&mut |_| {}).map_err(|error| error.to_string())?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
}

fn replace(folder: &Path, progress: &Progress, replacing: ReplaceMethod) -> Result<(), BoxError> {
    let mut changes = 0_u64;
    while progress.is_running() {
        let letter = b'a' + (changes % 26) as u8;
        let place = folder.join("replaced").join(if changes.is_multiple_of(2) { "a" } else { "b" });
        let aside = folder.with_file_name("aside");
        match replacing {
            ReplaceMethod::ByRename => {
                fs::write(&aside, vec![letter; FILE_BYTES])?;
                fs::rename(&aside, place)?;
            }
            ReplaceMethod::InPlace => {
                let mut file = fs::File::create(place)?;
                file.write_all(&vec![letter; FILE_BYTES / 2])?;
                std::thread::sleep(HALF_WRITTEN);
                file.write_all(&vec![letter; FILE_BYTES - FILE_BYTES / 2])?;
            }
        }
        changes += 1;
        progress.count();
    }
    Ok(())
}

fn rewrite(folder: &Path, progress: &Progress) -> Result<(), BoxError> {
    let mut changes = 0_u64;
    while progress.is_running() {
        let mut file = fs::File::create(folder.join("rewritten"))?;
        for line in 0..200 {
            writeln!(file, "line {line} of version {changes}")?;
        }
        changes += 1;
        progress.count();
    }
    Ok(())
}

fn create_and_remove(folder: &Path, progress: &Progress) {
    let mut changes = 0_u64;
    while progress.is_running() {
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
        progress.count();
    }
}

/// Writes to a file that stays open, which an undo may move aside with its folder.
fn append_to_open_file(folder: &Path, progress: &Progress) {
    let place = folder.join("lingering");
    let mut changes = 0_u64;
    while progress.is_running() {
        let _ = fs::create_dir_all(&place);
        if let Ok(mut log) = fs::File::create(place.join("log")) {
            for line in 0..6 {
                let _ = writeln!(log, "line {line} of version {changes}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = fs::remove_dir_all(&place);
        changes += 1;
        progress.count();
    }
}
