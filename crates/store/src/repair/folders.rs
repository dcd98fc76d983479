//! Folders and moves of files that have begun. Both are only there to be quick or to go on after a crash: the
//! files themselves are in their folder, and what they were is in the log. So a row that cannot be relied on is
//! dropped, and the next look at the folder records what it finds.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind};

use super::Change;
use super::objects::Inventory;
use crate::queries::hexadecimal;
use crate::verify::{FolderRows, Logs, is_next};
use crate::whole::Wholeness;
use crate::{StoreError, Writing};

/// Drops rows that are damaged, that lead nowhere, or whose content is gone.
pub(super) fn mend(
    writing: &Writing<'_>,
    logs: &Logs,
    inventory: &Inventory,
    changes: &mut Vec<Change>,
) -> Result<(), StoreError> {
    let rows = FolderRows::read(writing, &mut Vec::new())?;
    let bytes = |kind: Kind| matches!(kind, Kind::Blob | Kind::Sealed);
    let blobs: HashSet<ContentId> =
        inventory.lost.iter().filter(|(kind, _)| bytes(*kind)).map(|&(_, id)| id).collect();
    // To compare a folder with what it was, the bytes of its files are not needed; to put them there, they are.
    let mut comparable = Wholeness::new(writing, &blobs, &inventory.present);
    let mut writable = Wholeness::new(writing, &HashSet::new(), &inventory.present);
    let mut forgotten = rows.damaged_folders;
    for folder in &rows.folders {
        let whole = match folder.snapshot {
            Some(snapshot) => comparable.is_whole(Kind::Snapshot, snapshot)?,
            None => true,
        };
        if !whole {
            forgotten.push(folder.id.key().to_vec());
        }
    }
    let mut dropped = rows.damaged_intents;
    for stored in &rows.intents {
        let (operation, files) = (&stored.intent.operation, &stored.intent.files);
        let sound = is_next(operation, logs)
            && comparable.is_whole(Kind::State, operation.after)?
            && comparable.is_whole(Kind::Snapshot, files.before)?
            && writable.is_whole(Kind::Snapshot, files.after)?;
        if !sound {
            dropped.push(stored.number);
        }
    }
    for key in forgotten {
        writing.connection.prepare_cached("DELETE FROM folder WHERE key = ?1")?.execute([&key])?;
        changes.push(Change::FolderForgotten { folder: hexadecimal(&key) });
    }
    for intent in dropped {
        writing.end_intent(intent)?;
        changes.push(Change::IntentDropped { intent });
    }
    Ok(())
}
