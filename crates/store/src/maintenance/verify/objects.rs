//! Reads and hashes every object, looks it up in the index, and follows every reference.

use std::collections::{HashMap, HashSet};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};

use super::log::Log;
use super::{
    MaintenanceProgress, MaintenanceStage, Problem, Referrer, ThreadRef, VerifyReport, read_or_report,
};
use crate::StoreError;
use crate::log::queries::Queries;
use crate::maintenance::scan::{OBJECTS, scan};
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
        let indexed = index.remove(&number);
        let kind = row.get_ref(1)?.as_i64().ok();
        let packing = row.get_ref(2)?.as_i64().unwrap_or(-1);
        let body = row.get_ref(4)?.as_blob().unwrap_or_default();
        let kind = kind.and_then(|kind| u8::try_from(kind).ok()).and_then(Kind::from_number);
        let Some((kind, bytes)) = kind.zip(unpack(packing, body)) else {
            verified.problems.push(Problem::ObjectDamaged { number });
            return Ok(());
        };
        verified.object_bytes += bytes.len() as u64;
        let id = ContentId::of(kind, &bytes);
        match indexed {
            Some(prefix) if prefix == id.prefix() => {}
            Some(_) => {
                verified.problems.push(Problem::ObjectDamaged { number });
                return Ok(());
            }
            None => verified.problems.push(Problem::ObjectNotIndexed { number, id }),
        }
        match references(kind, &bytes) {
            Ok(below) => found.add(kind, id, below),
            Err(_) => verified.problems.push(Problem::ObjectMalformed { number, kind, id }),
        }
        Ok(())
    })?;
    for gap in gaps {
        // An index row of an unreadable object is not a stray row.
        index.retain(|number, _| !(gap.first..=gap.last).contains(number));
        verified.problems.push(Problem::RowsUnreadable {
            table: OBJECTS.name,
            first: gap.first,
            last: gap.last,
        });
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
        found.add(Kind::Blob, id, Vec::new());
    }
    let mut strays: Vec<i64> = index.into_keys().collect();
    strays.sort_unstable();
    verified.problems.extend(strays.into_iter().map(|number| Problem::IndexStray { number }));
    Ok(found)
}

/// The inverted index: the name prefix of each object, by row number. If the index contains a row twice, one
/// of the entries is used and the other is reported.
pub(crate) fn read_index(
    queries: &Queries<'_>,
    problems: &mut Vec<Problem>,
) -> Result<HashMap<i64, i64>, StoreError> {
    let mut twice = Vec::new();
    let index = read_or_report(problems, "object_index", || {
        let mut index = HashMap::new();
        queries.for_each_name(&mut |prefix, number| {
            if index.insert(number, prefix).is_some() {
                twice.push(number);
            }
        })?;
        Ok(index)
    })?;
    problems.extend(twice.into_iter().map(|number| Problem::IndexStray { number }));
    Ok(index)
}

impl ObjectInventory {
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
