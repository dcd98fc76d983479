//! Sealed files: replaced content of files that snapshots exclude.
//!
//! ```text
//!   before a tool   .env is excluded and about to be replaced: its bytes are sealed and added to the folder's snapshot
//!   each recording  sealed paths are read again; a changed one is sealed again, as a change like any other
//!   undo, redo …    the plan compares digests; the files are opened with the key and replaced one by one
//! ```
//!
//! Nothing here fails a move: a path whose bytes cannot be restored (the key is missing, the user changed it) is left
//! unchanged and reported. See [`retake_model::sealed`].

use std::collections::BTreeSet;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::object::{Additions, NewObject, ObjectError, Objects, load};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::nodes_to_seal;
use retake_model::sealed::{
    MAX_SEALED, SealedFiles, SealedMap, SealedState, SealedTwins, sealed_changes, sealed_of,
};
use retake_model::tree::{
    Difference, Excluded, FileHasher, Node, Snapshot, SnapshotRoot, read_piece, resolve,
};
use retake_store::{OpenSealedError, Queries, Sealer, StoredIntent};
use retake_workspace::apply::{
    ApplyError, Cause, OpenRoot, PlainFile, Replacement, StampedFile, Token, read_plain, replace_plain,
};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::is_excluded;

use super::execute::{AppliedFiles, outcome};
use super::record_changes::CurrentFiles;
use super::report::{Outcome, PathReport};
use super::{FileError, WorkingCopy};
use crate::Timeline;

/// A snapshot including the sealed files of its folder.
pub(super) struct SealedSnapshot {
    pub(super) id: ContentId,
    pub(super) snapshot: Snapshot,
    /// Objects to store for it.
    pub(super) objects: Vec<NewObject>,
}

impl SealedSnapshot {
    fn new(snapshot: Snapshot, mut objects: Vec<NewObject>) -> Self {
        let bytes = encode(&snapshot);
        let id = ContentId::of(Kind::Snapshot, &bytes);
        objects.push(NewObject { id, kind: Kind::Snapshot, bytes: bytes.into() });
        Self { id, snapshot, objects }
    }
}

impl WorkingCopy {
    /// Adds the sealed files of the folder in their current state to a snapshot.
    pub(super) fn add_sealed(&self, id: ContentId, taken: &Snapshot) -> Result<SealedSnapshot, FileError> {
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        let mut now = taken.clone();
        let known: Option<Snapshot> = match queries.folder(self.folder)?.and_then(|record| record.snapshot) {
            Some(known) => Some(load(&queries, known)?),
            None => None,
        };
        let any = |known: &Snapshot| known.roots.iter().any(|root| root.sealed.is_some());
        let Some(known) = known.filter(any) else {
            return Ok(SealedSnapshot { id, snapshot: now, objects: Vec::new() });
        };
        // Without the key nothing can be compared: the known states stay.
        let sealer = self.timeline.store.sealer().ok().flatten();
        let mut added = Vec::new();
        for (root, (_, path)) in now.roots.iter_mut().zip(self.roots()) {
            let mut states = SealedMap::new();
            let folder = OpenRoot::open(&path_from_text(&path)).ok();
            for (path, state) in sealed_of(&queries, known.root(&root.name))? {
                // Also if it is captured now because an ignore file changed: it may become excluded again.
                let state = match (&sealer, &folder) {
                    (Some(sealer), Some(folder)) => seal_now(sealer, folder, &path, Some(&state), &mut added),
                    _ => state,
                };
                states.insert(path, state);
            }
            root.sealed = add_list(&states, &mut added);
        }
        Ok(SealedSnapshot::new(now, added))
    }

    /// The current files, including excluded files that a tool is about to replace; `None` if there are none.
    pub(super) fn seal_before(
        &self,
        present: &CurrentFiles,
        named: &[TreePath],
    ) -> Result<Option<SealedSnapshot>, FileError> {
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        let mut now = present.snapshot.clone();
        let Some(root) = now.roots.first_mut() else { return Ok(None) };
        let mut states = sealed_of(&queries, Some(root))?;
        let mut objects = Vec::new();
        let mut sealer = None;
        for path in named {
            let is_held = resolve(&queries, root.tree, path)?.is_some();
            if states.contains_key(path) || is_held || !self.is_uncaptured(path) {
                continue;
            }
            let folder = OpenRoot::open(self.path()).map_err(|error| ApplyError::from(Cause::Root(error)))?;
            let found = read_plain(&folder, path, 0);
            if found.0 == PlainFile::NotAFile {
                continue;
            }
            // Without a key the tool runs nevertheless; an undo then reports the path.
            let sealer = sealer.get_or_insert_with(|| self.timeline.store.sealer_or_create().ok());
            let state = match (sealer, found) {
                (_, (PlainFile::Nothing, _)) => SealedState::Nothing,
                (None, (_, stamp)) => SealedState::NotStored { stamp },
                (Some(sealer), _) => seal_now(sealer, &folder, path, None, &mut objects),
            };
            states.insert(path.clone(), state);
        }
        let before = root.sealed;
        root.sealed = add_list(&states, &mut objects);
        if root.sealed == before {
            return Ok(None);
        }
        Ok(Some(SealedSnapshot::new(now, objects)))
    }

    /// Returns whether snapshots exclude a path, by its name or because of its content (too large, for example).
    fn is_uncaptured(&self, path: &TreePath) -> bool {
        let exists = || self.path().join(std::path::Path::new(&os_path(path))).symlink_metadata().is_ok();
        is_excluded(&self.workspace, path) || exists()
    }
}

fn os_path(path: &TreePath) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(path.bytes())
}

/// Seals the current content of a path; returns the known state if it is unchanged.
fn seal_now(
    sealer: &Sealer,
    folder: &OpenRoot,
    path: &TreePath,
    known: Option<&SealedState>,
    objects: &mut Vec<NewObject>,
) -> SealedState {
    let found = read_plain(folder, path, MAX_SEALED);
    if let Some(known) = known.filter(|known| is_state(Some(sealer), known, &found)) {
        return known.clone();
    }
    match found {
        (PlainFile::Nothing, _) => SealedState::Nothing,
        (PlainFile::File { bytes, mode }, stamp) => match sealer.seal(&path.bytes(), &bytes, mode) {
            Ok((file, parts)) => {
                objects.extend(parts);
                SealedState::File(file)
            }
            Err(_) => SealedState::NotStored { stamp },
        },
        (PlainFile::Unread | PlainFile::NotAFile, stamp) => SealedState::NotStored { stamp },
    }
}

/// Returns whether a state matches the current content. Without the key, a comparison is not possible and the result is
/// false.
fn is_state(sealer: Option<&Sealer>, state: &SealedState, (found, stamp): &StampedFile) -> bool {
    match (state, found) {
        (SealedState::Nothing, PlainFile::Nothing) => true,
        (SealedState::File(file), PlainFile::File { bytes, mode }) => {
            file.mode == *mode
                && file.size == bytes.len() as u64
                && sealer.is_some_and(|sealer| sealer.digest(bytes) == file.digest)
        }
        (SealedState::NotStored { stamp: known }, found) => *found != PlainFile::Nothing && known == stamp,
        _ => false,
    }
}

fn add_list(states: &SealedMap, objects: &mut Vec<NewObject>) -> Option<ContentId> {
    if states.is_empty() {
        return None;
    }
    let bytes = encode(&SealedFiles::new(states));
    let id = ContentId::of(Kind::SealedFiles, &bytes);
    objects.push(NewObject { id, kind: Kind::SealedFiles, bytes: bytes.into() });
    Some(id)
}

/// The sealed paths that differ between two snapshots, except for those that both capture.
pub(super) fn changed_sealed(
    objects: &(impl Objects + ?Sized),
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<PathReport>, ObjectError> {
    let mut found = Vec::new();
    for root in &after.roots {
        let Some(old_root) = before.root(&root.name) else { continue };
        let (old, new) = (sealed_of(objects, Some(old_root))?, sealed_of(objects, Some(root))?);
        let mut changed = Vec::new();
        for change in sealed_changes(&old, &new) {
            if !is_ordinary(objects, (old_root, root), &change.0)? {
                changed.push(change);
            }
        }
        found.extend(changed.into_iter().map(|(path, before, after)| {
            let (before, outcome) = match &after {
                SealedState::Nothing => (before.node(), Outcome::Removed),
                _ => (before.node(), Outcome::Written),
            };
            PathReport {
                path: RootPath { root: root.name.clone(), path },
                outcome,
                note: None,
                after: after.node(),
                before,
            }
        }));
    }
    Ok(found)
}

/// Returns whether a path is captured in both snapshots, or captured in one and missing in the other: then their trees
/// tell what happened.
pub(super) fn is_ordinary(
    objects: &(impl Objects + ?Sized),
    roots: (&SnapshotRoot, &SnapshotRoot),
    path: &TreePath,
) -> Result<bool, ObjectError> {
    for root in [roots.0, roots.1] {
        let sealed = sealed_of(objects, Some(root))?;
        let exists = sealed.get(path).is_some_and(|state| *state != SealedState::Nothing);
        if exists && resolve(objects, root.tree, path)?.is_none() {
            return Ok(false);
        }
    }
    is_excluded_in_none(objects, roots, path)
}

/// The same for snapshots whose sealed lists may be older than their trees.
fn is_excluded_in_none(
    objects: &(impl Objects + ?Sized),
    (before, after): (&SnapshotRoot, &SnapshotRoot),
    path: &TreePath,
) -> Result<bool, ObjectError> {
    let mut captured = false;
    for root in [before, after] {
        if resolve(objects, root.tree, path)?.is_some() {
            captured = true;
        } else if let Some(id) = root.excluded
            && load::<Excluded>(objects, id)?.covers(&path.bytes())
        {
            return Ok(false);
        }
    }
    Ok(captured)
}

/// The sealed paths that a move changes, with their states. Those that are ordinary files on both sides move with all
/// other files.
fn moving(
    objects: &(impl Objects + ?Sized),
    (before, after): (&SnapshotRoot, &SnapshotRoot),
) -> Result<Vec<(TreePath, FromState, SealedState)>, ObjectError> {
    let (old, new) = (sealed_of(objects, Some(before))?, sealed_of(objects, Some(after))?);
    let mut found = Vec::new();
    for (path, to) in new {
        let from = match old.get(&path) {
            Some(from) if from.same(&to) => continue,
            Some(from) => FromState::Sealed(from.clone()),
            None => match resolve(objects, before.tree, &path)? {
                Some(node) => FromState::Captured(node),
                None => FromState::Sealed(SealedState::Nothing),
            },
        };
        if !is_ordinary(objects, (before, after), &path)? {
            found.push((path, from, to));
        }
    }
    Ok(found)
}

/// The state of a path before a move.
enum FromState {
    Sealed(SealedState),
    /// Captured, and not sealed before.
    Captured(Node),
}

impl FromState {
    fn matches(&self, sealer: Option<&Sealer>, found: &StampedFile) -> bool {
        match (self, &found.0) {
            (Self::Sealed(state), _) => is_state(sealer, state, found),
            (Self::Captured(Node::File { content, mode, .. }), PlainFile::File { bytes, mode: found }) => {
                mode == found && *content == content_id(bytes)
            }
            _ => false,
        }
    }

    fn is_stored(&self) -> bool {
        !matches!(self, Self::Sealed(SealedState::NotStored { .. }))
    }
}

/// The content id of a captured file with these bytes.
fn content_id(bytes: &[u8]) -> ContentId {
    let mut hasher = FileHasher::default();
    hasher.push(bytes);
    hasher.finish()
}

/// The steps of a move without those of sealed files, which [`move_sealed`] moves.
pub(super) fn without_sealed(
    objects: &(impl Objects + ?Sized),
    roots: (&SnapshotRoot, &SnapshotRoot),
    mut steps: Vec<Difference>,
) -> Result<Vec<Difference>, ObjectError> {
    if roots.1.sealed.is_none() {
        return Ok(steps);
    }
    let moving: BTreeSet<TreePath> = moving(objects, roots)?.into_iter().map(|(path, ..)| path).collect();
    steps.retain(|step| !moving.contains(&step.path));
    Ok(steps)
}

/// The sealed states of captured files that a replay over these snapshots compares with sealed ones, and the objects to
/// store for them. Empty without the key: the replay reports such paths.
pub(super) fn twins(
    timeline: &Timeline,
    objects: &(impl Objects + ?Sized),
    snapshots: &[&Snapshot],
) -> Result<(SealedTwins, Vec<NewObject>), ObjectError> {
    let (mut twins, mut added) = (SealedTwins::default(), Vec::new());
    let nodes = nodes_to_seal(objects, snapshots)?;
    let sealer = if nodes.is_empty() { None } else { timeline.store.sealer().ok().flatten() };
    let Some(sealer) = sealer else { return Ok((twins, added)) };
    for (path, node) in nodes {
        let Node::File { size, mode, .. } = &node else { continue };
        let bytes = read_piece(objects, &node, 0..*size)?;
        if let Ok((file, parts)) = sealer.seal(&path.bytes(), &bytes, *mode) {
            twins.insert(path, node, SealedState::File(file));
            added.extend(parts);
        }
    }
    Ok((twins, added))
}

/// Seals the new content of captured files that were sealed before, so that their history stays continuous if they become
/// excluded again.
pub(super) fn follow_captured<O: Objects + ?Sized>(
    timeline: &Timeline,
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    after: &mut Snapshot,
) -> Result<(), ObjectError> {
    for root in &mut after.roots {
        let Some(before) = present.root(&root.name).filter(|before| before.tree != root.tree) else {
            continue;
        };
        let mut states = sealed_of(additions, Some(root))?;
        let mut changed = false;
        for (path, state) in &mut states {
            let (old, new) = (resolve(additions, before.tree, path)?, resolve(additions, root.tree, path)?);
            if old == new || !is_excluded_in_none(additions, (before, root), path)? {
                continue;
            }
            let sealed = match &new {
                None => Some(SealedState::Nothing),
                Some(node @ Node::File { size, mode, .. }) if *size <= MAX_SEALED => {
                    let bytes = read_piece(additions, node, 0..*size)?;
                    let sealer = timeline.store.sealer().ok().flatten();
                    let sealed = sealer.and_then(|sealer| sealer.seal(&path.bytes(), &bytes, *mode).ok());
                    sealed.map(|(file, parts)| {
                        for part in parts {
                            additions.add_bytes(part.kind, part.bytes.to_vec());
                        }
                        SealedState::File(file)
                    })
                }
                Some(_) => None,
            };
            if let Some(sealed) = sealed {
                (*state, changed) = (sealed, true);
            }
        }
        if changed {
            root.sealed = Some(additions.add(&SealedFiles::new(&states)));
        }
    }
    Ok(())
}

/// Moves the sealed files of an intent from one snapshot to the other, path by path. Repeating it after a crash
/// completes it.
pub(super) fn move_sealed(
    timeline: &Timeline,
    queries: &Queries<'_>,
    intent: &StoredIntent,
    (before, after): (&Snapshot, &Snapshot),
    token: &Token,
) -> Result<AppliedFiles, FileError> {
    let mut applied = AppliedFiles::default();
    for (name, folder) in &intent.intent.roots {
        let (Some(old), Some(new)) = (before.root(name), after.root(name)) else { continue };
        let changed = moving(queries, (old, new))?;
        if changed.is_empty() {
            continue;
        }
        let sealer = timeline.store.sealer_for_opening();
        // The other files have moved: a failure now leaves the intent for the next command.
        let folder =
            OpenRoot::open(&path_from_text(folder)).map_err(|error| ApplyError::from(Cause::Sync(error)))?;
        for (number, (path, from, to)) in changed.into_iter().enumerate() {
            let outcome = match wanted(queries, sealer.as_ref(), &path, &to) {
                Ok(wanted) => {
                    let replaced = replace_plain(&Replacement {
                        root: &folder,
                        path: &path,
                        expected: &|found| from.matches(sealer.as_ref().ok(), found),
                        is_stored: from.is_stored(),
                        wanted: &wanted,
                        token,
                        number,
                        largest: MAX_SEALED,
                    })?;
                    applied.aside.extend(replaced.aside);
                    outcome(replaced.outcome)
                }
                Err(error) => Outcome::Skipped { reason: error.to_string() },
            };
            applied.paths.insert(RootPath { root: name.clone(), path }, outcome);
        }
    }
    Ok(applied)
}

/// The wanted content of a path.
fn wanted(
    queries: &Queries<'_>,
    sealer: Result<&Sealer, &OpenSealedError>,
    path: &TreePath,
    state: &SealedState,
) -> Result<PlainFile, OpenSealedError> {
    let sealer = sealer.map_err(Clone::clone);
    match state {
        // Deleting requires knowing that the tool wrote the file, which takes the key too.
        SealedState::Nothing => sealer.map(|_| PlainFile::Nothing),
        SealedState::File(file) => {
            let bytes = sealer?.open(queries, &path.bytes(), file)?;
            Ok(PlainFile::File { bytes, mode: file.mode })
        }
        SealedState::NotStored { .. } => Err(OpenSealedError::Missing),
    }
}

/// The snapshot after a move that left some sealed paths unchanged, and its other unchanged paths.
pub(super) fn with_leftovers(
    additions: &mut Additions<'_, Queries<'_>>,
    before: &Snapshot,
    mut after: Snapshot,
    left: &[RootPath],
) -> Result<(Snapshot, Vec<RootPath>), FileError> {
    let mut others = left.to_vec();
    for root in &mut after.roots {
        let Some(old_root) = before.root(&root.name) else { continue };
        let old = sealed_of(additions, Some(old_root))?;
        let mut new = sealed_of(additions, Some(root))?;
        let is_sealed = |path: &RootPath| path.root == root.name && new.contains_key(&path.path);
        let sealed: Vec<RootPath> = others.iter().filter(|path| is_sealed(path)).cloned().collect();
        if sealed.is_empty() {
            continue;
        }
        for left in &sealed {
            match old.get(&left.path) {
                Some(state) => new.insert(left.path.clone(), state.clone()),
                None => new.remove(&left.path),
            };
            // A captured path gets its node back like all others.
            let was_captured = resolve(additions, old_root.tree, &left.path)?.is_some();
            if !was_captured && resolve(additions, root.tree, &left.path)?.is_none() {
                others.retain(|other| other != left);
            }
        }
        root.sealed = (!new.is_empty()).then(|| additions.add(&SealedFiles::new(&new)));
    }
    Ok((after, others))
}
