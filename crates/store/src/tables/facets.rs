//! Facets: attributes by which threads can be filtered.

use std::collections::BTreeSet;

use retake_model::summary::ThreadSummary;
use rusqlite::params;
use rusqlite::types::{ToSql, Value};

use crate::log::queries::Queries;
use crate::tables::row_checksums::{self, ChecksumKind, LookupValue};
use crate::{StoreError, WriteTransaction};

/// An attribute of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i64)]
pub enum Facet {
    Tag = 1,
    /// A branch that was checked out while the thread was in use.
    Branch = 2,
    /// A commit that was checked out while the thread was in use; a prefix matches.
    Commit = 3,
    /// A folder in which the thread was used, or one above it.
    Directory = 4,
    /// The thread that this one was promoted from, by its full id.
    Parent = 5,
}

impl Facet {
    /// The SQL condition on the value, and its parameters.
    pub(crate) fn condition(self, value: &str) -> (&'static str, Vec<Value>) {
        match self {
            Self::Tag | Self::Branch | Self::Parent => ("value = ?", vec![value.to_owned().into()]),
            Self::Commit => {
                let low = value.to_lowercase();
                let high = format!("{low}g");
                ("value >= ? AND value < ?", vec![low.into(), high.into()])
            }
            Self::Directory => {
                let folder = value.trim_end_matches('/').to_owned();
                let (low, high) = (format!("{folder}/"), format!("{folder}0"));
                ("(value = ? OR (value >= ? AND value < ?))", vec![folder.into(), low.into(), high.into()])
            }
        }
    }
}

/// The facets in a thread's summary: its tags, and the environment of its last operation.
pub(crate) fn of_summary(summary: &ThreadSummary) -> Vec<(Facet, String)> {
    let around = &summary.last_seen;
    let mut facets: Vec<(Facet, String)> = summary.tags.iter().map(|tag| (Facet::Tag, tag.clone())).collect();
    let seen = [
        (Facet::Branch, &around.git_branch),
        (Facet::Commit, &around.git_commit),
        (Facet::Directory, &around.working_directory),
        (Facet::Directory, &around.workspace_root),
    ];
    facets.extend(summary.parent.map(|parent| (Facet::Parent, parent.thread.to_string())));
    facets.extend(seen.into_iter().filter_map(|(facet, value)| Some((facet, value.clone()?))));
    facets.sort();
    facets.dedup();
    facets
}

impl WriteTransaction<'_> {
    /// Updates the facets of a thread for its new summary. Observed environments accumulate; tags are replaced.
    pub(crate) fn put_facets(
        &self,
        thread: i64,
        before: Option<&ThreadSummary>,
        after: &ThreadSummary,
    ) -> Result<(), StoreError> {
        let old = before.map(of_summary).unwrap_or_default();
        let new = of_summary(after);
        for (facet, value) in new.iter().filter(|facet| !old.contains(facet)) {
            self.put_facet(thread, *facet, value)?;
        }
        for (facet, value) in old.iter().filter(|facet| facet.0 == Facet::Tag && !new.contains(facet)) {
            let removed = self
                .connection
                .prepare_cached("DELETE FROM facet WHERE kind = ?1 AND value = ?2 AND thread = ?3")?
                .execute(params![*facet as i64, value, thread])?;
            if removed > 0 {
                self.toggle_facet_checksum(thread, *facet, value)?;
            }
        }
        Ok(())
    }

    pub(crate) fn put_facet(&self, thread: i64, facet: Facet, value: &str) -> Result<(), StoreError> {
        let added = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO facet (kind, value, thread) VALUES (?1, ?2, ?3)")?
            .execute(params![facet as i64, value, thread])?;
        if added > 0 { self.toggle_facet_checksum(thread, facet, value) } else { Ok(()) }
    }

    fn toggle_facet_checksum(&self, thread: i64, facet: Facet, value: &str) -> Result<(), StoreError> {
        let hash = row_checksums::hash_facet(facet as i64, value, thread);
        self.toggle_checksum_of_kind(facet as i64, &LookupValue::Text(value.to_owned()), hash)?;
        self.toggle_row_checksum(ChecksumKind::FacetsOfThread, &LookupValue::Number(thread), hash)
    }
}

impl Queries<'_> {
    /// All values of one facet of a thread.
    pub fn facets(&self, thread: i64, facet: Facet) -> Result<Vec<String>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT kind, value FROM facet WHERE thread = ?1 ORDER BY value")?;
        let rows = statement.query_map([thread], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let found = rows.collect::<Result<Vec<(i64, String)>, _>>()?;
        let hashes = found.iter().map(|(kind, value)| row_checksums::hash_facet(*kind, value, thread));
        self.check_row_checksum(ChecksumKind::FacetsOfThread, &LookupValue::Number(thread), hashes)?;
        Ok(found.into_iter().filter(|(kind, _)| *kind == facet as i64).map(|(_, value)| value).collect())
    }

    /// The threads with this facet.
    pub(crate) fn threads_with_facet(&self, facet: Facet, value: &str) -> Result<BTreeSet<i64>, StoreError> {
        let (condition, bound) = facet.condition(value);
        let bound: Vec<&dyn ToSql> = bound.iter().map(|value| value as &dyn ToSql).collect();
        let kind = facet as i64;
        let sql = format!("SELECT value, thread FROM facet WHERE kind = {kind} AND {condition}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(bound.as_slice(), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let found = rows.collect::<Result<Vec<(String, i64)>, _>>()?;
        let hashes = found.iter().map(|(value, thread)| row_checksums::hash_facet(kind, value, *thread));
        self.check_row_checksums(kind, condition, &bound, hashes)?;
        Ok(found.into_iter().map(|(_, thread)| thread).collect())
    }
}
