//! Reads and hashes every object, looks it up in the index, and follows every reference.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};
use rusqlite::types::ValueRef;

use super::log::Log;
use super::{
    MaintenanceProgress, MaintenanceStage, Problem, Referrer, ThreadRef, VerifyReport, read_or_report,
};
use crate::StoreError;
use crate::log::queries::Queries;
use crate::maintenance::scan::{BUNDLES, OBJECTS, scan};
use crate::objects::bundle::Bundle;
use crate::objects::read_write::unpack;

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
    let mut found = ObjectInventory { present: HashSet::with_capacity(index.len()), needed: HashMap::new() };
    let gaps = scan(queries.connection, OBJECTS, &mut |row| {
        if verified.objects.is_multiple_of(REPORT_EVERY) {
            progress(MaintenanceProgress {
                done: verified.objects,
                total: total.max(verified.objects),
                stage: MaintenanceStage::Objects,
            });
        }
        verified.objects += 1;
        let number: i64 = row.get(0)?;
        let kind = row.get_ref(1)?.as_i64().ok();
        let packing = row.get_ref(2)?.as_i64().unwrap_or(-1);
        let body = row.get_ref(4)?.as_blob().unwrap_or_default();
        let kind = kind.and_then(|kind| u8::try_from(kind).ok()).and_then(Kind::from_number);
        let Some((kind, bytes)) = kind.zip(unpack(packing, body)) else {
            index.take_all(number);
            verified.problems.push(Problem::ObjectDamaged { number });
            return Ok(());
        };
        let id = ContentId::of(kind, &bytes);
        let indexed = index.take(number, id.prefix());
        if !indexed && index.take_all(number) {
            verified.object_bytes += bytes.len() as u64;
            verified.problems.push(Problem::ObjectDamaged { number });
            return Ok(());
        }
        found.check(number, (kind, id, &bytes), indexed, verified);
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
    check_bundles(queries, &mut index, &mut found, verified)?;
    let packed = read_or_report(&mut verified.problems, "packed", || queries.packed_rows(None))?;
    let (before, total) = (verified.objects, (verified.objects + packed.len() as u64).max(total));
    let packs = queries.check_packs(packed, &mut |done| {
        progress(MaintenanceProgress { done: before + done, total, stage: MaintenanceStage::Objects });
    });
    verified.objects += packs.present.len() as u64;
    verified.object_bytes += packs.bytes;
    verified.problems.extend(packs.problems);
    for id in packs.present {
        found.add(Kind::Blob, id, Vec::new());
    }
    let strays = index.left().map(|number| Problem::IndexStray { number });
    verified.problems.extend(strays);
    Ok(found)
}

/// The same for the objects in bundles. Rows that cannot be read are reported with the log.
fn check_bundles(
    queries: &Queries<'_>,
    index: &mut IndexedNames,
    found: &mut ObjectInventory,
    verified: &mut VerifyReport,
) -> Result<(), StoreError> {
    let gaps = scan(queries.connection, BUNDLES, &mut |row| {
        let number = row.get::<_, i64>(0)?.saturating_neg();
        let bytes = match row.get_ref(1)? {
            ValueRef::Null => return Ok(()),
            value => value.as_blob().unwrap_or_default(),
        };
        let Some(bundle) = Bundle::parse(bytes) else {
            index.take_all(number);
            verified.problems.push(Problem::ObjectDamaged { number });
            return Ok(());
        };
        for object in bundle.all() {
            verified.objects += 1;
            let indexed = index.take(number, object.name);
            match (object.intact_id(), &object.bytes) {
                (Some(id), Some(bytes)) => {
                    found.check(number, (object.kind, id, bytes), indexed, verified);
                }
                _ => verified.problems.push(Problem::ObjectDamaged { number }),
            }
        }
        Ok(())
    })?;
    for gap in gaps {
        index.take_range(gap.last.saturating_neg(), gap.first.saturating_neg());
    }
    Ok(())
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
    /// Adds an object whose bytes match its name.
    fn check(
        &mut self,
        number: i64,
        (kind, id, bytes): (Kind, ContentId, &[u8]),
        indexed: bool,
        verified: &mut VerifyReport,
    ) {
        verified.object_bytes += bytes.len() as u64;
        if !indexed {
            verified.problems.push(Problem::ObjectNotIndexed { number, id });
        }
        match references(kind, bytes) {
            Ok(below) => self.add(kind, id, below),
            Err(_) => verified.problems.push(Problem::ObjectMalformed { number, kind, id }),
        }
    }

    fn add(&mut self, kind: Kind, id: ContentId, below: Vec<Reference>) {
        for reference in below {
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
