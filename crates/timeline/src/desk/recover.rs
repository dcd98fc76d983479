//! Finishing what a crash left.
//!
//! The intent says what was to become of which path, and the store holds all of it, so finishing is doing it
//! again: a path that has moved already is as it should be, one that has not is moved now, and one that is
//! neither was touched by someone else since and stays.

use retake_model::id::FolderId;
use retake_model::operation::OperationKind;
use retake_model::time::Timestamp;
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use super::FileError;
use super::carry_out::{end, move_files};
use super::report::{Outcome, PathReport};
use crate::{ChangeError, Timeline};

/// What a crash had left unfinished, and what was done about it.
#[derive(Clone, Debug, Serialize)]
pub struct Recovered {
    /// What had been asked for.
    pub kind: OperationKind,
    /// When.
    pub time: Timestamp,
    /// Whether it was finished; it is given up where the folder is gone.
    pub finished: bool,
    /// What became of each path.
    pub paths: Vec<PathReport>,
    /// Where files of somebody's are that could not go back to their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
}

impl Timeline {
    /// Tries until the files that move together with a thread have come to rest. Whoever moves them is waited
    /// for; if nobody is at it any more, it is finished here.
    pub(crate) fn settled<T>(&self, attempt: impl Fn() -> Result<T, ChangeError>) -> Result<T, ChangeError> {
        loop {
            match attempt() {
                Err(ChangeError::Moving(folder)) => recover_folder(self, folder)?,
                other => return other,
            }
        }
    }

    /// Finishes every move of files that a crash left, as far as nobody else is at it.
    pub fn recover(&self) -> Result<Vec<Recovered>, FileError> {
        let folders: Vec<FolderId> =
            self.look()?.queries().intents()?.into_iter().map(|stored| stored.intent.folder).collect();
        let mut recovered = Vec::new();
        for folder in folders {
            if let Some(_lock) = self.store.try_lock_folder(folder)? {
                recovered.extend(recover_locked(self, folder, None)?);
            }
        }
        Ok(recovered)
    }
}

/// Waits until nobody moves files in a folder, and finishes what a crash left there.
fn recover_folder(timeline: &Timeline, folder: FolderId) -> Result<(), ChangeError> {
    let _lock = timeline.store.lock_folder(folder)?;
    recover_locked(timeline, folder, None)?;
    Ok(())
}

/// Finishes what a crash left in a folder that is locked.
pub(super) fn recover_locked(
    timeline: &Timeline,
    folder: FolderId,
    roots: Option<Vec<(String, String)>>,
) -> Result<Option<Recovered>, FileError> {
    let found = timeline.look()?.queries().intent_on(folder)?;
    let Some(mut intent) = found else { return Ok(None) };
    // The folder may have been moved since.
    if let Some(roots) = roots {
        intent.intent.roots = roots;
    }
    let (kind, time) = (intent.intent.operation.kind.clone(), intent.intent.operation.time);
    let gone = |(_, path): &(String, String)| !path_from_text(path).is_dir();
    if intent.intent.roots.iter().any(gone) {
        let number = intent.number;
        timeline.store.write(move |writing| writing.end_intent(number).map_err(FileError::from))?;
        return Ok(Some(Recovered { kind, time, finished: false, paths: Vec::new(), aside: Vec::new() }));
    }
    let applied = move_files(timeline, &intent)?;
    end(timeline, intent, &applied)?;
    let paths = applied
        .paths
        .into_iter()
        .filter(|(_, outcome)| *outcome != Outcome::Unchanged)
        .map(|(path, outcome)| PathReport { path, outcome, after: None, before: None })
        .collect();
    Ok(Some(Recovered { kind, time, finished: true, paths, aside: applied.aside }))
}
