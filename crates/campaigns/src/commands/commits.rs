//! `campaigns commits`: a long-running process, for faults that only such a process meets.

use std::path::PathBuf;

use clap::Args;
use retake_campaigns::violation::BoxError;
use retake_model::entry::EntryVersion;
use retake_model::id::ProjectId;
use retake_store::{StoreError, ThreadFilter};
use retake_timeline::{Caller, ChangeError, Command, InsertPosition, NewThread, Rules, Timeline};

/// Commit in a loop and report each result.
#[derive(Args, Debug)]
pub(crate) struct Commits {
    /// Folder of the store.
    folder: PathBuf,
    /// Number of commits.
    count: u64,
}

impl Commits {
    pub(super) fn run(self) -> Result<(), BoxError> {
        let timeline = Timeline::open(&self.folder, Rules::default())?;
        let known = timeline.read()?.threads(&ThreadFilter::default())?;
        let thread = if let Some(row) = known.first() {
            row.summary.id
        } else {
            let new = NewThread::in_project(ProjectId::from_bytes([7; 16]));
            timeline.create_thread(new, Caller::human())?.thread
        };
        for number in 0..self.count {
            let take = timeline.read()?.state(thread)?.active;
            let entry = EntryVersion::from_text("User", &format!("entry {number}"), timeline.now());
            let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
            println!(
                "{}",
                match timeline.change(thread, add, Caller::human()) {
                    Ok(_) => "done",
                    Err(ChangeError::Store(StoreError::OutcomeUnknown)) => "unsure",
                    Err(ChangeError::Store(StoreError::Poisoned)) => "poisoned",
                    Err(_) => "failed",
                }
            );
        }
        Ok(())
    }
}
