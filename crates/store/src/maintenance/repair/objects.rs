//! Repairs objects: identifies intact, damaged and lost ones.

use std::collections::{BTreeSet, HashSet};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};
use retake_model::time::Timestamp;
use rusqlite::params;
use rusqlite::types::ValueRef;

use super::RepairChange;
use crate::maintenance::scan::{BUNDLES, OBJECTS, scan};
use crate::maintenance::verify::{FolderRows, Log, Logs, MaintenanceProgress, MaintenanceStage, read_index};
use crate::objects::bundle::Bundle;
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
    let bundles = read_bundles(writing, &mut needed)?;
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
    let mut renamed = 0;
    for bundle in &bundles {
        let (intact, lost): (Vec<_>, Vec<_>) = bundle.objects.iter().partition(|object| {
            object.found.is_some_and(|found| found.1.prefix() == object.name || needed.contains(&found))
        });
        for found in intact.iter().filter_map(|object| object.found) {
            index.insert((found.1.prefix(), -bundle.sequence));
            present.insert(found);
        }
        let wrong_names =
            intact.iter().filter(|object| object.found.is_none_or(|found| found.1.prefix() != object.name));
        let wrong_names = wrong_names.count() as u64;
        if !lost.is_empty() || bundle.is_unreadable {
            quarantine_bundle(writing, bundle.sequence, now)?;
            changes.push(RepairChange::ObjectQuarantined { number: -bundle.sequence });
        } else if wrong_names == 0 {
            continue;
        }
        renamed += wrong_names;
        writing.keep_in_bundle(bundle.sequence, &intact)?;
    }
    let (packed, repaired_packed) = writing.rebuild_pack_rows(&needed, now)?;
    present.extend(packed.into_iter().map(|id| (Kind::Blob, id)));
    let repaired = repair_index(writing, &index)? + repaired_packed + renamed;
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
        let id = found.as_ref().map(|(_, id, _)| id.prefix());
        let mut prefixes = index.prefixes(number);
        let indexed = index.prefixes(number).find(|prefix| Some(*prefix) == id).or_else(|| prefixes.next());
        rows.push(ObjectRow { number, indexed, found: found.as_ref().map(|&(kind, id, _)| (kind, id)) });
        if let Some((_, id, below)) = found
            && indexed.is_none_or(|prefix| prefix == id.prefix())
        {
            needed.extend(below);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// The bundle of an operation.
struct BundleRow {
    sequence: i64,
    is_unreadable: bool,
    objects: Vec<BundleEntry>,
}

struct BundleEntry {
    /// The name in the header.
    name: i64,
    /// Kind and id, if the object is well-formed.
    found: Option<Reference>,
}

fn read_bundles(
    writing: &WriteTransaction<'_>,
    needed: &mut HashSet<Reference>,
) -> Result<Vec<BundleRow>, StoreError> {
    let mut rows = Vec::new();
    scan(writing.connection, BUNDLES, &mut |row| {
        let bytes = match row.get_ref(1)? {
            ValueRef::Null => return Ok(()),
            value => value.as_blob().unwrap_or_default(),
        };
        let bundle = Bundle::parse(bytes);
        let mut objects = Vec::new();
        for object in bundle.iter().flat_map(Bundle::all) {
            let bytes = object.bytes.unwrap_or_default();
            let id = ContentId::of(object.kind, &bytes);
            let below = references(object.kind, &bytes).ok();
            let found = below.is_some().then_some((object.kind, id));
            needed.extend(below.filter(|_| id.prefix() == object.name).into_iter().flatten());
            objects.push(BundleEntry { name: object.name, found });
        }
        rows.push(BundleRow { sequence: row.get(0)?, is_unreadable: bundle.is_none(), objects });
        Ok(())
    })?;
    Ok(rows)
}

fn quarantine_bundle(
    writing: &WriteTransaction<'_>,
    sequence: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    writing
        .connection
        .prepare_cached(
            "INSERT INTO quarantine (source, place, thread, version, body, time)
             SELECT 'bundle', sequence, thread, version, CAST(bundle AS BLOB), ?2 FROM operation WHERE sequence = ?1",
        )?
        .execute(params![sequence, now.millis()])?;
    Ok(())
}

impl WriteTransaction<'_> {
    /// Writes a bundle again, with these objects under their right names.
    fn keep_in_bundle(&self, sequence: i64, intact: &[&BundleEntry]) -> Result<(), StoreError> {
        let kept: HashSet<Reference> = intact.iter().filter_map(|object| object.found).collect();
        let bytes = self.bundle(sequence)?.unwrap_or_default();
        let mut objects = Bundle::parse(&bytes).map(|bundle| bundle.all()).unwrap_or_default();
        objects.retain_mut(|object| {
            let id = object.bytes.as_ref().map(|bytes| ContentId::of(object.kind, bytes));
            object.name = id.map_or(object.name, |id| id.prefix());
            id.is_some_and(|id| kept.contains(&(object.kind, id)))
        });
        self.rewrite_bundle(sequence, &objects)
    }
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
