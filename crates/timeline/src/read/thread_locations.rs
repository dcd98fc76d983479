//! Lists where a thread was used: commits, branches and folders, in the order of their first use.

use std::collections::HashMap;

use retake_model::content::ContentId;
use retake_model::environment::Environment;
use retake_model::object::load;
use retake_model::operation::Version;
use retake_store::{Facet, ThreadRow};

use crate::{ReadError, Reader};

/// Operations to read at a time.
const PAGE: usize = 1_000;

/// Where a thread was used, earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadLocations {
    /// Checked-out commits.
    pub commits: Vec<String>,
    /// Checked-out branches.
    pub branches: Vec<String>,
    /// Folders of the project, and working directories of the program.
    pub directories: Vec<String>,
}

impl ThreadLocations {
    /// Where a thread was used. Reads the log only if there is an order to determine.
    pub fn of(reader: &Reader<'_>, row: &ThreadRow) -> Result<Self, ReadError> {
        let facets = |facet| reader.queries().facets(row.number, facet);
        let mut seen = Self {
            commits: facets(Facet::Commit)?,
            branches: facets(Facet::Branch)?,
            directories: facets(Facet::Directory)?,
        };
        if seen.commits.len().max(seen.branches.len()).max(seen.directories.len()) > 1 {
            let first = first_seen(reader, row)?;
            let when = |value: &String| first.get(value.as_str()).copied().unwrap_or(Version::MAX);
            for values in [&mut seen.commits, &mut seen.branches, &mut seen.directories] {
                values.sort_by_key(when);
            }
        }
        Ok(seen)
    }
}

/// The version at which each value first appeared. Commits, branches and folders have no values in common.
fn first_seen(reader: &Reader<'_>, row: &ThreadRow) -> Result<HashMap<String, Version>, ReadError> {
    let queries = reader.queries();
    let mut places: HashMap<ContentId, Version> = HashMap::new();
    let mut from = row.summary.version;
    while from > 0 {
        let page = queries.operations_back(row.number, from, PAGE)?;
        for stored in &page {
            if let Some(id) = stored.operation.environment {
                places.insert(id, stored.operation.version);
            }
        }
        from = page.last().map_or(0, |last| last.operation.version - 1);
    }
    let mut first: HashMap<String, Version> = HashMap::new();
    for (id, version) in places {
        let found: Environment = load(&queries, id)?;
        let Environment { git_commit, git_branch, workspace_root, working_directory, .. } = found;
        for value in [git_commit, git_branch, workspace_root, working_directory].into_iter().flatten() {
            first.entry(value).and_modify(|known| *known = version.min(*known)).or_insert(version);
        }
    }
    Ok(first)
}
