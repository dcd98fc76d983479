//! Records changes made in the folder since the last snapshot, each under its author.

use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::id::{ThreadId, TurnId};
use retake_model::intent::{FolderRecord, FolderRun, RunningCommand};
use retake_model::object::{MemoryObjects, ObjectError, Objects, load};
use retake_model::operation::{ConcurrentChange, FileChange, OperationKind, Version};
use retake_model::tree::{Excluded, Snapshot, compare};
use retake_store::WriteTransaction;
use retake_workspace::folder::path_to_text;
use retake_workspace::watch::FolderWatch;
use retake_workspace::{leftover, snapshot};
use serde::Serialize;

use super::folder_state::{FolderState, KnownFolder};
use super::ownership::{Owner, Recorder, Share, divide, with_changes};
use super::report::{FileReport, Outcome, PathReport};
use super::sealed::{SealedSnapshot, changed_sealed};
use super::{FileError, FolderSession, WorkingCopy};
use crate::clock::Clock;
use crate::write::change::{ComposedOperation, Composer, Head, finish};
use crate::{Caller, ChangeError, ChangeOutcome, Command, Rules};

/// The current files.
#[derive(Clone, Debug)]
pub struct CurrentFiles {
    /// Id of their snapshot.
    pub id: ContentId,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The current version of the thread.
    pub version: Version,
}

/// Recorded changes of the folder.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedChanges {
    /// Snapshot of the current files.
    pub snapshot: ContentId,
    /// The current version of the thread.
    pub version: Version,
    /// The operation that records the changes; `null` if there were none.
    pub operation: Option<ChangeOutcome>,
    /// The changed paths.
    pub files: FileReport,
}

/// To whom changes are attributed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribution {
    /// The user.
    User,
    /// The caller.
    Caller,
}

impl WorkingCopy {
    /// Records manual edits made since the last snapshot.
    pub fn record_changes(&self, thread: ThreadId, caller: Caller) -> Result<RecordedChanges, FileError> {
        self.record_as(thread, caller, Attribution::User)
    }

    /// Marks the caller (a tool, the agent, a client) as running in the folder, in the named turn. Records earlier
    /// manual edits first. If the caller's process is killed, its changes are still attributed to it, as shared: the user
    /// may have changed files since. [`WorkingCopy::record_as_caller`] ends the run.
    pub fn mark_running(
        &self,
        thread: ThreadId,
        caller: Caller,
        turn: TurnId,
        command: Option<RunningCommand>,
    ) -> Result<RecordedChanges, FileError> {
        let recorded = self.record_changes(thread, Caller { turn: None, ..caller.clone() })?;
        let folder_state = FolderState::of(self);
        let take = folder_state.take(&self.timeline.read()?.state(thread)?);
        let run = FolderRun { thread, take, turn, actor: caller.actor, paths: None, command };
        self.timeline
            .store
            .write(move |writing| Ok::<_, FileError>(folder_state.mark_running(writing, run)?))?;
        Ok(recorded)
    }

    /// Records the changes of the caller (a tool, the agent, a client) as an operation that can be undone. Manual edits
    /// from before should already be recorded with [`WorkingCopy::record_changes`].
    pub fn record_as_caller(&self, thread: ThreadId, caller: Caller) -> Result<RecordedChanges, FileError> {
        self.record_as(thread, caller, Attribution::Caller)
    }

    /// Names the current version of a thread, together with the files in the folder. Records manual edits first.
    pub fn save(&self, thread: ThreadId, name: String, caller: Caller) -> Result<ChangeOutcome, FileError> {
        self.timeline.settled_files(|| {
            let mut session = self.begin()?;
            let recorded = session.record_changes(
                thread,
                &Caller { request: None, ..caller.clone() },
                Attribution::User,
            )?;
            let caller = Caller { expected: caller.expected.map(|_| recorded.version), ..caller.clone() };
            let (folder_state, command) = (FolderState::of(self), Command::Save { name: name.clone() });
            let (clock, rules) = (self.timeline.clock.clone(), self.timeline.rules);
            let done = self.timeline.store.write(move |writing| -> Result<ChangeOutcome, FileError> {
                let at = Head::of(writing, thread, &caller)?;
                if at.state.deleted.is_some() {
                    return Err(ChangeError::ThreadDeleted.into());
                }
                // Another thread may have changed the folder since this one last recorded its files.
                let known = folder_state.known_files(writing, &at)?;
                let composer = Composer { writing, at: &at, caller: &caller, clock: &*clock, rules };
                let Some(mut composed) = composer.command(command)? else { return Ok(at.unchanged()) };
                if known.is_some_and(|known| known != recorded.snapshot) {
                    let take = folder_state.take_in_folder(writing, &at)?;
                    composed =
                        with_files(composed, folder_state.change(recorded.snapshot, recorded.snapshot, take));
                }
                Ok(finish(writing, &at, composed)?.0)
            })?;
            Ok(done)
        })
    }

    /// The recorded files, if a watched folder still has them and recording would change nothing.
    pub fn recorded_files(
        &self,
        thread: ThreadId,
        watch: &mut FolderWatch,
    ) -> Result<Option<ContentId>, FileError> {
        self.check_thread(thread)?;
        if self.new_boot()?.is_some() {
            return Ok(None);
        }
        let taken = watch.observe(&self.timeline.store, &self.workspace)?;
        let sealed = self.add_sealed(taken.id, &taken.snapshot)?;
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        let is_recorded =
            queries.folder(self.folder)?.is_some_and(|known| self.is_recorded(&known, sealed.id));
        let is_moving = queries.intent_for_folder(self.folder)?.is_some();
        Ok((is_recorded && !is_moving).then_some(sealed.id))
    }

    /// Whether the record of the folder names exactly these files.
    fn is_recorded(&self, known: &FolderRecord, snapshot: ContentId) -> bool {
        // A recorded run may have ended, which then has to be recorded.
        let identified = known.root_identities.as_ref().map_or(0, Vec::len) + 1 == known.roots.len();
        known.snapshot == Some(snapshot)
            && known.roots == self.roots()
            && known.running.is_none()
            && identified
    }

    fn record_as(
        &self,
        thread: ThreadId,
        caller: Caller,
        attribution: Attribution,
    ) -> Result<RecordedChanges, FileError> {
        self.timeline.settled_files(|| self.begin()?.record_changes(thread, &caller, attribution))
    }
}

/// The current files, the published operation if they had changed, and the files before.
type RecordingOutcome = (CurrentFiles, Option<ChangeOutcome>, Option<(ContentId, Vec<PathReport>)>);

impl FolderSession<'_> {
    /// Records changes in the folder.
    pub(super) fn record_changes(
        &mut self,
        thread: ThreadId,
        caller: &Caller,
        attribution: Attribution,
    ) -> Result<RecordedChanges, FileError> {
        let (present, operation, changed) = self.snapshot_and_record(thread, caller, attribution)?;
        let (before, paths) = changed.map_or((None, Vec::new()), |(before, paths)| (Some(before), paths));
        let before = before.unwrap_or(present.id);
        let files = FileReport::new(before, present.id, paths, self.recovered.take());
        let files = FileReport { emptied: std::mem::take(&mut self.emptied), ..files };
        Ok(RecordedChanges { snapshot: present.id, version: present.version, operation, files })
    }

    /// The current files, after recording manual edits.
    pub(super) fn current_files(&self, thread: ThreadId, caller: &Caller) -> Result<CurrentFiles, FileError> {
        Ok(self.snapshot_and_record(thread, caller, Attribution::User)?.0)
    }

    fn snapshot_and_record(
        &self,
        thread: ThreadId,
        caller: &Caller,
        attribution: Attribution,
    ) -> Result<RecordingOutcome, FileError> {
        self.working_copy.check_thread(thread)?;
        loop {
            match self.try_snapshot_and_record(thread, caller, attribution) {
                // Content that the snapshot refers to was erased in the meantime: try again.
                Err(FileError::Outdated) => {}
                other => return other,
            }
        }
    }

    fn try_snapshot_and_record(
        &self,
        thread: ThreadId,
        caller: &Caller,
        attribution: Attribution,
    ) -> Result<RecordingOutcome, FileError> {
        let working_copy = self.working_copy;
        let folder_state = FolderState::of(working_copy);
        let taken = Arc::new(snapshot::snapshot(&working_copy.timeline.store, &working_copy.workspace)?);
        let SealedSnapshot { id, snapshot, objects } = working_copy.add_sealed(taken.id, &taken.snapshot)?;
        if self.expected.is_some_and(|expected| expected != id) {
            return Err(FileError::PlanOutdated);
        }
        // A plan must run on exactly the files that it was made for; other recordings remove leftovers of tools.
        if self.expected.is_none() && self.remove_leftovers(&taken)? {
            return Err(FileError::Outdated);
        }
        if taken.is_stored()
            && let Some(version) = self.recorded_before(thread, caller, id)?
        {
            return Ok((CurrentFiles { id, snapshot, version }, None, None));
        }
        working_copy.sync_changes(&taken, (id, &objects), attribution == Attribution::Caller)?;
        let found = ChangesToRecord {
            thread,
            caller: caller.clone(),
            attribution,
            dead: working_copy.ended_runs()?,
            snapshot: id,
        };
        let clock = working_copy.timeline.clock.clone();
        let stored = Arc::clone(&taken);
        let (version, done, before) =
            working_copy.timeline.store.write(move |writing| -> Result<_, FileError> {
                stored.store(writing, clock.now())?;
                writing.put_contents(&objects, clock.now())?;
                found.record(writing, &folder_state, &*clock)
            })?;
        // A failure only makes the next snapshot slower.
        let _ = taken.save_cache();
        Ok((CurrentFiles { id, snapshot, version }, done, before))
    }

    /// Removes temporary files of killed tools; returns whether there were any. Does nothing while a tool is running in
    /// the folder.
    fn remove_leftovers(&self, taken: &snapshot::CapturedSnapshot) -> Result<bool, FileError> {
        let working_copy = self.working_copy;
        let reader = working_copy.timeline.read()?;
        let queries = reader.queries();
        let mut new = MemoryObjects::default();
        new.insert_all(taken.objects.iter().cloned());
        let mut left = Vec::new();
        for (root, captured) in working_copy.workspace.roots().iter().zip(&taken.snapshot.roots) {
            let Some(id) = captured.excluded else { continue };
            let excluded: Excluded = match load(&new, id) {
                Ok(excluded) => excluded,
                Err(_) => load(&queries, id)?,
            };
            let paths = leftover::tool_files(excluded.0.iter().map(|path| path.path.as_slice()));
            left.extend(paths.into_iter().map(|path| (root, path)));
        }
        if left.is_empty() || working_copy.is_running()? {
            return Ok(false);
        }
        let removed = left.iter().filter(|(root, path)| leftover::remove_if_abandoned(&root.path, path));
        Ok(removed.count() > 0)
    }

    /// The version of the thread, if the recorded state of the folder is exactly this.
    fn recorded_before(
        &self,
        thread: ThreadId,
        caller: &Caller,
        snapshot: ContentId,
    ) -> Result<Option<Version>, FileError> {
        let reader = self.working_copy.timeline.read()?;
        let known = reader.queries().folder(self.working_copy.folder)?;
        if !known.is_some_and(|known| self.working_copy.is_recorded(&known, snapshot)) {
            return Ok(None);
        }
        let head = reader.head(thread)?.operation;
        match caller.expected {
            Some(expected) if expected != head.version => {
                Err(ChangeError::Conflict { expected, current: head.version }.into())
            }
            _ => Ok(Some(head.version)),
        }
    }
}

/// Result of recording a folder: the version of the thread, the operation if any, and the files before.
type PublishedRecording = (Version, Option<ChangeOutcome>, Option<(ContentId, Vec<PathReport>)>);

/// A captured folder, with the information for attributing its changes.
pub(super) struct ChangesToRecord {
    pub(super) thread: ThreadId,
    pub(super) caller: Caller,
    pub(super) attribution: Attribution,
    /// Runs in the folder whose process has ended.
    pub(super) dead: Vec<TurnId>,
    pub(super) snapshot: ContentId,
}

impl ChangesToRecord {
    /// Records changes since the last known state of the folder. The content of the snapshot is already stored.
    pub(super) fn record(
        self,
        writing: &WriteTransaction<'_>,
        folder_state: &FolderState,
        clock: &dyn Clock,
    ) -> Result<PublishedRecording, FileError> {
        let Self { thread, caller, attribution, dead, snapshot: id } = self;
        let at = Head::of(writing, thread, &caller)?;
        let here = at.last.operation.version;
        let KnownFolder { before, runs } = folder_state.known(writing, id)?;
        // The caller's own run has ended, and so have those of killed processes.
        let own = |run: &FolderRun| attribution == Attribution::Caller && caller.turn == Some(run.turn);
        let left = runs.iter().filter(|run| !dead.contains(&run.turn) && !own(run)).cloned().collect();
        folder_state.write_record(writing, id, left)?;
        let Some((before, found)) = before else { return Ok((here, None, None)) };
        if at.state.deleted.is_some() {
            return Err(ChangeError::ThreadDeleted.into());
        }
        let recorder = match attribution {
            Attribution::User => Recorder::Observer,
            Attribution::Caller => Recorder::Author(caller.turn),
        };
        let shares = divide(&found, (&runs, &dead), recorder);
        let published = publish_shares(writing, folder_state, clock, (before, id), &shares, (at, &caller))?;
        let version = published.iter().flatten().last().map_or(here, |done| done.version);
        let done = published.into_iter().flatten().last();
        Ok((version, done, Some((before, found))))
    }
}

/// Publishes each share of the changes as an operation. Returns those of this thread.
pub(super) fn publish_shares(
    writing: &WriteTransaction<'_>,
    folder_state: &FolderState,
    clock: &dyn Clock,
    (mut before, last): (ContentId, ContentId),
    shares: &[Share],
    (at, caller): (Head, &Caller),
) -> Result<Vec<Option<ChangeOutcome>>, FileError> {
    let thread = at.row.summary.id;
    let mut published = Vec::new();
    let mut head = Some(at);
    for (number, share) in shares.iter().enumerate() {
        let at = match head.take() {
            Some(at) => at,
            None => Head::of(writing, thread, &Caller { expected: None, ..caller.clone() })?,
        };
        let after = if number + 1 == shares.len() {
            last
        } else {
            with_changes(writing, (before, last), &share.paths, clock)?
        };
        let run = match &share.owner {
            Owner::Run(run) => Some(run.clone()),
            Owner::User | Owner::Caller => None,
        };
        let paths = count(&share.paths);
        let (at, run) = owner(writing, at, run)?;
        let (kind, caller, take) = match (&share.owner, run) {
            (_, Some(run)) => (OperationKind::FilesChanged { paths }, as_run(caller, &run), run.take),
            (Owner::Caller, None) => {
                (OperationKind::FilesChanged { paths }, caller.clone(), folder_state.take(&at.state))
            }
            (_, None) => {
                let take = folder_state.take_in_folder(writing, &at)?;
                (OperationKind::ExternalEdits { paths }, as_user(caller), take)
            }
        };
        let caller = Caller { take: Some(take), ..caller };
        let composer = Composer { writing, at: &at, caller: &caller, clock, rules: Rules::default() };
        let composed = composer.same_state(kind)?;
        let files = folder_state.change(before, after, take);
        let composed = with_files(composed, files).shared_with(&share.others, share.killed);
        let (done, _) = finish(writing, &at, composed)?;
        published.push((at.row.summary.id == thread).then_some(done));
        before = after;
    }
    Ok(published)
}

impl WorkingCopy {
    /// Paths of the roots as stored.
    pub(super) fn roots(&self) -> Vec<(String, String)> {
        self.workspace.roots().iter().map(|root| (root.name.clone(), path_to_text(&root.path))).collect()
    }
}

/// Adds changed files to an operation.
pub(super) fn with_files<'writing, 'transaction>(
    mut composed: ComposedOperation<'writing, 'transaction>,
    files: FileChange,
) -> ComposedOperation<'writing, 'transaction> {
    composed.operation.last_file_operation = Some(composed.operation.version);
    composed.operation.files = Some(files);
    composed
}

impl ComposedOperation<'_, '_> {
    /// Marks an operation as shared if another run, or after a killed one the user, may have made the change.
    pub(super) fn shared_with(mut self, others: &[FolderRun], killed: bool) -> Self {
        let operation = &mut self.operation;
        let take = operation.files.map(|files| files.take);
        let with_it = |run: &FolderRun| {
            run.thread == operation.thread && Some(run.take) == take && run.turn == operation.turn
        };
        let shared = killed || !others.iter().all(with_it);
        if let Some(files) = operation.files.as_mut().filter(|_| shared) {
            files.shared = Some(ConcurrentChange::OtherRuns);
        }
        self
    }
}

/// Manual edits belong to the user and to no turn, whoever records them. They are not part of the caller's request: a
/// request that is killed right after them is not done.
fn as_user(caller: &Caller) -> Caller {
    Caller { actor: retake_model::operation::Actor::Human, turn: None, request: None, ..caller.clone() }
}

/// Changes during a run belong to it, whoever records them.
fn as_run(caller: &Caller, run: &FolderRun) -> Caller {
    Caller { actor: run.actor.clone(), turn: Some(run.turn), expected: None, request: None, ..caller.clone() }
}

/// The thread of the changes: that of the run in the folder, if it exists. While files of that thread move, here or in a
/// worktree, recording waits: the changes must not become those of another thread.
fn owner(
    writing: &WriteTransaction<'_>,
    at: Head,
    run: Option<FolderRun>,
) -> Result<(Head, Option<FolderRun>), FileError> {
    let Some(run) = run else { return Ok((at, None)) };
    if run.thread == at.row.summary.id {
        return Ok((at, Some(run)));
    }
    match Head::of(writing, run.thread, &Caller::human()) {
        Ok(theirs) if theirs.state.deleted.is_none() => Ok((theirs, Some(run))),
        Ok(_) | Err(ChangeError::NoSuchThread(_)) => Ok((at, None)),
        Err(error) => Err(error.into()),
    }
}

/// Number of changed paths.
pub(super) fn count(changed: &[PathReport]) -> u64 {
    // Folders count only if nothing but folders changed.
    let files = changed.iter().filter(|path| !path.is_folder()).count() as u64;
    if files == 0 { changed.len() as u64 } else { files }
}

/// The paths that differ between two snapshots.
pub(super) fn changed_paths(
    objects: &(impl Objects + ?Sized),
    before: ContentId,
    after: ContentId,
) -> Result<Vec<PathReport>, ObjectError> {
    let (old, new): (Snapshot, Snapshot) = (load(objects, before)?, load(objects, after)?);
    let mut found = Vec::new();
    for root in &new.roots {
        // Files in a new root existed before and are no change.
        let Some(before) = old.root(&root.name) else { continue };
        let compared = compare(objects, Some(before), Some(root))?;
        for difference in compared.known {
            let outcome = if difference.after.is_some() { Outcome::Written } else { Outcome::Removed };
            found.push(PathReport::new(&root.name, difference, outcome));
        }
        // Files that became too large, and pipes, were written nevertheless.
        let excluded = compared.excluded.into_iter();
        found.extend(excluded.map(|difference| PathReport::new(&root.name, difference, Outcome::Written)));
    }
    found.extend(changed_sealed(objects, &old, &new)?);
    Ok(found)
}
