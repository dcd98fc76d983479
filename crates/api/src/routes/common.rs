//! What routes share: the paths that name things, pages of lists, who asks, and how files are moved.

use std::str::FromStr;

use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_model::replay::OnConflict;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{
    Caller, Changed, Command, Desk, Done, Executed, Halves, Handling, Looking, PlanRequest, Preview,
    SharedChanges,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file_common::not_kept;
use crate::endpoint::{Answer, Call};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// The longest page.
pub(crate) const MOST: usize = 500;

/// A path that names a thread.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ThreadPath {
    /// The thread's id.
    pub(crate) thread: ThreadId,
}

/// A path that names a take of a thread.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct TakePath {
    /// The thread's id.
    pub(crate) thread: ThreadId,
    /// The take's id.
    pub(crate) take: TakeId,
}

/// A path that names an entry of a thread.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EntryPath {
    /// The thread's id.
    pub(crate) thread: ThreadId,
    /// The entry's id.
    pub(crate) entry: EntryId,
}

/// A query that names a take.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfTake {
    /// The take; the active one if none is named.
    pub(crate) take: Option<TakeId>,
}

/// A query that asks to look ahead.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ahead {
    /// Only say what would happen, path by path.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// A query that names a take, and may ask to look ahead.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfTakeAhead {
    /// The take; the active one if none is named.
    pub(crate) take: Option<TakeId>,
    /// Only say what would happen, path by path.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// A page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(crate) struct Page<T> {
    /// What is on this page.
    pub(crate) items: Vec<T>,
    /// The `cursor` of the next page; none if this is the last.
    pub(crate) next: Option<String>,
}

/// What came of a change, or would come of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DoneOrPreview {
    #[serde(flatten)]
    pub(crate) done: Option<Done>,
    /// Whether nothing was changed, and this is only what would be.
    pub(crate) dry_run: bool,
    /// What would be done, where nothing was.
    pub(crate) would: Option<Preview>,
}

/// What came of a change that may bring files along, or would come of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedOrPreview {
    #[serde(flatten)]
    pub(crate) changed: Changed,
    /// Whether nothing was changed, and this is only what would be.
    pub(crate) dry_run: bool,
    /// What would be done to the conversation, where nothing was.
    pub(crate) would: Option<Preview>,
}

/// What moves with a change of the conversation.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhichHalves {
    /// Conversation and files.
    #[default]
    Both,
    /// The conversation alone.
    Conversation,
    /// The files alone.
    Files,
}

/// What becomes of a file that was changed since in a way that does not merge.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Conflicts {
    /// It stays as it is.
    #[default]
    Keep,
    /// The version that the change brings is written.
    Take,
    /// Both are written, between markers.
    Mark,
}

impl WhichHalves {
    /// How files are to be moved.
    pub(crate) fn handling(self, conflicts: Conflicts, shared: bool) -> Handling {
        let halves = match self {
            Self::Both => Halves::Both,
            Self::Conversation => Halves::Conversation,
            Self::Files => Halves::Files,
        };
        Handling { halves, on_conflict: conflicts.into(), shared: shared_changes(shared) }
    }
}

/// What becomes of changes that several runs made together.
pub(crate) fn shared_changes(undo: bool) -> SharedChanges {
    if undo { SharedChanges::Undo } else { SharedChanges::Refuse }
}

impl From<Conflicts> for OnConflict {
    fn from(conflicts: Conflicts) -> Self {
        match conflicts {
            Conflicts::Keep => Self::Keep,
            Conflicts::Take => Self::Take,
            Conflicts::Mark => Self::Mark,
        }
    }
}

/// How many are on a page.
pub(crate) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    match asked {
        None => Ok(usual),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(_) => Err(Problem::invalid(format!("limit must be from 1 to {most}"))),
    }
}

impl<P, Q, B> Call<'_, P, Q, B> {
    /// Who asks for a change of a thread, and what they know.
    pub(crate) fn caller(&self, thread: ThreadId) -> Result<Caller, Problem> {
        Ok(self.caller_in(self.service.home_of(thread)?))
    }

    /// Makes a change to a thread.
    pub(crate) fn change(&self, thread: ThreadId, command: Command) -> Result<Answer<Done>, Problem> {
        let done = self.service.timeline.change(thread, command, self.caller(thread)?)?;
        let version = done.version;
        Ok(Answer::at(done, version))
    }

    /// Makes a change to a thread, or says what it would do.
    pub(crate) fn change_or_preview(
        &self,
        thread: ThreadId,
        command: Command,
        dry_run: bool,
    ) -> Result<Answer<DoneOrPreview>, Problem> {
        if dry_run {
            let request = PlanRequest::Change(command);
            let would = self.preview((thread, None), request, Handling::default())?;
            let version = would.version;
            return Ok(Answer::at(DoneOrPreview { done: None, dry_run, would: Some(would) }, version));
        }
        let Answer { body, version, location } = self.change(thread, command)?;
        Ok(Answer { body: DoneOrPreview { done: Some(body), dry_run, would: None }, version, location })
    }

    /// What would come of a request. Nothing is changed, except that what a crash left is finished first.
    pub(super) fn preview(
        &self,
        (thread, take): (ThreadId, Option<TakeId>),
        request: PlanRequest,
        handling: Handling,
    ) -> Result<Preview, Problem> {
        let (service, caller) = (self.service, self.caller(thread)?);
        let place = (service.setup.files.as_ref(), take);
        Ok(service.timeline.recover_and_plan(thread, request, caller, handling, place)?.into_preview())
    }

    /// Does what is asked, with the files of the thread's own folder, or of the worktree of the take that is named.
    pub(super) fn perform(
        &self,
        (thread, take): (ThreadId, Option<TakeId>),
        request: PlanRequest,
        handling: Handling,
    ) -> Result<Executed, Problem> {
        let (service, caller) = (self.service, self.caller(thread)?);
        let place = (service.setup.files.as_ref(), take);
        Ok(service.timeline.perform(thread, request, caller, handling, place)?)
    }

    /// Makes a change after which another take may be the active one, its files along with it.
    pub(crate) fn change_takes(
        &self,
        thread: ThreadId,
        command: Command,
        handling: Handling,
        dry_run: bool,
    ) -> Result<Answer<ChangedOrPreview>, Problem> {
        let request = PlanRequest::Change(command);
        if dry_run {
            let would = self.preview((thread, None), request, handling)?;
            let (version, files) = (would.version, would.files.clone());
            let changed = Changed { done: None, files };
            return Ok(Answer::at(ChangedOrPreview { changed, dry_run, would: Some(would) }, version));
        }
        let Executed { done, files, .. } = self.perform((thread, None), request, handling)?;
        let version = done.as_ref().map(|done| done.version);
        let body = ChangedOrPreview { changed: Changed { done, files }, dry_run, would: None };
        Ok(Answer { body, version, location: None })
    }
}

impl Service {
    /// The folder of a thread's project with its files; none if files are not kept of it.
    pub(crate) fn desk_of(&self, thread: ThreadId) -> Result<Option<Desk>, Problem> {
        let Some(options) = &self.setup.files else { return Ok(None) };
        let home = self.timeline.look()?.thread(thread)?.home;
        Ok(Some(Desk::of_project(&self.timeline, home, options)?))
    }

    /// The same, where nothing can be done without it.
    pub(crate) fn needed_desk_of(&self, thread: ThreadId) -> Result<Desk, Problem> {
        self.desk_of(thread)?.ok_or_else(not_kept)
    }
}

/// The take that is meant: the one that was named, or the active one.
pub(crate) fn take_of(
    looking: &Looking<'_>,
    state: &ThreadState,
    named: Option<TakeId>,
) -> Result<Take, Problem> {
    let take = state.take(&looking.queries(), named.unwrap_or(state.active))?;
    take.ok_or_else(|| Problem::not_found("there is no such take in this thread"))
}

/// The take that is meant, by its id alone.
pub(crate) fn take_id(service: &Service, thread: ThreadId, named: Option<TakeId>) -> Result<TakeId, Problem> {
    match named {
        Some(take) => Ok(take),
        None => Ok(service.timeline.look()?.state(thread)?.active),
    }
}

/// The cursor is text, but not one that was given out.
pub(crate) fn not_a_cursor() -> Problem {
    Problem::new(Code::Refused, "the cursor is not one that this list gave")
}

/// A cursor that is a number.
pub(crate) fn number(cursor: Option<&str>) -> Result<Option<Version>, Problem> {
    id(cursor)
}

/// A cursor that names the last thing of the page before.
pub(crate) fn id<I: FromStr>(cursor: Option<&str>) -> Result<Option<I>, Problem> {
    cursor.map(str::parse).transpose().map_err(|_| not_a_cursor())
}
