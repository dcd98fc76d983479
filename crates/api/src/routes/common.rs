//! Shared by routes: path parameters, pages, callers, and move options.

use retake_model::command::CommandError;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::replay::OnConflict;
use retake_model::state::ThreadState;
use retake_model::take::Take;
pub(crate) use retake_surface::page::{MAX_PAGE, cursor, invalid_cursor, limit};
use retake_timeline::{
    Caller, ChangeOutcome, ChangeReport, Command, MoveOptions, PlanOutcome, PlanRequest, Preview, Reader,
    Scope, SharedChanges, WorkingCopy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file_common::files_disabled;
use crate::endpoint::{Answer, Call};
use crate::problem::Problem;
use crate::service::Service;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ThreadPath {
    /// The thread's id.
    pub(crate) thread: ThreadId,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TakePath {
    /// The thread's id.
    pub(crate) thread: ThreadId,
    /// The take's id.
    pub(crate) take: TakeId,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EntryPath {
    /// The thread's id.
    pub(crate) thread: ThreadId,
    /// The entry's id.
    pub(crate) entry: EntryId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeQuery {
    /// The take; the active one by default.
    pub(crate) take: Option<TakeId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DryRunQuery {
    /// Preview the change path by path, without making it.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeDryRunQuery {
    /// The take; the active one by default.
    pub(crate) take: Option<TakeId>,
    /// Preview the change path by path, without making it.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// A page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(crate) struct Page<T> {
    /// The items of this page.
    pub(crate) items: Vec<T>,
    /// `cursor` of the next page; null on the last page.
    pub(crate) next: Option<String>,
}

/// The result of a change, or its preview.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DoneOrPreview {
    #[serde(flatten)]
    pub(crate) done: Option<ChangeOutcome>,
    /// Whether this is a preview: nothing was changed.
    pub(crate) dry_run: bool,
    /// The preview, if this is one.
    pub(crate) preview: Option<Preview>,
}

/// The result of a change that may move files, or its preview.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedOrPreview {
    #[serde(flatten)]
    pub(crate) changed: ChangeReport,
    /// Whether this is a preview: nothing was changed.
    pub(crate) dry_run: bool,
    /// The preview of the conversation, if this is one.
    pub(crate) preview: Option<Preview>,
}

/// The options of a move.
pub(crate) fn move_options(scope: Scope, on_conflict: OnConflict, shared: bool) -> MoveOptions {
    MoveOptions { scope, on_conflict, shared: shared_changes(shared) }
}

/// Whether to undo changes that several commands or tools made at the same time.
pub(crate) fn shared_changes(undo: bool) -> SharedChanges {
    if undo { SharedChanges::Undo } else { SharedChanges::Refuse }
}

impl<P, Q, B> Call<'_, P, Q, B> {
    /// The caller of a change of a thread, with the version that the request expects.
    pub(crate) fn caller(&self, thread: ThreadId) -> Result<Caller, Problem> {
        Ok(self.caller_in(self.service.projects.home_of(thread)?))
    }

    /// Changes a thread.
    pub(crate) fn change(
        &self,
        thread: ThreadId,
        command: Command,
    ) -> Result<Answer<ChangeOutcome>, Problem> {
        let done = self.service.timeline.change(thread, command, self.caller(thread)?)?;
        let version = done.version;
        Ok(Answer::at(done, version))
    }

    /// Changes a thread, or previews the change.
    pub(crate) fn change_or_preview(
        &self,
        thread: ThreadId,
        command: Command,
        dry_run: bool,
    ) -> Result<Answer<DoneOrPreview>, Problem> {
        if dry_run {
            let request = PlanRequest::Change(command);
            let preview = self.preview((thread, None), request, MoveOptions::default())?;
            let version = preview.version;
            return Ok(Answer::at(DoneOrPreview { done: None, dry_run, preview: Some(preview) }, version));
        }
        let Answer { body, version, location } = self.change(thread, command)?;
        Ok(Answer { body: DoneOrPreview { done: Some(body), dry_run, preview: None }, version, location })
    }

    /// Previews a request. Changes nothing, except that it finishes what a crash interrupted.
    pub(super) fn preview(
        &self,
        (thread, take): (ThreadId, Option<TakeId>),
        request: PlanRequest,
        move_options: MoveOptions,
    ) -> Result<Preview, Problem> {
        let (service, caller) = (self.service, self.caller(thread)?);
        let folder_options = (service.agent.setup.files.as_ref(), take);
        Ok(service
            .timeline
            .recover_and_plan(thread, request, caller, move_options, folder_options)?
            .into_preview())
    }

    /// Executes a request in the project's folder, or in the worktree of the named take.
    pub(super) fn perform(
        &self,
        (thread, take): (ThreadId, Option<TakeId>),
        request: PlanRequest,
        move_options: MoveOptions,
    ) -> Result<PlanOutcome, Problem> {
        let (service, caller) = (self.service, self.caller(thread)?);
        let folder_options = (service.agent.setup.files.as_ref(), take);
        Ok(service.timeline.perform(thread, request, caller, move_options, folder_options)?)
    }

    /// Makes a change that may switch the active take and its files.
    pub(crate) fn change_takes(
        &self,
        thread: ThreadId,
        command: Command,
        move_options: MoveOptions,
        dry_run: bool,
    ) -> Result<Answer<ChangedOrPreview>, Problem> {
        let request = PlanRequest::Change(command);
        if dry_run {
            let preview = self.preview((thread, None), request, move_options)?;
            let (version, files) = (preview.version, preview.files.clone());
            let changed = ChangeReport { done: None, files };
            return Ok(Answer::at(ChangedOrPreview { changed, dry_run, preview: Some(preview) }, version));
        }
        let PlanOutcome { done, files, .. } = self.perform((thread, None), request, move_options)?;
        let version = done.as_ref().map(|done| done.version);
        let body = ChangedOrPreview { changed: ChangeReport { done, files }, dry_run, preview: None };
        Ok(Answer { body, version, location: None })
    }
}

impl Service {
    /// The working copy of a thread's project; `None` if file recording is off.
    pub(crate) fn working_copy_of(&self, thread: ThreadId) -> Result<Option<WorkingCopy>, Problem> {
        let Some(options) = &self.agent.setup.files else { return Ok(None) };
        let home = self.timeline.read()?.thread(thread)?.home;
        Ok(Some(WorkingCopy::of_project(&self.timeline, home, options)?))
    }

    /// The same, for routes that cannot work without files.
    pub(crate) fn require_working_copy(&self, thread: ThreadId) -> Result<WorkingCopy, Problem> {
        self.working_copy_of(thread)?.ok_or_else(files_disabled)
    }
}

/// The named take, or the active one.
pub(crate) fn take_of(
    reader: &Reader<'_>,
    state: &ThreadState,
    named: Option<TakeId>,
) -> Result<Take, Problem> {
    let take = state.take(&reader.queries(), named.unwrap_or(state.active))?;
    take.ok_or_else(|| CommandError::NoSuchTake.into())
}

/// The id of the named take, without checking it, or of the active one.
pub(crate) fn take_id(service: &Service, thread: ThreadId, named: Option<TakeId>) -> Result<TakeId, Problem> {
    match named {
        Some(take) => Ok(take),
        None => Ok(service.timeline.read()?.state(thread)?.active),
    }
}
