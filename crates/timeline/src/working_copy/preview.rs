//! Previews a request by executing it in a transaction that is rolled back.
//!
//! The folder is observed without storing anything. Unrecorded changes are recorded inside that transaction, so that
//! the preview sees the same state as the execution, and are reported as changes that would be recorded first.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use retake_model::content::{ContentId, Kind};
use retake_model::history::RouteStep;
use retake_model::id::TurnId;
use retake_model::object::{MemoryObjects, ObjectError, Objects, load};
use retake_model::operation::{OperationKind, Version};
use retake_model::path::{RootPath, TreePath};
use retake_model::state::ThreadState;
use retake_model::tree::{FileHasher, Node, PART, chunk_ranges};
use retake_store::{Queries, WriteTransaction};
use retake_workspace::apply::{OpenRoot, PlainFile, read_plain};
use retake_workspace::folder::path_to_text;
use retake_workspace::snapshot::{self, Observation};
use serde::Serialize;

use super::folder_state::FolderState;
use super::planning::{Basis, PlannedRequest};
use super::record_changes::{Attribution, ChangesToRecord};
use super::report::of_plan;
use super::resolve_request::{FileSteps, PendingOperation, plan_files};
use super::status::SnapshotObjects;
use super::{
    FileError, FileReport, Outcome, PathReport, PlanRequest, RecoveredMove, Scope, WorkingCopy,
    WorktreePreview,
};
use crate::files::listing::{FilePiece, node_at, piece_of};
use crate::write::change::{Composer, Head, change};
use crate::write::moves::view_of;
use crate::write::promote::promote_in;
use crate::{Caller, Goal, TurnName};

/// How often to start again because content was erased in the meantime.
const TRIES: u32 = 8;

/// Preview of a request. Nothing was changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preview {
    /// The current version of the thread.
    pub version: Version,
    /// The operation; `null` if nothing would change.
    pub kind: Option<OperationKind>,
    /// Number of entries in the take: that of the undo, redo or jump, or the active one.
    pub entries_before: u64,
    /// Number of entries afterwards, in that take or in the one that would be active.
    pub entries_after: u64,
    /// The folder whose files would change; `null` if only the conversation would.
    pub folder: Option<String>,
    /// Unrecorded changes in the folder, by the user or by a running or crashed tool. They would be recorded first.
    pub unrecorded: Vec<PathReport>,
    /// Paths that would be undone although another command or tool was running when they changed, so that their author
    /// is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<RootPath>,
    /// The change of a worktree, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreePreview>,
    /// Interrupted moves that were completed before this preview.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<RecoveredMove>,
    /// Files emptied by a power cut, with their outcomes, before this preview.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<PathReport>,
    /// The turns whose prompts an undo would take back (newest first), or a redo would bring back (oldest first).
    pub turns: Vec<TurnName>,
    /// The changes of files.
    #[serde(skip)]
    pub files: Option<FileReport>,
}

/// Result of the rolled-back execution.
struct PreviewData {
    version: Version,
    kind: Option<OperationKind>,
    entries: (u64, u64),
    unrecorded: Vec<PathReport>,
    shared: Vec<RootPath>,
    steps: Option<FileSteps>,
    files_unknown: bool,
    /// The changes that the conversation would pass.
    route: Vec<RouteStep>,
}

impl PlannedRequest {
    /// Builds a preview without changing anything.
    pub(super) fn build_preview(&self) -> Result<(Basis, Preview), FileError> {
        for _ in 1..TRIES {
            match self.try_build_preview() {
                // Content that it refers to was erased in the meantime: try again.
                Err(FileError::Outdated) => {}
                other => return other,
            }
        }
        self.try_build_preview()
    }

    fn try_build_preview(&self) -> Result<(Basis, Preview), FileError> {
        if self.working_copy.is_some() {
            self.check_turns()?;
        }
        let observed = match self.working_copy.as_ref().or(self.source.as_ref()) {
            Some(working_copy) => {
                Some((working_copy.clone(), Arc::new(working_copy.observe()?), working_copy.ended_runs()?))
            }
            None => None,
        };
        let (order, folder) = (self.clone(), observed.clone());
        let preview_data =
            self.timeline.store.dry_run(move |writing| order.build_preview_in(writing, folder.as_ref()))?;
        let PreviewData { version, mut kind, entries, unrecorded, shared, steps, files_unknown, route } =
            preview_data;
        let mut files = None;
        if let (Some((working_copy, observed, _)), Some(steps)) = (&observed, steps) {
            let reader = self.timeline.read()?;
            let queries = reader.queries();
            if queries.erasure_epoch() != observed.epoch {
                return Err(FileError::Outdated);
            }
            let objects = UnstoredObjects::new(working_copy, observed, &queries, &unrecorded);
            let planned =
                plan_files(&self.timeline, &objects, &observed.snapshot, &steps, self.options.on_conflict);
            let plan = if objects.outdated.get() { Err(FileError::Outdated) } else { planned }?;
            // A preview rejects the same requests as the execution.
            if self.waits_for_runs(plan.moving()) {
                working_copy.check_idle()?;
            }
            if let Some(
                OperationKind::FilesMoved { paths, .. } | OperationKind::FilesRestored { paths, .. },
            ) = &mut kind
            {
                *paths = plan.moving();
                kind = kind.filter(|_| plan.moving() > 0);
            }
            if matches!(self.request, PlanRequest::Move(_))
                && self.options.scope == Scope::Files
                && plan.moving() == 0
            {
                return Err(FileError::NothingMoves);
            }
            let paths = of_plan(&plan, None);
            let report = FileReport::new(observed.id, plan.wanted, paths, None);
            let aside = working_copy.aside_paths(&plan.uncaptured);
            files =
                Some(FileReport { preview: true, aside, files_unknown, ..report.in_folder(working_copy) });
        }
        let recorded = observed.as_ref().map(|(working_copy, observed, _)| (working_copy, &**observed));
        let worktree = self.preview_worktree(recorded)?;
        let basis = Basis { version, snapshot: observed.as_ref().map(|(_, observed, _)| observed.id) };
        let folder = self.working_copy.as_ref().map(|working_copy| path_to_text(working_copy.path()));
        let (entries_before, entries_after) = entries;
        let turns = self.timeline.read()?.history(self.thread).turns_on_route(&route)?;
        let preview = Preview {
            version,
            kind,
            entries_before,
            entries_after,
            folder,
            unrecorded,
            shared,
            worktree,
            recovered: Vec::new(),
            emptied: Vec::new(),
            turns,
            files,
        };
        Ok((basis, preview))
    }

    /// Returns whether the request needs an idle folder.
    fn waits_for_runs(&self, moving: u64) -> bool {
        match &self.request {
            PlanRequest::Promote { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => false,
            PlanRequest::Restore { .. } => moving > 0,
            PlanRequest::Move(_) => moving > 0 || self.options.scope != Scope::Files,
            PlanRequest::Change(_) => true,
        }
    }

    fn build_preview_in(
        &self,
        writing: &WriteTransaction<'_>,
        folder: Option<&(WorkingCopy, Arc<Observation>, Vec<TurnId>)>,
    ) -> Result<PreviewData, FileError> {
        let clock = &*self.timeline.clock;
        let at = self.head(writing, self.caller.expected)?;
        let version = at.last.operation.version;
        let before = self.entries(writing, &at.state)?;
        let mut unrecorded = Vec::new();
        if let Some((working_copy, observed, dead)) = folder {
            if writing.erasure_epoch() != observed.epoch {
                return Err(FileError::Outdated);
            }
            writing.put_contents(&observed.objects, clock.now())?;
            let (thread, caller) = (self.thread, Caller { expected: None, ..self.caller.clone() });
            let found = ChangesToRecord {
                thread,
                caller,
                attribution: Attribution::User,
                dead: dead.clone(),
                snapshot: observed.id,
            };
            let (_, _, changed) = found.record(writing, &FolderState::of(working_copy), clock)?;
            unrecorded = changed.map(|(_, paths)| paths).unwrap_or_default();
        }
        let (mut shared, mut files_unknown) = (Vec::new(), false);
        if self.request.is_of_worktree() {
            let entries = (before, before);
            return Ok(PreviewData {
                version,
                kind: None,
                entries,
                unrecorded,
                shared,
                steps: None,
                files_unknown,
                route: Vec::new(),
            });
        }
        let (pending_operation, steps) = match folder {
            Some((working_copy, observed, _)) if self.working_copy.is_some() => {
                let work = self.resolve_request(working_copy, writing, observed.id)?;
                (shared, files_unknown) = (work.shared, work.files_unknown);
                (work.pending_operation, Some(work.steps))
            }
            _ => (self.conversation_only(writing)?, None),
        };
        let route = match &pending_operation {
            PendingOperation::Move { way, .. } if self.options.scope != Scope::Files => {
                way.cursor.route().to_vec()
            }
            _ => Vec::new(),
        };
        let at = self.head(writing, None)?;
        let (kind, after) = self.outcome(writing, &at, pending_operation, before)?;
        Ok(PreviewData {
            version,
            kind,
            entries: (before, after),
            unrecorded,
            shared,
            steps,
            files_unknown,
            route,
        })
    }

    fn head(&self, writing: &WriteTransaction<'_>, expected: Option<Version>) -> Result<Head, FileError> {
        Ok(Head::of(writing, self.thread, &Caller { expected, ..self.caller.clone() })?)
    }

    /// The operation if no files are involved.
    fn conversation_only(&self, queries: &Queries<'_>) -> Result<PendingOperation, FileError> {
        Ok(match &self.request {
            PlanRequest::Move(goal) => conversation_move(queries, self, *goal)?,
            PlanRequest::Change(command) => PendingOperation::Change(command.clone()),
            PlanRequest::Promote { .. } => PendingOperation::Promote,
            PlanRequest::Restore { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => return Err(FileError::FilesDisabled),
        })
    }

    /// Number of entries in the affected take.
    fn entries(&self, queries: &Queries<'_>, state: &ThreadState) -> Result<u64, FileError> {
        let named = match (&self.request, self.take) {
            (PlanRequest::Move(_), Some(take)) => state.take(queries, take)?,
            _ => None,
        };
        let take = match named {
            Some(take) => take,
            None => state.active_take(queries)?,
        };
        Ok(take.entries.len())
    }

    /// The operation, and the number of entries of the take afterwards.
    fn outcome(
        &self,
        writing: &WriteTransaction<'_>,
        at: &Head,
        pending_operation: PendingOperation,
        before: u64,
    ) -> Result<(Option<OperationKind>, u64), FileError> {
        let clock = &*self.timeline.clock;
        let entries = |state: &ThreadState| self.entries(writing, state);
        match pending_operation {
            PendingOperation::Promote => {
                let PlanRequest::Promote { take, title } = self.request.clone() else {
                    return Ok((None, before));
                };
                let leases = self.timeline.store.turn_leases();
                let done = promote_in(&self.timeline, writing, at, &leases, (take, title), &self.caller)?;
                let state = self.head(writing, None)?;
                Ok((done.source.kind, entries(&state.state)?))
            }
            // The number of paths comes from the files.
            pending_operation @ PendingOperation::Restore { .. } => {
                Ok((Some(pending_operation.compose(self, 0, writing, at)?.operation.kind), before))
            }
            pending_operation @ PendingOperation::Move { .. } if self.options.scope == Scope::Files => {
                Ok((Some(pending_operation.compose(self, 0, writing, at)?.operation.kind), before))
            }
            PendingOperation::Move { way, .. } if way.cursor.route().is_empty() => Ok((None, before)),
            PendingOperation::Move { goal, way } => {
                let kind = goal.kind(way.from, way.to);
                let composer =
                    Composer { writing, at, caller: &self.caller, clock, rules: self.timeline.rules };
                let (done, now) = composer.publish_move(&way.cursor, kind)?;
                Ok((done.kind, entries(&now.state)?))
            }
            PendingOperation::Change(command) => {
                let leases = self.timeline.store.turn_leases();
                let done = change(writing, at, command, &self.caller, clock, self.timeline.rules, &leases)?;
                Ok((done.kind, entries(&self.head(writing, None)?.state)?))
            }
        }
    }
}

/// Destination of a move of the conversation.
fn conversation_move(
    queries: &Queries<'_>,
    order: &PlannedRequest,
    goal: Goal,
) -> Result<PendingOperation, FileError> {
    let (row, head) = crate::write::change::head_of(queries, order.thread)?;
    let state: ThreadState = load(queries, head.after)?;
    let view = view_of(queries, order.thread, &state, order.take)?;
    let (log, rules, files) = ((row.number, head.version), order.timeline.rules, order.route_files);
    let way = goal.destination_of_conversation(queries, log, rules, view, files)?;
    order.route_files.check(queries, row.number, &state, &way)?;
    Ok(PendingOperation::Move { goal, way })
}

impl WorkingCopy {
    /// Observes the current files. Fails while they are being moved.
    pub(super) fn observe(&self) -> Result<Observation, FileError> {
        if self.timeline.read()?.queries().intent_for_folder(self.folder)?.is_some() {
            return Err(FileError::MoveUnfinished(self.path().to_owned()));
        }
        let recorded = snapshot::observe(&self.timeline.store, &self.workspace)?;
        if !self.emptied_files(&recorded)?.is_empty() {
            return Err(FileError::EmptiedFiles(self.path().to_owned()));
        }
        let sealed = self.add_sealed(recorded.id, &recorded.snapshot)?;
        let objects = [recorded.objects, sealed.objects].concat();
        Ok(Observation { id: sealed.id, snapshot: sealed.snapshot, objects, epoch: recorded.epoch })
    }

    /// Reads a range of a current file in the folder, without files that are stored in parts; `None` if it does not
    /// exist. Nothing is stored: a preview refers to versions that exist only in the folder.
    pub fn current_file(&self, path: &RootPath, most: u64) -> Result<Option<FilePiece>, FileError> {
        let observed = self.observe()?;
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        if queries.erasure_epoch() != observed.epoch {
            return Err(FileError::Outdated);
        }
        let after = node_at(&SnapshotObjects::new(&observed.objects, &queries), &observed.snapshot, path)?;
        let Some(node) = after.clone() else { return Ok(None) };
        let changed =
            [PathReport { path: path.clone(), outcome: Outcome::Unchanged, note: None, after, before: None }];
        let objects = UnstoredObjects::new(self, &observed, &queries, &changed);
        // The chunks of a large file exist only in the folder, and reading all of it for a range is too expensive.
        let is_large = matches!(node, Node::File { size, .. } if size > PART);
        let piece = piece_of(&objects, path, &node, 0..if is_large { 0 } else { most });
        if objects.outdated.get() { Err(FileError::Outdated) } else { Ok(Some(piece?)) }
    }
}

/// Observed objects on top of the stored ones. Bytes of files that did not fit into memory are read again from the
/// folder.
pub(super) struct UnstoredObjects<'a> {
    new: MemoryObjects,
    stored: &'a Queries<'a>,
    working_copy: &'a WorkingCopy,
    changed: &'a [PathReport],
    /// Where contents and chunks are that are not stored.
    places: OnceLock<HashMap<ContentId, UnstoredPlace<'a>>>,
    /// The file that was read last, since its chunks follow one another.
    last: RefCell<Option<(ContentId, Arc<[u8]>)>>,
    /// Whether a file changed again, so that the preview is outdated.
    outdated: Cell<bool>,
}

impl<'a> UnstoredObjects<'a> {
    pub(super) fn new(
        working_copy: &'a WorkingCopy,
        observed: &Observation,
        stored: &'a Queries<'a>,
        changed: &'a [PathReport],
    ) -> Self {
        let mut new = MemoryObjects::default();
        new.insert_all(observed.objects.iter().cloned());
        Self {
            new,
            stored,
            working_copy,
            changed,
            places: OnceLock::new(),
            last: RefCell::default(),
            outdated: Cell::new(false),
        }
    }

    /// Where an unstored content or chunk is.
    fn place(&self, id: ContentId) -> Option<&UnstoredPlace<'a>> {
        let places = self.places.get_or_init(|| {
            let roots = self.working_copy.workspace.roots();
            let mut places = HashMap::new();
            for changed in self.changed {
                let Some(node @ Node::File { content, size, .. }) = &changed.after else { continue };
                let Some(root) = roots.iter().find(|root| root.name == changed.path.root) else { continue };
                let (root, path) = (root.path.as_path(), &changed.path.path);
                let whole = UnstoredPlace { root, path, content: *content, size: *size, range: 0..*size };
                // Nodes of chunks are always in memory; without them, the file cannot be read.
                let chunks = chunk_ranges(self, node).unwrap_or_default();
                let chunks =
                    chunks.into_iter().map(|(id, range)| (id, UnstoredPlace { range, ..whole.clone() }));
                places.extend(chunks);
                places.insert(*content, whole);
            }
            places
        });
        places.get(&id)
    }

    /// Reads a whole file again, if it still has that content.
    fn read_again(&self, place: &UnstoredPlace<'_>) -> Option<Arc<[u8]>> {
        if let Some((content, bytes)) = &*self.last.borrow()
            && *content == place.content
        {
            return Some(Arc::clone(bytes));
        }
        // Something else may have replaced the file: a pipe must not block the preview.
        let (found, _) = read_plain(&OpenRoot::open(place.root).ok()?, place.path, place.size);
        let PlainFile::File { bytes, .. } = found else { return None };
        let mut hasher = FileHasher::default();
        hasher.push(&bytes);
        let bytes: Arc<[u8]> = bytes.into();
        let is_same = hasher.finish() == place.content;
        is_same.then(|| self.last.replace(Some((place.content, Arc::clone(&bytes)))));
        is_same.then_some(bytes)
    }
}

/// A part of a file of which only the ids are in memory.
#[derive(Clone)]
struct UnstoredPlace<'a> {
    root: &'a Path,
    path: &'a TreePath,
    content: ContentId,
    size: u64,
    range: Range<u64>,
}

impl Objects for UnstoredObjects<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        let known = self.new.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id));
        if known.is_ok() || kind != Kind::Blob {
            return known;
        }
        let Some(place) = self.place(id) else { return known };
        let range = place.range.start as usize..place.range.end as usize;
        let bytes = self.read_again(place);
        if let Some(piece) = bytes.as_deref().and_then(|bytes| bytes.get(range)) {
            return Ok(piece.into());
        }
        self.outdated.set(true);
        known
    }
}
