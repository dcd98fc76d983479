//! Reads the replica of a thread ([`retake_model::replica`]), with the content that each operation needs first.

use std::collections::{HashMap, HashSet};

use retake_model::agent::AgentState;
use retake_model::content::{ContentId, Kind, decode};
use retake_model::id::ThreadId;
use retake_model::object::{NewObject, ObjectError, Objects, load};
use retake_model::operation::{Operation, Version};
use retake_model::reference::{Reference, references};
use retake_model::replica::{ReplicaOperation, without_files};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::{Queries, StoreError, ThreadRow};

use crate::{ReadError, Reader};

/// A point in a replica's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaPoint {
    /// Number of operations up to here.
    pub version: Version,
    /// The id of the last of them in the replica; `None` before the first.
    pub id: Option<ContentId>,
    /// Its id in the log here.
    pub local: Option<ContentId>,
}

/// Why the replica of a thread could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The thread could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An entry refers to a snapshot.
    #[error("an entry of this thread refers to files, so it cannot leave this machine without them")]
    NamesFiles,
}

impl From<StoreError> for ReplicaError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// Reads the replica of a thread.
pub struct ReplicaReader<'reader> {
    queries: Queries<'reader>,
    row: ThreadRow,
}

impl Reader<'_> {
    /// The replica of a thread.
    pub fn replica(&self, thread: ThreadId) -> Result<ReplicaReader<'_>, ReadError> {
        Ok(ReplicaReader { row: self.thread(thread)?, queries: self.queries() })
    }
}

impl ReplicaReader<'_> {
    /// Number of operations.
    pub fn version(&self) -> Version {
        self.row.summary.version
    }

    /// Whether the thread never leaves this machine.
    pub fn is_private(&self) -> bool {
        self.row.summary.private
    }

    /// Whether the log here still has this point.
    pub fn has(&self, point: ReplicaPoint) -> Result<bool, ReplicaError> {
        if point.version == 0 {
            return Ok(point == ReplicaPoint::default());
        }
        let found = self.queries.operation(self.row.number, point.version)?;
        Ok(found.map(|found| found.id) == point.local)
    }

    /// The points after one, up to the end of the log.
    pub fn points(&self, after: ReplicaPoint) -> Result<Vec<ReplicaPoint>, ReplicaError> {
        let mut points = Vec::new();
        let mut previous = after.id;
        for version in after.version + 1..=self.version() {
            let stored = self.operation(version)?;
            let (_, id) = without_files(&stored.operation, previous);
            previous = Some(id);
            points.push(ReplicaPoint { version, id: Some(id), local: Some(stored.id) });
        }
        Ok(points)
    }

    /// Whether a turn has not ended, here or where the thread was before.
    pub fn has_open_turn(&self) -> Result<bool, ReplicaError> {
        let head = self.operation(self.version())?.operation;
        let state: ThreadState = load(&self.queries, head.after).map_err(ReadError::from)?;
        let takes = state.all_takes(&self.queries).map_err(ReadError::from)?;
        let mut agents = takes.iter().filter_map(|take| take.agent.as_ref());
        Ok(agents.any(|agent| !matches!(agent.state, AgentState::Waiting | AgentState::Failed { .. })))
    }

    /// The operations after a point, with their content, as long as `each` accepts them. Returns the last point that
    /// was accepted.
    pub fn operations(
        &self,
        after: ReplicaPoint,
        mut each: impl FnMut(ReplicaOperation) -> bool,
    ) -> Result<ReplicaPoint, ReplicaError> {
        let mut walk = NewContent { queries: &self.queries, sent: HashSet::new() };
        let mut before = match after.version {
            0 => Vec::new(),
            version => needs(&self.operation(version)?.operation),
        };
        let mut at = after;
        for version in after.version + 1..=self.version() {
            let stored = self.operation(version)?;
            let (operation, id) = without_files(&stored.operation, at.id);
            let needed = needs(&stored.operation);
            // A move returns to the content of older versions.
            for version in destinations(&stored.operation) {
                before.extend(needs(&self.operation(version)?.operation));
            }
            let mut new = ReplicaOperation { operation, objects: Vec::new(), redacted: Vec::new() };
            walk.between(&before, &needed, &mut new)?;
            if !each(new) {
                break;
            }
            before = needed;
            at = ReplicaPoint { version, id: Some(id), local: Some(stored.id) };
        }
        Ok(at)
    }

    fn operation(&self, version: Version) -> Result<retake_store::StoredOperation, ReplicaError> {
        let found = self.queries.operation(self.row.number, version)?;
        let missing = || ReadError::NoSuchVersion { asked: version, current: self.version() };
        Ok(found.ok_or_else(missing)?)
    }
}

/// What an operation refers to in the replica.
fn needs(operation: &Operation) -> Vec<Reference> {
    let (bytes, _) = without_files(operation, None);
    references(Kind::Operation, &bytes).unwrap_or_default()
}

/// The versions to which a move brings the chains of a thread.
fn destinations(operation: &Operation) -> Vec<Version> {
    let chains = operation.chains.as_ref().filter(|_| operation.kind.moves_chains());
    let positions = chains.into_iter().flat_map(|chains| {
        let takes = chains.takes.iter().map(|moved| moved.at.position);
        takes.chain([chains.thread.position])
    });
    positions.filter(|version| *version > 0).collect()
}

/// Finds new content by comparing two graphs from the top down; what both share is never opened.
struct NewContent<'walk> {
    queries: &'walk Queries<'walk>,
    sent: HashSet<Reference>,
}

impl NewContent<'_> {
    fn between(
        &mut self,
        before: &[Reference],
        after: &[Reference],
        new: &mut ReplicaOperation,
    ) -> Result<(), ReplicaError> {
        let mut known: HashSet<Reference> = before.iter().copied().collect();
        let (mut old_level, mut new_level) = (before.to_vec(), after.to_vec());
        let mut found = Vec::new();
        while !new_level.is_empty() {
            let shared: HashSet<Reference> = new_level.iter().copied().collect();
            new_level.retain(|reference| !known.contains(reference) && self.sent.insert(*reference));
            let (mut below, mut takes) = (Vec::new(), Vec::new());
            for (kind, id) in new_level {
                match kind {
                    Kind::Snapshot => return Err(ReplicaError::NamesFiles),
                    _ if is_redacted(self.queries, kind, id)? => new.redacted.push((kind, id)),
                    _ => {
                        let (bytes, needed) = open(self.queries, kind, id)?;
                        if kind == Kind::Take {
                            takes.extend(decode::<Take>(&bytes).ok());
                        }
                        below.extend(needed);
                        found.push(NewObject { id, kind, bytes });
                    }
                }
            }
            let mut opened = Vec::new();
            if !below.is_empty() {
                let gone = old_level.iter().copied().filter(|reference| !shared.contains(reference));
                for (kind, id) in gone.chain(self.sources(&takes, &old_level)?) {
                    if !is_redacted(self.queries, kind, id)? {
                        opened.extend(open(self.queries, kind, id)?.1);
                    }
                }
            }
            known.extend(&opened);
            (old_level, new_level) = (opened, below);
        }
        new.objects = in_order(found);
        Ok(())
    }

    /// The takes from which new ones were branched. They did not change, and share most of their entries.
    fn sources(&self, new: &[Take], old_level: &[Reference]) -> Result<Vec<Reference>, ReplicaError> {
        let is_take = |reference: &&Reference| reference.0 == Kind::Take;
        let mut old = Vec::new();
        if new.is_empty() || new.iter().all(|take| take.parent.is_none()) {
            return Ok(old);
        }
        let mut by_id = HashMap::new();
        for &(kind, id) in old_level.iter().filter(is_take) {
            let (bytes, _) = open(self.queries, kind, id)?;
            by_id.extend(decode::<Take>(&bytes).ok().map(|take| (take.id, (kind, id))));
        }
        for take in new.iter().filter(|take| !by_id.contains_key(&take.id)) {
            old.extend(take.parent.and_then(|parent| by_id.get(&parent)).copied());
        }
        Ok(old)
    }
}

/// Sorts objects so that each follows those it refers to. A piece can be found at a higher level than another one that
/// refers to it.
fn in_order(found: Vec<NewObject>) -> Vec<NewObject> {
    let mut waiting: HashMap<Reference, NewObject> =
        found.iter().map(|object| ((object.kind, object.id), object.clone())).collect();
    let mut sorted = Vec::new();
    let mut stack: Vec<(Reference, bool)> =
        found.iter().rev().map(|object| ((object.kind, object.id), false)).collect();
    while let Some((reference, is_open)) = stack.pop() {
        if is_open {
            sorted.extend(waiting.remove(&reference));
            continue;
        }
        let Some(object) = waiting.get(&reference) else { continue };
        stack.push((reference, true));
        let below = references(object.kind, &object.bytes).unwrap_or_default();
        stack.extend(below.into_iter().map(|reference| (reference, false)));
    }
    sorted
}

fn open(
    queries: &Queries<'_>,
    kind: Kind,
    id: ContentId,
) -> Result<(std::sync::Arc<[u8]>, Vec<Reference>), ReplicaError> {
    let bytes = queries.bytes(kind, id).map_err(ReadError::from)?;
    let below = references(kind, &bytes).map_err(|_| ReadError::from(ObjectError::Damaged { kind, id }))?;
    Ok((bytes, below))
}

fn is_redacted(queries: &Queries<'_>, kind: Kind, id: ContentId) -> Result<bool, ReplicaError> {
    Ok(queries.is_redacted(id)? && !queries.contains(kind, id)?)
}
