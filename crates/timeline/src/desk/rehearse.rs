//! A preview: what a request would do, found out by doing it in a transaction that is rolled back.
//!
//! The folder is observed without storing anything. What was changed in it and is not recorded yet is recorded inside
//! the rehearsal, so that the preview sees what the execution will see, and is shown as what would be recorded first.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use retake_model::content::{ContentId, Kind};
use retake_model::id::TurnId;
use retake_model::object::{Memory, Objects, Unavailable, load};
use retake_model::operation::{OperationKind, Version};
use retake_model::path::{RootPath, TreePath};
use retake_model::state::ThreadState;
use retake_model::tree::Node;
use retake_store::{Queries, Writing};
use retake_workspace::apply::{OpenRoot, PlainFile, read_plain};
use retake_workspace::folder::path_to_text;
use retake_workspace::snapshot::{self, Observation};
use serde::Serialize;

use super::glance::TakenObjects;
use super::look::{Found, Whose};
use super::place::Place;
use super::planning::{Basis, Order};
use super::report::of_plan;
use super::work::{FileSteps, Publishing, plan_files};
use super::{
    Desk, FileError, FileReport, Halves, Outcome, PathReport, PlanRequest, Recovered, WorktreePreview,
};
use crate::change::{Head, change, publish_move};
use crate::files::{FilePiece, node_at, piece_of};
use crate::moves::view_of;
use crate::promote::promote_in;
use crate::{Caller, Goal};

/// How often a preview begins again because content was destroyed meanwhile.
const TRIES: u32 = 8;

/// What would come of something that is asked for. Nothing was changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preview {
    /// The thread's version now, which stays.
    pub version: Version,
    /// What would be done; `None` if there is nothing to do.
    pub kind: Option<OperationKind>,
    /// How many entries the take has: the one that an undo, a redo or a jump was asked for in, or the active one.
    pub entries_before: u64,
    /// How many it would have then, or the take that would be active.
    pub entries_after: u64,
    /// The folder whose files would change; `None` if only the conversation would.
    pub folder: Option<String>,
    /// Changes in the folder that are not recorded yet, made by hand or by a tool that runs or crashed. They would be
    /// recorded first.
    pub unrecorded: Vec<PathReport>,
    /// Paths that would be undone although another command or tool ran when they changed: nobody knows whose they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<RootPath>,
    /// What would become of a take's own folder, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreePreview>,
    /// Moves that a crash had interrupted, and that were finished before this was worked out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<Recovered>,
    /// Files that a power cut had emptied, and what became of each before this was worked out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<PathReport>,
    /// What would become of files.
    #[serde(skip)]
    pub files: Option<FileReport>,
}

/// What a rehearsal showed.
struct Rehearsed {
    version: Version,
    kind: Option<OperationKind>,
    entries: (u64, u64),
    unrecorded: Vec<PathReport>,
    shared: Vec<RootPath>,
    steps: Option<FileSteps>,
    files_unknown: bool,
}

impl Order {
    /// Finds out what the request would do, without changing anything.
    pub(super) fn rehearse(&self) -> Result<(Basis, Preview), FileError> {
        for _ in 1..TRIES {
            match self.try_rehearse() {
                // Content that was relied on was destroyed meanwhile: look again.
                Err(FileError::Outdated) => {}
                other => return other,
            }
        }
        self.try_rehearse()
    }

    fn try_rehearse(&self) -> Result<(Basis, Preview), FileError> {
        if self.desk.is_some() {
            self.check_turns()?;
        }
        let observed = match self.desk.as_ref().or(self.source.as_ref()) {
            Some(desk) => Some((desk.clone(), Arc::new(desk.observe()?), desk.dead_runs()?)),
            None => None,
        };
        let (order, folder) = (self.clone(), observed.clone());
        let rehearsed =
            self.timeline.store.rehearse(move |writing| order.rehearse_in(writing, folder.as_ref()))?;
        let Rehearsed { version, mut kind, entries, unrecorded, shared, steps, files_unknown } = rehearsed;
        let mut files = None;
        if let (Some((desk, observed, _)), Some(steps)) = (&observed, steps) {
            let looking = self.timeline.look()?;
            let queries = looking.queries();
            if queries.erasures() != observed.epoch {
                return Err(FileError::Outdated);
            }
            let objects = Unstored::new(desk, observed, &queries, &unrecorded);
            let planned = plan_files(&objects, &observed.snapshot, &steps, self.options.on_conflict);
            let plan = if objects.outdated.get() { Err(FileError::Outdated) } else { planned }?;
            // A preview does not promise what the execution refuses.
            if self.waits_for_runs(plan.moving()) {
                desk.check_idle()?;
            }
            if let Some(
                OperationKind::FilesMoved { paths, .. } | OperationKind::FilesRestored { paths, .. },
            ) = &mut kind
            {
                *paths = plan.moving();
                kind = kind.filter(|_| plan.moving() > 0);
            }
            if matches!(self.request, PlanRequest::Move(_))
                && self.options.halves == Halves::Files
                && plan.moving() == 0
            {
                return Err(FileError::NothingMoves);
            }
            let paths = of_plan(&plan, None);
            let report = FileReport::new(observed.id, plan.wanted, paths, None);
            files = Some(FileReport { preview: true, files_unknown, ..report.in_folder(desk) });
        }
        let seen = observed.as_ref().map(|(desk, observed, _)| (desk, &**observed));
        let worktree = self.preview_worktree(seen)?;
        let basis = Basis { version, snapshot: observed.as_ref().map(|(_, observed, _)| observed.id) };
        let folder = self.desk.as_ref().map(|desk| path_to_text(desk.path()));
        let (entries_before, entries_after) = entries;
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
            files,
        };
        Ok((basis, preview))
    }

    /// Whether it is carried out only while nothing runs in the folder.
    fn waits_for_runs(&self, moving: u64) -> bool {
        match &self.request {
            PlanRequest::Promote { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => false,
            PlanRequest::Restore { .. } => moving > 0,
            PlanRequest::Move(_) => moving > 0 || self.options.halves != Halves::Files,
            PlanRequest::Change(_) => true,
        }
    }

    fn rehearse_in(
        &self,
        writing: &Writing<'_>,
        folder: Option<&(Desk, Arc<Observation>, Vec<TurnId>)>,
    ) -> Result<Rehearsed, FileError> {
        let clock = &*self.timeline.clock;
        let at = self.head(writing, self.caller.expected)?;
        let version = at.last.operation.version;
        let before = self.entries(writing, &at.state)?;
        let mut unrecorded = Vec::new();
        if let Some((desk, observed, dead)) = folder {
            if writing.erasures() != observed.epoch {
                return Err(FileError::Outdated);
            }
            writing.put_contents(&observed.objects, clock.now())?;
            let (thread, caller) = (self.thread, Caller { expected: None, ..self.caller.clone() });
            let found =
                Found { thread, caller, whose: Whose::Hand, dead: dead.clone(), snapshot: observed.id };
            let (_, _, changed) = found.record(writing, &Place::of(desk), clock)?;
            unrecorded = changed.map(|(_, paths)| paths).unwrap_or_default();
        }
        let (mut shared, mut files_unknown) = (Vec::new(), false);
        if self.request.is_of_worktree() {
            let entries = (before, before);
            return Ok(Rehearsed {
                version,
                kind: None,
                entries,
                unrecorded,
                shared,
                steps: None,
                files_unknown,
            });
        }
        let (publishing, steps) = match folder {
            Some((desk, observed, _)) if self.desk.is_some() => {
                let work = self.work_out(desk, writing, observed.id)?;
                (shared, files_unknown) = (work.shared, work.files_unknown);
                (work.publishing, Some(work.steps))
            }
            _ => (self.conversation_alone(writing)?, None),
        };
        let at = self.head(writing, None)?;
        let (kind, after) = self.outcome(writing, &at, publishing, before)?;
        Ok(Rehearsed { version, kind, entries: (before, after), unrecorded, shared, steps, files_unknown })
    }

    fn head(&self, writing: &Writing<'_>, expected: Option<Version>) -> Result<Head, FileError> {
        Ok(Head::of(writing, self.thread, &Caller { expected, ..self.caller.clone() })?)
    }

    /// What is published where no files are involved.
    fn conversation_alone(&self, queries: &Queries<'_>) -> Result<Publishing, FileError> {
        Ok(match &self.request {
            PlanRequest::Move(goal) => conversation_move(queries, self, *goal)?,
            PlanRequest::Change(command) => Publishing::Change(command.clone()),
            PlanRequest::Promote { .. } => Publishing::Promote,
            PlanRequest::Restore { .. }
            | PlanRequest::OpenWorktree { .. }
            | PlanRequest::CloseWorktree { .. } => return Err(FileError::NotKept),
        })
    }

    /// How many entries the take has that the request is about.
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

    /// What would be published, and how many entries the take would have.
    fn outcome(
        &self,
        writing: &Writing<'_>,
        at: &Head,
        publishing: Publishing,
        before: u64,
    ) -> Result<(Option<OperationKind>, u64), FileError> {
        let clock = &*self.timeline.clock;
        let entries = |state: &ThreadState| self.entries(writing, state);
        match publishing {
            Publishing::Promote => {
                let PlanRequest::Promote { take, title } = self.request.clone() else {
                    return Ok((None, before));
                };
                let leases = self.timeline.store.leases();
                let done = promote_in(&self.timeline, writing, at, &leases, (take, title), &self.caller)?;
                let state = self.head(writing, None)?;
                Ok((done.source.kind, entries(&state.state)?))
            }
            // So many paths as the files show.
            publishing @ Publishing::Restore { .. } => {
                Ok((Some(publishing.compose(self, 0, writing, at)?.operation.kind), before))
            }
            publishing @ Publishing::Move { .. } if self.options.halves == Halves::Files => {
                Ok((Some(publishing.compose(self, 0, writing, at)?.operation.kind), before))
            }
            Publishing::Move { way, .. } if way.cursor.route().is_empty() => Ok((None, before)),
            Publishing::Move { goal, way } => {
                let kind = goal.kind(way.from, way.to);
                let (done, now) = publish_move(writing, at, &way.cursor, kind, &self.caller, clock)?;
                Ok((done.kind, entries(&now.state)?))
            }
            Publishing::Change(command) => {
                let leases = self.timeline.store.leases();
                let done = change(writing, at, command, &self.caller, clock, self.timeline.rules, &leases)?;
                Ok((done.kind, entries(&self.head(writing, None)?.state)?))
            }
        }
    }
}

/// Where a move of the conversation leads.
fn conversation_move(queries: &Queries<'_>, order: &Order, goal: Goal) -> Result<Publishing, FileError> {
    let (row, head) = crate::change::head_of(queries, order.thread)?;
    let state: ThreadState = load(queries, head.after)?;
    let view = view_of(queries, order.thread, &state, order.take)?;
    let way = goal.destination(queries, row.number, head.version, order.timeline.rules, view)?;
    order.route_files.check(queries, row.number, &state, &way)?;
    Ok(Publishing::Move { goal, way })
}

impl Desk {
    /// The files as they are, without a trace. While they are being moved they are neither here nor there.
    pub(super) fn observe(&self) -> Result<Observation, FileError> {
        if self.timeline.look()?.queries().intent_on(self.folder)?.is_some() {
            return Err(FileError::MoveUnfinished(self.path().to_owned()));
        }
        let seen = snapshot::observe(&self.timeline.store, &self.workspace)?;
        if !self.emptied_files(&seen)?.is_empty() {
            return Err(FileError::EmptiedFiles(self.path().to_owned()));
        }
        let sealed = self.with_sealed(seen.id, &seen.snapshot, &seen.objects)?;
        let objects = [seen.objects, sealed.objects].concat();
        Ok(Observation { id: sealed.id, snapshot: sealed.snapshot, objects, epoch: seen.epoch })
    }

    /// A file as it is in the folder now, with at most so many of its bytes, and none of a file that is stored in parts; `None`
    /// if there is no such file. Nothing is stored: a preview names versions that only the folder has.
    pub fn current_file(&self, path: &RootPath, most: u64) -> Result<Option<FilePiece>, FileError> {
        let observed = self.observe()?;
        let looking = self.timeline.look()?;
        let queries = looking.queries();
        if queries.erasures() != observed.epoch {
            return Err(FileError::Outdated);
        }
        let after = node_at(&TakenObjects::new(&observed.objects, &queries), &observed.snapshot, path)?;
        let Some(node) = after.clone() else { return Ok(None) };
        let changed =
            [PathReport { path: path.clone(), outcome: Outcome::Unchanged, note: None, after, before: None }];
        let objects = Unstored::new(self, &observed, &queries, &changed);
        // The parts of a large file are only in the folder, and no piece of one is worth reading all of it.
        let is_large = matches!(node, Node::File { size, .. } if Node::kind_of(size) == Kind::Parts);
        let piece = piece_of(&objects, path, &node, 0..if is_large { 0 } else { most });
        if objects.outdated.get() { Err(FileError::Outdated) } else { Ok(Some(piece?)) }
    }
}

/// What was observed in a folder, on top of what is stored. The bytes of files that were too many to keep in memory are
/// read from the folder again.
pub(super) struct Unstored<'a> {
    new: Memory,
    stored: &'a Queries<'a>,
    desk: &'a Desk,
    changed: &'a [PathReport],
    files: OnceLock<HashMap<ContentId, (&'a Path, &'a TreePath, u64)>>,
    /// Whether a file was changed once more, and is no longer what the preview is about.
    outdated: Cell<bool>,
}

impl<'a> Unstored<'a> {
    pub(super) fn new(
        desk: &'a Desk,
        observed: &Observation,
        stored: &'a Queries<'a>,
        changed: &'a [PathReport],
    ) -> Self {
        let mut new = Memory::default();
        new.keep(observed.objects.iter().cloned());
        Self { new, stored, desk, changed, files: OnceLock::new(), outdated: Cell::new(false) }
    }

    /// Where the content of a file is that was changed and is not stored.
    fn file(&self, content: ContentId) -> Option<&(&'a Path, &'a TreePath, u64)> {
        let files = self.files.get_or_init(|| {
            let roots = self.desk.workspace.roots();
            let found = self.changed.iter().filter_map(|changed| {
                let Some(Node::File { content, size, .. }) = &changed.after else { return None };
                let root = roots.iter().find(|root| root.name == changed.path.root)?;
                Some((*content, (root.path.as_path(), &changed.path.path, *size)))
            });
            found.collect()
        });
        files.get(&content)
    }
}

impl Objects for Unstored<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, Unavailable> {
        let known = self.new.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id));
        let Some(file) = self.file(id).filter(|_| known.is_err() && kind == Kind::Blob) else { return known };
        let (root, path, size) = *file;
        // Something else may have taken the file's place since: a pipe must not keep the preview waiting.
        let found = OpenRoot::open(root).map(|root| read_plain(&root, path, size).0);
        if let Ok(PlainFile::File { bytes, .. }) = found
            && ContentId::of(Kind::Blob, &bytes) == id
        {
            return Ok(bytes.into());
        }
        self.outdated.set(true);
        known
    }
}
