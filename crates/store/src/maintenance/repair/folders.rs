//! Repairs rows of folders and of pending file moves. Both only speed things up or recover from crashes: the files
//! are in their folder, and their history is in the log. So an unreliable row is dropped, and the next snapshot of
//! the folder records its state.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind};

use super::RepairChange;
use super::objects::Inventory;
use crate::log::queries::hexadecimal;
use crate::maintenance::completeness::CompletenessChecker;
use crate::maintenance::verify::{FolderRows, Logs, is_next};
use crate::{StoreError, WriteTransaction};

/// Drops rows that are damaged, misplaced, or whose content is lost.
pub(super) fn repair(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    inventory: &Inventory,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    let rows = FolderRows::read(writing, &mut Vec::new())?;
    let bytes = |kind: Kind| matches!(kind, Kind::Blob | Kind::Sealed);
    let blobs: HashSet<ContentId> =
        inventory.lost.iter().filter(|(kind, _)| bytes(*kind)).map(|&(_, id)| id).collect();
    // Comparing a folder with its snapshot does not need the bytes of its files; restoring it does.
    let mut comparable = CompletenessChecker::new(writing, &blobs, &inventory.present);
    let mut writable = CompletenessChecker::new(writing, &HashSet::new(), &inventory.present);
    let mut forgotten = rows.damaged_folders;
    for folder in &rows.folders {
        let whole = match folder.snapshot {
            Some(snapshot) => comparable.is_complete(Kind::Snapshot, snapshot)?,
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
            && comparable.is_complete(Kind::State, operation.after)?
            && comparable.is_complete(Kind::Snapshot, files.before)?
            && writable.is_complete(Kind::Snapshot, files.after)?;
        if !sound {
            dropped.push(stored.number);
        }
    }
    for key in forgotten {
        writing.connection.prepare_cached("DELETE FROM folder WHERE key = ?1")?.execute([&key])?;
        changes.push(RepairChange::FolderForgotten { folder: hexadecimal(&key) });
    }
    for intent in dropped {
        writing.end_intent(intent)?;
        changes.push(RepairChange::IntentDropped { intent });
    }
    Ok(())
}
