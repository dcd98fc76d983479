//! Reads every object and hashes it ([`hashing`](super::hashing)), looks it up in the index, and follows every reference.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use retake_model::content::{ContentId, Kind};
use retake_model::reference::Reference;
use rusqlite::types::ValueRef;

use super::hashing::{HashedRow, Hashing, StoredRow};
use super::log::Log;
use super::{
    MaintenanceProgress, MaintenanceStage, Problem, Referrer, ThreadRef, VerifyReport, read_or_report,
};
use crate::StoreError;
use crate::log::queries::Queries;
use crate::maintenance::scan::{BUNDLES, Gap, OBJECTS, scan};

/// Number of objects between two progress reports.
const REPORT_EVERY: u64 = 1024;

/// Objects read so far, and references to objects not yet read.
pub(super) struct ObjectInventory {
    /// All objects whose content matches their name.
    pub(super) present: HashSet<Reference>,
    needed: HashMap<Reference, Referrer>,
}

pub(super) fn check(
    queries: &Queries<'_>,
    verified: &mut VerifyReport,
    progress: &mut dyn FnMut(MaintenanceProgress),
) -> Result<ObjectInventory, StoreError> {
    let mut index = read_index(queries, &mut verified.problems)?;
    let total = index.len() as u64;
    let mut reported = 0;
    let mut found = ObjectInventory { present: HashSet::with_capacity(index.len()), needed: HashMap::new() };
    progress(MaintenanceProgress { done: 0, total, stage: MaintenanceStage::Objects });
    let (mut gaps, mut bundle_gaps) = (Vec::new(), Vec::new());
    let mut visit = |row: HashedRow| {
        found.check_row(&row, &mut index, verified);
        if verified.objects / REPORT_EVERY > reported {
            reported = verified.objects / REPORT_EVERY;
            progress(MaintenanceProgress {
                done: verified.objects,
                total: total.max(verified.objects),
                stage: MaintenanceStage::Objects,
            });
        }
    };
    Hashing::run(&mut visit, |hashing| {
        gaps = read_objects(queries, hashing)?;
        bundle_gaps = read_bundles(queries, hashing)?;
        Ok(())
    })?;
    for gap in gaps {
        // An index row of an unreadable object is not a stray row.
        index.take_range(gap.first, gap.last);
        verified.problems.push(Problem::RowsUnreadable {
            table: OBJECTS.name,
            first: gap.first,
            last: gap.last,
        });
    }
    // Rows of operations that cannot be read are reported with the log.
    for gap in bundle_gaps {
        index.take_range(gap.last.saturating_neg(), gap.first.saturating_neg());
    }
    let packed = read_or_report(&mut verified.problems, "packed", || queries.packed_rows(None))?;
    let (before, total) = (verified.objects, (verified.objects + packed.len() as u64).max(total));
    let packs = queries.check_packs(packed, &mut |done| {
        progress(MaintenanceProgress { done: before + done, total, stage: MaintenanceStage::Objects });
    });
    verified.objects += packs.present.len() as u64;
    verified.object_bytes += packs.bytes;
    verified.problems.extend(packs.problems);
    for id in packs.present {
        found.add(Kind::Blob, id, &[]);
    }
    let strays = index.left().map(|number| Problem::IndexStray { number });
    verified.problems.extend(strays);
    Ok(found)
}

/// Reads the objects that have rows of their own.
fn read_objects(queries: &Queries<'_>, hashing: &mut Hashing<'_>) -> Result<Vec<Gap>, StoreError> {
    scan(queries.connection, OBJECTS, &mut |row| {
        let kind = row.get_ref(1)?.as_i64().ok().and_then(|kind| u8::try_from(kind).ok());
        hashing.add(StoredRow::Object {
            number: row.get(0)?,
            kind: kind.and_then(Kind::from_number),
            packing: row.get_ref(2)?.as_i64().unwrap_or(-1),
            body: row.get_ref(4)?.as_blob().unwrap_or_default().to_vec(),
        });
        Ok(())
    })
}

/// Reads the bundles.
fn read_bundles(queries: &Queries<'_>, hashing: &mut Hashing<'_>) -> Result<Vec<Gap>, StoreError> {
    scan(queries.connection, BUNDLES, &mut |row| {
        let number = row.get::<_, i64>(0)?.saturating_neg();
        match row.get_ref(1)? {
            ValueRef::Null => {}
            value => {
                let bytes = value.as_blob().unwrap_or_default().to_vec();
                hashing.add(StoredRow::Bundle { number, bytes });
            }
        }
        Ok(())
    })
}

/// The inverted index: the name prefixes by place. What is left at the end leads nowhere.
pub(crate) struct IndexedNames {
    /// Place and prefix, in order.
    names: Vec<(i64, i64)>,
    taken: Vec<bool>,
}

impl IndexedNames {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    fn of_place(&self, place: i64) -> Range<usize> {
        let start = self.names.partition_point(|name| name.0 < place);
        let end = self.names.partition_point(|name| name.0 <= place);
        start..end
    }

    /// The prefixes of a place.
    pub(crate) fn prefixes(&self, place: i64) -> impl Iterator<Item = i64> {
        self.names[self.of_place(place)].iter().map(|name| name.1)
    }

    /// Takes one name; returns whether it was there.
    fn take(&mut self, place: i64, prefix: i64) -> bool {
        let found = self.names.binary_search(&(place, prefix));
        found.is_ok_and(|at| {
            self.taken[at] = true;
            true
        })
    }

    /// Takes all names of a place; returns whether there were any.
    fn take_all(&mut self, place: i64) -> bool {
        let range = self.of_place(place);
        self.taken[range.clone()].fill(true);
        !range.is_empty()
    }

    fn take_range(&mut self, first: i64, last: i64) {
        let range = self.of_place(first).start..self.of_place(last).end;
        self.taken[range].fill(true);
    }

    /// The places of the names that nobody took.
    fn left(&self) -> impl Iterator<Item = i64> {
        self.names.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(name, _)| name.0)
    }
}

pub(crate) fn read_index(
    queries: &Queries<'_>,
    problems: &mut Vec<Problem>,
) -> Result<IndexedNames, StoreError> {
    let mut names = read_or_report(problems, "object_index", || {
        let mut names = Vec::new();
        queries.for_each_name(&mut |prefix, place| names.push((place, prefix)))?;
        Ok(names)
    })?;
    names.sort_unstable();
    names.dedup();
    Ok(IndexedNames { taken: vec![false; names.len()], names })
}

impl ObjectInventory {
    /// Adds the objects of a row, as far as their bytes match their names.
    fn check_row(&mut self, row: &HashedRow, index: &mut IndexedNames, verified: &mut VerifyReport) {
        let number = row.number;
        let Some(objects) = &row.objects else {
            verified.objects += u64::from(!row.in_bundle);
            index.take_all(number);
            verified.problems.push(Problem::ObjectDamaged { number });
            return;
        };
        for object in objects {
            verified.objects += 1;
            let name = object.name.or_else(|| object.id.map(|id| id.prefix()));
            let indexed = name.is_some_and(|name| index.take(number, name));
            let Some(id) = object.id else {
                verified.problems.push(Problem::ObjectDamaged { number });
                continue;
            };
            verified.object_bytes += object.bytes;
            if !indexed && !row.in_bundle && index.take_all(number) {
                verified.problems.push(Problem::ObjectDamaged { number });
                continue;
            }
            if !indexed {
                verified.problems.push(Problem::ObjectNotIndexed { number, id });
            }
            match &object.below {
                Some(below) => self.add(object.kind, id, below),
                None => verified.problems.push(Problem::ObjectMalformed { number, kind: object.kind, id }),
            }
        }
    }

    fn add(&mut self, kind: Kind, id: ContentId, below: &[Reference]) {
        for &reference in below {
            // Objects are stored after the objects they refer to, so few references wait here: only those
            // into packs, which are read last.
            self.need(reference, Referrer::Object { kind, id });
        }
        self.needed.remove(&(kind, id));
        self.present.insert((kind, id));
    }

    /// Adds the references of a log's operations.
    pub(super) fn need_operations(&mut self, log: &Log) {
        let thread: ThreadRef = log.thread_ref();
        for (version, operation) in log.intact() {
            for reference in operation.needs() {
                self.need(reference, Referrer::Operation { thread, version });
            }
        }
    }

    /// Adds a reference to content.
    pub(super) fn need(&mut self, reference: Reference, by: Referrer) {
        if !self.present.contains(&reference) {
            self.needed.entry(reference).or_insert(by);
        }
    }

    /// Referenced content that neither exists nor is a known loss.
    pub(super) fn missing(
        &self,
        queries: &Queries<'_>,
        lost: &HashSet<ContentId>,
    ) -> Result<Vec<Problem>, StoreError> {
        let mut missing = Vec::new();
        for (&(kind, id), &by) in &self.needed {
            let redacted = match queries.is_redacted(id) {
                Err(error) if error.is_damage() => false,
                other => other?,
            };
            if !lost.contains(&id) && !redacted {
                missing.push(Problem::ReferenceMissing { kind, id, by });
            }
        }
        missing.sort_by_key(|problem| match problem {
            Problem::ReferenceMissing { id, .. } => Some(*id),
            _ => None,
        });
        Ok(missing)
    }
}
