//! Repairs objects: identifies intact, damaged and lost ones.

use std::collections::{BTreeSet, HashSet};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};
use retake_model::time::Timestamp;
use rusqlite::params;

use super::RepairChange;
use crate::maintenance::scan::{OBJECTS, scan};
use crate::maintenance::verify::{FolderRows, Log, Logs, MaintenanceProgress, MaintenanceStage, read_index};
use crate::objects::read_write::unpack;
use crate::{StoreError, WriteTransaction};

const REPORT_EVERY: usize = 1024;

struct ObjectRow {
    number: i64,
    /// The name prefix in the index.
    indexed: Option<i64>,
    /// Kind and id, if the object is well-formed.
    found: Option<(Kind, ContentId)>,
}

/// The result of reading all objects.
pub(super) struct Inventory {
    /// Intact objects.
    pub(super) present: HashSet<Reference>,
    /// Referenced objects that are lost.
    pub(super) lost: Vec<Reference>,
}

/// Quarantines damaged objects and rebuilds the index.
pub(super) fn repair(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    now: Timestamp,
    progress: &mut dyn FnMut(MaintenanceProgress),
    changes: &mut Vec<RepairChange>,
) -> Result<Inventory, StoreError> {
    let mut needed: HashSet<Reference> = HashSet::new();
    for (_, operation) in logs.threads.values().flat_map(Log::intact) {
        needed.extend(operation.needs());
    }
    // Damaged rows are unreliable, and handled later.
    let folders = FolderRows::read(writing, &mut Vec::new())?;
    needed.extend(folders.needs().map(|(reference, _)| reference));
    let rows = read(writing, &mut needed, progress)?;
    let mut index = BTreeSet::new();
    let mut present = HashSet::new();
    for row in &rows {
        if let Some(found) = row.found.filter(|found| has_expected_name(row, found, &needed)) {
            index.insert((found.1.prefix(), row.number));
            present.insert(found);
        } else {
            quarantine(writing, row, now)?;
            changes.push(RepairChange::ObjectQuarantined { number: row.number });
        }
    }
    let (packed, repaired_packed) = writing.rebuild_pack_rows(&needed, now)?;
    present.extend(packed.into_iter().map(|id| (Kind::Blob, id)));
    let repaired = repair_index(writing, &index)? + repaired_packed;
    if repaired > 0 {
        changes.push(RepairChange::IndexRepaired { rows: repaired });
    }
    let mut lost: Vec<Reference> = needed.difference(&present).copied().collect();
    lost.sort_unstable();
    record_losses(writing, &lost, &present, now, changes)?;
    Ok(Inventory { present, lost })
}

fn read(
    writing: &WriteTransaction<'_>,
    needed: &mut HashSet<Reference>,
    progress: &mut dyn FnMut(MaintenanceProgress),
) -> Result<Vec<ObjectRow>, StoreError> {
    // Damage in the index is repaired below.
    let index = read_index(writing, &mut Vec::new())?;
    let mut rows: Vec<ObjectRow> = Vec::with_capacity(index.len());
    scan(writing.connection, OBJECTS, &mut |row| {
        if rows.len().is_multiple_of(REPORT_EVERY) {
            progress(MaintenanceProgress {
                done: rows.len() as u64,
                total: index.len().max(rows.len()) as u64,
                stage: MaintenanceStage::Objects,
            });
        }
        let number: i64 = row.get(0)?;
        let kind = row.get_ref(1)?.as_i64().ok();
        let packing = row.get_ref(2)?.as_i64().unwrap_or(-1);
        let body = row.get_ref(4)?.as_blob().unwrap_or_default();
        let kind = kind.and_then(|kind| u8::try_from(kind).ok()).and_then(Kind::from_number);
        let found = kind.zip(unpack(packing, body)).and_then(|(kind, bytes)| {
            let id = ContentId::of(kind, &bytes);
            Some((kind, id, references(kind, &bytes).ok()?))
        });
        rows.push(ObjectRow {
            number,
            indexed: index.get(&number).copied(),
            found: found.as_ref().map(|&(kind, id, _)| (kind, id)),
        });
        if let Some((_, id, below)) = found
            && index.get(&number).is_none_or(|&prefix| prefix == id.prefix())
        {
            needed.extend(below);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Whether an object is intact. Damaged bytes have an id that nothing refers to, and another prefix in the index.
fn has_expected_name(row: &ObjectRow, found: &Reference, needed: &HashSet<Reference>) -> bool {
    row.indexed.is_none_or(|prefix| prefix == found.1.prefix()) || needed.contains(found)
}

fn quarantine(writing: &WriteTransaction<'_>, row: &ObjectRow, now: Timestamp) -> Result<(), StoreError> {
    writing
        .connection
        .prepare_cached(
            "INSERT INTO quarantine (source, place, prefix, kind, packing, body, time)
             SELECT 'object', number, ?2, kind, packing, body, ?3 FROM object WHERE number = ?1",
        )?
        .execute(params![row.number, row.indexed, now.millis()])?;
    writing.connection.prepare_cached("DELETE FROM object WHERE number = ?1")?.execute([row.number])?;
    Ok(())
}

/// Corrects the index; returns the number of wrong rows.
fn repair_index(writing: &WriteTransaction<'_>, wanted: &BTreeSet<(i64, i64)>) -> Result<u64, StoreError> {
    writing.sort_recent()?;
    let found = {
        let mut statement = writing.connection.prepare("SELECT prefix, number FROM object_index")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<BTreeSet<(i64, i64)>, _>>()?
    };
    let mut repaired = 0;
    for (prefix, number) in found.difference(wanted) {
        repaired += writing
            .connection
            .prepare_cached("DELETE FROM object_index WHERE prefix = ?1 AND number = ?2")?
            .execute([prefix, number])?;
    }
    for (prefix, number) in wanted.difference(&found) {
        repaired += writing
            .connection
            .prepare_cached("INSERT INTO object_index (prefix, number) VALUES (?1, ?2)")?
            .execute([prefix, number])?;
    }
    Ok(repaired as u64)
}

/// Records lost content, and removes records of content that was found again.
fn record_losses(
    writing: &WriteTransaction<'_>,
    lost: &[Reference],
    present: &HashSet<Reference>,
    now: Timestamp,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    for &(kind, id) in lost {
        if writing.is_redacted(id)? || writing.is_lost(id)? {
            continue;
        }
        writing
            .connection
            .prepare_cached("INSERT INTO lost (id, kind, time) VALUES (?1, ?2, ?3)")?
            .execute(params![id.bytes(), kind as i64, now.millis()])?;
        changes.push(RepairChange::ContentLost { kind, id });
    }
    let present: HashSet<&[u8; 32]> = present.iter().map(|(_, id)| id.bytes()).collect();
    let known: Vec<Vec<u8>> = {
        let mut statement = writing.connection.prepare("SELECT id FROM lost")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    for bytes in known {
        let id: Option<[u8; 32]> = bytes.as_slice().try_into().ok();
        if let Some(id) = id.filter(|id| present.contains(id)) {
            writing.connection.prepare_cached("DELETE FROM lost WHERE id = ?1")?.execute([bytes])?;
            changes.push(RepairChange::ContentFound { id: ContentId::from_bytes(id) });
        }
    }
    Ok(())
}
