//! Disk usage per project.
//!
//! Content is stored once, no matter how many projects refer to it. Content that two projects share counts
//! for both; `own_bytes` counts only the content that no other project uses.

use std::collections::{BTreeMap, HashMap, HashSet};

use retake_model::id::ProjectId;
use serde::Serialize;

use crate::maintenance::bundles::Places;
use crate::maintenance::reachability::{OnDamage, ReachableContent, for_each_operation};
use crate::{DeletedFilter, Store, StoreError, ThreadFilter};

/// Disk usage of one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StoreShare"))]
pub struct ProjectUsage {
    /// The project.
    pub project: ProjectId,
    /// Number of its threads, deleted ones included.
    pub threads: u64,
    /// Number of objects (conversations and files) that its threads refer to.
    pub objects: u64,
    /// Approximate size of these objects.
    pub bytes: u64,
    /// The part of `bytes` that no other project refers to.
    pub own_bytes: u64,
}

impl Store {
    /// Disk usage of each project. Walks the whole history, so it takes about as long as a dry run of
    /// `collect`.
    pub fn usage_by_project(&self) -> Result<Vec<ProjectUsage>, StoreError> {
        let reading = self.read()?;
        let queries = reading.queries();
        let all = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let homes: HashMap<i64, ProjectId> =
            queries.threads(&all)?.into_iter().map(|row| (row.number, row.home)).collect();
        let mut reachable: BTreeMap<ProjectId, ReachableContent> = BTreeMap::new();
        for_each_operation(&queries, 0, &mut |thread, operation| match homes.get(&thread) {
            Some(home) => reachable.entry(*home).or_default().mark(&queries, operation, OnDamage::Skip),
            None => Ok(()),
        })?;
        let reachable: BTreeMap<ProjectId, HashSet<i64>> =
            reachable.into_iter().map(|(project, reachable)| (project, reachable.prefixes())).collect();
        let mut shares: BTreeMap<ProjectId, ProjectUsage> = BTreeMap::new();
        for project in reachable.keys() {
            let threads = homes.values().filter(|home| *home == project).count() as u64;
            let none = ProjectUsage { project: *project, threads, objects: 0, bytes: 0, own_bytes: 0 };
            shares.insert(*project, none);
        }
        let mut count = |prefix: i64, bytes: u64| {
            let of: Vec<&ProjectId> = reachable
                .iter()
                .filter(|(_, reachable)| reachable.contains(&prefix))
                .map(|(of, _)| of)
                .collect();
            for project in &of {
                if let Some(share) = shares.get_mut(project) {
                    share.objects += 1;
                    share.bytes += bytes;
                    share.own_bytes += if of.len() == 1 { bytes } else { 0 };
                }
            }
        };
        let mut stored = Places::default();
        queries.for_each_name(&mut |prefix, place| stored.add(prefix, place))?;
        let mut length =
            queries.connection.prepare_cached("SELECT length(body) FROM object WHERE number = ?1")?;
        for &(number, prefix) in &stored.rows {
            let bytes: i64 = length.query_row([number], |row| row.get(0))?;
            count(prefix, bytes as u64);
        }
        for (&sequence, prefixes) in &stored.bundles {
            let sizes = queries.bundled_sizes(sequence)?;
            for prefix in prefixes {
                if let Some(&bytes) = sizes.get(prefix) {
                    count(*prefix, bytes);
                }
            }
        }
        for row in queries.packed_rows(None)? {
            count(row.prefix(), row.bytes());
        }
        Ok(shares.into_values().collect())
    }
}
