//! Lists unfinished moves of files without changing anything.

use retake_model::id::ThreadId;
use retake_model::operation::OperationKind;
use retake_model::time::Timestamp;
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use super::FileError;
use super::recover::existing_roots;
use crate::Timeline;

/// A move of files that is running or was interrupted. The thread accepts no other change until it is completed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingMove {
    /// The thread.
    pub thread: ThreadId,
    /// The requested operation.
    pub kind: OperationKind,
    /// When it was requested.
    pub time: Timestamp,
    /// The folder whose files move.
    pub folder: String,
    /// Whether the folder exists and is still the same one.
    pub exists: bool,
    /// Whether a process is moving the files now; otherwise the move was interrupted.
    pub running: bool,
    /// What to do next.
    pub next: String,
}

impl Timeline {
    /// All unfinished moves of files. Does not complete them.
    pub fn pending_moves(&self) -> Result<Vec<PendingMove>, FileError> {
        let stored = self.read()?.queries().intents()?;
        let mut moves = Vec::with_capacity(stored.len());
        for stored in stored {
            let intent = &stored.intent;
            let running = self.store.try_lock_folder(intent.folder)?.is_none();
            let (exists, folder) = match existing_roots(self, &stored) {
                Ok(roots) => (true, roots.into_iter().next().map(|(_, path)| path).unwrap_or_default()),
                Err(FileError::FolderGone(_)) => {
                    (false, intent.roots.first().map(|(_, path)| path.clone()).unwrap_or_default())
                }
                Err(error) => return Err(error),
            };
            let path = path_from_text(&folder);
            let path = path.display();
            let next = match (running, exists) {
                (true, _) => "a process is moving them; no action is needed".to_owned(),
                (false, true) => format!("`retake -C {path} status` finishes it"),
                (false, false) => format!(
                    "restore the folder (is its disk mounted?), and the next command there finishes the move; if it is lost, `retake repair --forget-folder {path}` abandons the move"
                ),
            };
            let (kind, time) = (intent.operation.kind.clone(), intent.operation.time);
            moves.push(PendingMove {
                thread: intent.operation.thread,
                kind,
                time,
                folder,
                exists,
                running,
                next,
            });
        }
        Ok(moves)
    }
}
