//! Executes a plan: stores the intent, moves the files, publishes the operation.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::AtomicBool;

use retake_model::content::ContentId;
use retake_model::history;
use retake_model::id::{FolderId, ThreadId};
use retake_model::intent::{FolderRecord, Intent};
use retake_model::object::{Additions, NewObject, load};
use retake_model::operation::FileChange;
use retake_model::path::RootPath;
use retake_model::replay::{ReplayResult, graft_paths};
use retake_model::state::ThreadState;
use retake_model::tree::{
    Difference, Excluded, Node, Snapshot, SnapshotCursor, SnapshotRoot, Tree, differences,
};
use retake_store::{Queries, StoreError, StoredIntent, WriteTransaction};
use retake_workspace::apply::{self, ApplyError, Cause, OpenRoot, Report, Request, Token, apply, set_aside};
use retake_workspace::folder::path_from_text;

use super::plan::{step_to_promoted, take_in_folder};
use super::record_changes::with_files;
use super::report::{FileReport, Outcome, of_plan};
use super::sealed::{self, move_sealed};
use super::{CurrentFiles, FileError, FolderSession};
use crate::clock::{Clock, ClockIds};
use crate::write::change::{ComposedOperation, Head, finish};
use crate::write::promote::follow;
use crate::{Caller, ChangeOutcome, Timeline};

/// The planned files, and the new content for them.
pub(super) struct FilePlan {
    pub(super) wanted: ContentId,
    pub(super) replayed: ReplayResult,
    /// Paths that lose their setuid, setgid or sticky bit if they are created again.
    pub(super) mode_bits: BTreeSet<RootPath>,
    /// Paths whose current content has no copy in the store and is renamed.
    pub(super) uncaptured: BTreeSet<RootPath>,
    pub(super) objects: Vec<NewObject>,
}

/// The outcome of an executed move.
pub(super) struct ExecutedMove {
    pub(super) done: ChangeOutcome,
    pub(super) also: Vec<ThreadId>,
    pub(super) report: FileReport,
}

/// Composes the operation inside a write, from the newest state of the thread.
pub(super) trait Compose:
    for<'writing, 'transaction> FnOnce(
        &'writing WriteTransaction<'transaction>,
        &Head,
    ) -> Result<ComposedOperation<'writing, 'transaction>, FileError>
    + Send
    + 'static
{
}

impl<F> Compose for F where
    F: for<'writing, 'transaction> FnOnce(
            &'writing WriteTransaction<'transaction>,
            &Head,
        )
            -> Result<ComposedOperation<'writing, 'transaction>, FileError>
        + Send
        + 'static
{
}

impl FolderSession<'_> {
    /// Executes a plan that was made for the current files and for the version that the thread had then.
    pub(super) fn execute(
        self,
        thread: ThreadId,
        present: &CurrentFiles,
        mut plan: FilePlan,
        caller: &Caller,
        compose: impl Compose,
    ) -> Result<ExecutedMove, FileError> {
        self.working_copy.check_idle()?;
        let timeline = &self.working_copy.timeline;
        let (clock, folder, worktree, roots) = (
            timeline.clock.clone(),
            self.working_copy.folder,
            self.working_copy.worktree,
            self.working_copy.roots(),
        );
        let caller = caller.clone().expecting(present.version);
        let (before, wanted, objects) = (present.id, plan.wanted, std::mem::take(&mut plan.objects));
        let begun = timeline.store.write(move |writing| -> Result<StartedMove, FileError> {
            let at = Head::of(writing, thread, &caller)?;
            let composed = compose(writing, &at)?;
            writing.put_contents(&objects, clock.now())?;
            let state: ThreadState = load(&composed.additions, composed.operation.after)?;
            let take = worktree.map_or(state.active, |worktree| worktree.take);
            // After a switch of only the conversation, the folder has the files of a take that is no longer
            // active. That take leaves them now, not the active one.
            let (log, last) = (at.row.number, at.last.operation.version);
            let here = take_in_folder(writing, log, last, &at.state)?;
            let leaves = worktree.is_none() && here != take;
            let left = (leaves && step_to_promoted(writing, log, last, here)?.is_none()).then_some(here);
            let files =
                FileChange { before, after: wanted, take, worktree: worktree.is_some(), left, shared: None };
            let composed = with_files(composed, files);
            if before == wanted {
                let (done, also) = publish(writing, &at, composed, &*clock)?;
                return Ok(StartedMove::Done(Box::new((done, also))));
            }
            let ComposedOperation { operation, additions } = composed;
            writing.put_contents(&additions.into_new(), clock.now())?;
            let token = FolderId::generate(&mut ClockIds(&*clock)).to_string();
            let intent = Intent { folder, roots, files, operation, token };
            let number = writing.put_intent(&intent)?;
            Ok(StartedMove::Intent(Box::new(StoredIntent { number, intent })))
        })?;
        let (done, also, after, applied) = match begun {
            StartedMove::Done(done) => (done.0, done.1, wanted, AppliedFiles::default()),
            StartedMove::Intent(intent) => {
                let applied = move_files(timeline, &intent)?;
                let (done, also, after) = end(timeline, *intent, &applied).map_err(unfinished)?;
                (done, also, after, applied)
            }
        };
        let paths = of_plan(&plan, Some(&applied.paths));
        let report = FileReport::new(before, after, paths, self.recovered);
        Ok(ExecutedMove {
            done,
            also,
            report: FileReport { aside: applied.aside, emptied: self.emptied, ..report },
        })
    }
}

enum StartedMove {
    /// No file had to move; the operation is published.
    Done(Box<(ChangeOutcome, Vec<ThreadId>)>),
    /// The intent is stored; the files move next.
    Intent(Box<StoredIntent>),
}

/// The outcome of moving files.
#[derive(Default)]
pub(super) struct AppliedFiles {
    /// The outcome of each path.
    pub(super) paths: BTreeMap<RootPath, Outcome>,
    /// Where files were set aside that could not return to their paths.
    pub(super) aside: Vec<String>,
}

/// Moves the files of an intent. On failure, moves them back and deletes the intent.
pub(super) fn move_files(timeline: &Timeline, intent: &StoredIntent) -> Result<AppliedFiles, FileError> {
    match try_move_files(timeline, intent) {
        Ok(applied) => Ok(applied),
        // If the state on disk is unknown, the intent stays, and the next command recovers from it.
        Err(FileError::Apply(error))
            if error.not_put_back.is_empty()
                && !matches!(error.cause, Cause::Sync(_))
                && is_cleaned_up(intent) =>
        {
            let number = intent.number;
            let ended =
                timeline.store.write(move |writing| writing.end_intent(number).map_err(FileError::from));
            ended.map_err(|error| unfinished(error.into()))?;
            Err(FileError::Apply(error))
        }
        Err(error) => Err(unfinished(error)),
    }
}

/// Returns whether no temporary files are left in the folders. Only the intent has the token in their names.
fn is_cleaned_up(intent: &StoredIntent) -> bool {
    let Ok(token) = Token::new(&intent.intent.token) else { return true };
    !intent.intent.roots.iter().any(|(_, path)| token.is_in(&path_from_text(path)))
}

/// Marks an error as unfinished: the intent still exists, so some files may have changed.
fn unfinished(error: FileError) -> FileError {
    match error {
        FileError::Unfinished(_) => error,
        error => FileError::Unfinished(Box::new(error)),
    }
}

fn try_move_files(timeline: &Timeline, intent: &StoredIntent) -> Result<AppliedFiles, FileError> {
    let reading = timeline.store.read()?;
    let queries = reading.queries();
    let files = &intent.intent.files;
    let (before, after): (Snapshot, Snapshot) = (load(&queries, files.before)?, load(&queries, files.after)?);
    let token = Token::new(&intent.intent.token)
        .map_err(|_| StoreError::Damaged("an intent has no name for its files".to_owned()))?;
    let mut applied = AppliedFiles::default();
    let mut moved: Vec<(OpenRoot, Vec<Difference>)> = Vec::new();
    for (name, path) in &intent.intent.roots {
        let tree = |snapshot: &Snapshot| snapshot.root(name).map(|root| root.tree);
        let (Some(old), Some(new)) = (tree(&before), tree(&after)) else { continue };
        let mut steps = differences(&queries, Some(old), Some(new))?;
        if let (Some(old), Some(new)) = (before.root(name), after.root(name)) {
            steps = sealed::without_sealed(&queries, (old, new), steps)?;
        }
        if steps.is_empty() {
            continue;
        }
        let excluded = excluded_at(&queries, before.root(name), &steps)?;
        match move_root(&queries, path, &steps, &excluded, &token) {
            Ok((root, report)) => {
                for result in report.results {
                    let path = RootPath { root: name.clone(), path: result.path };
                    applied.paths.insert(path, outcome(result.outcome));
                }
                applied.aside.extend(report.left.into_iter().map(|left| left.file));
                moved.push((root, steps));
            }
            Err(error) => {
                // All roots move, or none.
                put_back(&queries, &moved, &token);
                return Err(error.into());
            }
        }
    }
    // Sealed files move last, because they are not moved back: a failure is the outcome of its path.
    let sealed = move_sealed(timeline, &queries, intent, (&before, &after), &token)?;
    applied.paths.extend(sealed.paths);
    applied.aside.extend(sealed.aside);
    Ok(applied)
}

fn move_root(
    queries: &Queries<'_>,
    path: &str,
    steps: &[Difference],
    excluded: &[&Difference],
    token: &Token,
) -> Result<(OpenRoot, Report), ApplyError> {
    let path = path_from_text(path);
    let root = OpenRoot::open(&path).map_err(Cause::Root)?;
    let moved = set_aside(&root, excluded)?;
    match apply(&request(queries, &root, steps, token)) {
        Ok(mut report) => {
            report.left.extend(moved.into_leftovers());
            Ok((root, report))
        }
        Err(mut error) => {
            error.not_put_back.extend(moved.put_back(&root));
            Err(error)
        }
    }
}

/// The steps that would replace an excluded file, which has no copy in the store (it is too large, for
/// example).
fn excluded_at<'steps>(
    queries: &Queries<'_>,
    present: Option<&SnapshotRoot>,
    steps: &'steps [Difference],
) -> Result<Vec<&'steps Difference>, FileError> {
    let Some(excluded) = present.and_then(|root| root.excluded) else { return Ok(Vec::new()) };
    let excluded: Excluded = load(queries, excluded)?;
    let files = excluded.0.iter().filter(|excluded| excluded.reason.is_about_content());
    let excluded: HashSet<&[u8]> = files.map(|excluded| excluded.path.as_slice()).collect();
    let in_the_way = |step: &&Difference| {
        step.before.is_none() && step.after.is_some() && excluded.contains(step.path.bytes().as_slice())
    };
    Ok(steps.iter().filter(in_the_way).collect())
}

pub(super) fn request<'a>(
    queries: &'a Queries<'_>,
    root: &'a OpenRoot,
    steps: &'a [Difference],
    token: &'a Token,
) -> Request<'a> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    Request {
        root,
        steps,
        objects: queries,
        token,
        unchanged: None,
        progress: None,
        cancel: &NEVER,
        all_or_nothing: false,
    }
}

/// Reverts the changes to roots after another root failed. The next recording of the folder captures the
/// changes that cannot be reverted.
fn put_back(queries: &Queries<'_>, moved: &[(OpenRoot, Vec<Difference>)], token: &Token) {
    for (root, steps) in moved {
        let back: Vec<Difference> = steps
            .iter()
            .cloned()
            .map(|Difference { path, before, after }| Difference { path, before: after, after: before })
            .collect();
        let _ = apply(&request(queries, root, &back, token));
    }
}

/// Converts the outcome of a path.
pub(super) fn outcome(outcome: apply::Outcome) -> Outcome {
    match outcome {
        apply::Outcome::Written => Outcome::Written,
        apply::Outcome::Removed => Outcome::Removed,
        apply::Outcome::Already => Outcome::Unchanged,
        apply::Outcome::Kept(_) => Outcome::Kept,
        apply::Outcome::Skipped(skip) => Outcome::Skipped { reason: skip.to_string() },
    }
}

/// Publishes the operation of an intent after its files have moved, as far as possible.
pub(super) fn end(
    timeline: &Timeline,
    intent: StoredIntent,
    applied: &AppliedFiles,
) -> Result<(ChangeOutcome, Vec<ThreadId>, ContentId), FileError> {
    let clock = timeline.clock.clone();
    let left: Vec<RootPath> =
        applied.paths.iter().filter(|(_, outcome)| outcome.left()).map(|(path, _)| path.clone()).collect();
    timeline
        .store
        .write(move |writing| -> Result<_, FileError> {
            let StoredIntent { number, intent } = intent;
            let Intent { folder, files, operation, .. } = intent;
            let at = Head::any_version(writing, operation.thread)?;
            writing.end_intent(number)?;
            let mut additions = Additions::new(&**writing);
            let after = with_leftovers(&mut additions, files, &left)?;
            let composed =
                with_files(ComposedOperation { operation, additions }, FileChange { after, ..files });
            let (done, also) = publish(writing, &at, composed, &*clock)?;
            if let Some(known) = writing.folder(folder)? {
                writing.put_folder(&FolderRecord { snapshot: Some(after), ..known })?;
            }
            Ok((done, also, after))
        })
        .map_err(FileError::from)
}

/// Publishes an operation, and deletes or restores threads that were promoted from this one.
fn publish(
    writing: &WriteTransaction<'_>,
    at: &Head,
    composed: ComposedOperation<'_, '_>,
    clock: &dyn Clock,
) -> Result<(ChangeOutcome, Vec<ThreadId>), FileError> {
    let operation = &composed.operation;
    let caller = Caller {
        actor: operation.actor.clone(),
        environment: None,
        turn: Some(operation.turn),
        expected: None,
        request: None,
        take: None,
    };
    let step = history::LogStep::of(operation);
    let to = history::thread_position(&step, operation.version).position;
    let also =
        if operation.kind.moves_chains() { follow(writing, at, to, &caller, clock)? } else { Vec::new() };
    Ok((finish(writing, at, composed)?.0, also))
}

/// The snapshot after a move that left some paths unchanged, so that the operation records only actual
/// changes.
fn with_leftovers(
    additions: &mut Additions<'_, Queries<'_>>,
    files: FileChange,
    left: &[RootPath],
) -> Result<ContentId, FileError> {
    if left.is_empty() {
        return Ok(files.after);
    }
    let (before, after): (Snapshot, Snapshot) =
        (load(additions, files.before)?, load(additions, files.after)?);
    let (after, left) = sealed::with_leftovers(additions, &before, after, left)?;
    let mut stays = BTreeMap::new();
    let mut before = SnapshotCursor::new(&before);
    for path in &left {
        let node = before.get(additions, path)?;
        // The content of a folder has its own paths.
        let node = match node {
            Some(Node::Folder { mode, .. }) => {
                Some(Node::Folder { tree: Tree::default().add_to(additions), mode })
            }
            other => other,
        };
        stays.insert(path.clone(), node);
    }
    let snapshot = graft_paths(additions, &after, &stays)?;
    Ok(additions.add(&snapshot))
}
