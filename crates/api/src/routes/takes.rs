//! Takes: list, branch, fork, switch, rename, delete, promote.

use retake_model::id::{EntryId, TakeId};
use retake_model::summary::TakeSummary;
use retake_timeline::{ChangeOutcome, Command, MoveOptions, PlanRequest, PromoteOutcome, Scope, read_blob};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{
    ChangedOrPreview, DryRunQuery, MAX_PAGE, Page, TakePath, ThreadPath, cursor, limit, move_options, take_of,
};
use crate::endpoint::{Answer, Call, Endpoint, NoQuery, delete, get, post};
use crate::problem::Problem;
use retake_model::replay::OnConflict;

const GROUP: &str = "Takes";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/takes", list).about(GROUP, "List takes", "Oldest first; the active one is marked."),
        get("/v1/threads/{thread}/takes/{take}", show).about(
            GROUP,
            "Show a take",
            "With its draft, file lists, the last prompt sent to the model, and the state of its agent.",
        ),
        post("/v1/threads/{thread}/branch", branch).answers_created().about(
            GROUP,
            "Branch at an entry",
            "Creates a take with everything up to and including the entry, and the files of that version, and makes it the \
             active one.",
        ),
        post("/v1/threads/{thread}/fork", fork).answers_created().about(
            GROUP,
            "Fork at a user message",
            "Creates a take with everything before the message, the message as its draft, and the files of that version, and \
             makes it the active one. The source does not change.",
        ),
        post("/v1/threads/{thread}/takes/{take}/switch", switch).about(
            GROUP,
            "Switch to a take",
            "Makes it the active one and brings its files into the folder.",
        ),
        post("/v1/threads/{thread}/takes/{take}/keep", keep).about(
            GROUP,
            "Keep a take",
            "Makes it the active one with its files, and deletes its alternatives: the takes that went on differently from \
             its newest fork. One operation, which one undo reverts.",
        ),
        post("/v1/threads/{thread}/takes/{take}/merge", merge).about(
            GROUP,
            "Merge a take into the active one",
            "Applies its file changes since the fork to the folder, path by path, and appends its last answer as an entry \
             that names its source. A file that both changed differently is reported as a conflict, and stays as it is \
             unless `conflicts` says otherwise. One operation, which one undo reverts.",
        ),
        post("/v1/threads/{thread}/takes/{take}/rename", rename).about(GROUP, "Rename a take", ""),
        delete("/v1/threads/{thread}/takes/{take}", remove).about(
            GROUP,
            "Delete a take",
            "The last take cannot be deleted. An undo restores it.",
        ),
        post("/v1/threads/{thread}/takes/{take}/promote", promote).answers_created().about(
            GROUP,
            "Turn a take into a thread",
            "",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Page size: 1 to 500, 100 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A take in a list.
#[derive(Serialize, JsonSchema)]
struct TakeItem {
    /// Whether it is the active take.
    active: bool,
    #[serde(flatten)]
    summary: TakeSummary,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<Page<TakeItem>>, Problem> {
    let reader = call.service.timeline.read()?;
    let row = reader.thread(call.path.thread)?;
    let limit = limit(call.query.limit, 100, MAX_PAGE)?;
    // The last take of the previous page may have been deleted; those after it are still found by id.
    let last: Option<TakeId> = cursor(call.query.cursor.as_deref())?;
    let mut takes = reader.queries().takes_of(row.number)?;
    takes.retain(|take| last.is_none_or(|last| take.summary.id > last));
    let more = takes.len() > limit;
    takes.truncate(limit);
    let next = takes.last().filter(|_| more).map(|take| take.summary.id.to_string());
    let active = row.summary.active.id;
    let items = takes.into_iter();
    let items = items.map(|take| TakeItem { active: take.summary.id == active, summary: take.summary });
    Ok(Answer::at(Page { items: items.collect(), next }, row.summary.version))
}

/// A take.
#[derive(Serialize, JsonSchema)]
struct TakeAnswer {
    /// Its id.
    id: TakeId,
    /// Its name.
    name: String,
    /// Whether it is the active take.
    active: bool,
    /// Number of entries.
    entries: u64,
    /// Creation time.
    created: retake_model::time::Timestamp,
    /// The unsent text.
    draft: String,
    /// Pictures attached to the draft.
    draft_pictures: retake_model::take::Attachments,
    /// Files of the take.
    files: Vec<retake_model::take::FileItem>,
    /// Files whose content is sent with the next request.
    context_files: Vec<retake_model::take::FileItem>,
    /// Pictures sent with the next request.
    screenshots: Vec<retake_model::take::FileItem>,
    /// The take that it was branched from.
    parent: Option<TakeId>,
    /// The last entry that it shares with its parent.
    fork_point: Option<EntryId>,
    /// Conversation and context of the last prompt, as sent to the model.
    sent_markdown: Option<String>,
    /// The system prompt of the last prompt.
    sent_system_prompt: Option<String>,
    /// The state of its agent; null if no turn is running or failed.
    agent: Option<retake_model::agent::Agent>,
}

fn show(call: &Call<'_, TakePath>) -> Result<Answer<TakeAnswer>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    let state = reader.state(call.path.thread)?;
    let take = take_of(&reader, &state, Some(call.path.take))?;
    let text = |id| -> Result<String, Problem> {
        Ok(String::from_utf8_lossy(&read_blob(&reader, id)?).into_owned())
    };
    let (sent_markdown, sent_system_prompt) = match &take.sent {
        Some(sent) => (Some(text(sent.markdown)?), Some(text(sent.system_prompt)?)),
        None => (None, None),
    };
    let shown = TakeAnswer {
        id: take.id,
        name: take.name,
        active: take.id == state.active,
        entries: take.entries.len(),
        created: take.created,
        draft: take.draft,
        draft_pictures: take.attached,
        files: take.files,
        context_files: take.context_files,
        screenshots: take.screenshots,
        parent: take.parent,
        fork_point: take.fork_point,
        sent_markdown,
        sent_system_prompt,
        agent: take.agent,
    };
    Ok(Answer::at(shown, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchQuery {
    /// The source take; the active one by default.
    take: Option<TakeId>,
    /// Preview the change path by path, without making it.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchBody {
    /// The last entry that both takes share; by default the new take is empty.
    entry: Option<EntryId>,
    /// Name of the new take; the next free one by default.
    name: Option<String>,
    /// What to move.
    #[serde(default)]
    scope: Scope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default the request
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn branch(call: &Call<'_, ThreadPath, BranchQuery, BranchBody>) -> Result<Answer<ChangedOrPreview>, Problem> {
    let body = &call.body;
    let from = super::common::take_id(call.service, call.path.thread, call.query.take)?;
    let command = Command::Branch { from, at: body.entry, name: body.name.clone() };
    let move_options = move_options(body.scope, body.conflicts, body.shared);
    call.change_takes(call.path.thread, command, move_options, call.query.dry_run)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// The user message.
    entry: EntryId,
    /// Name of the new take; the next free one by default.
    name: Option<String>,
    /// What to move.
    #[serde(default)]
    scope: Scope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default the request
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn fork(call: &Call<'_, ThreadPath, BranchQuery, ForkBody>) -> Result<Answer<ChangedOrPreview>, Problem> {
    let body = &call.body;
    let from = super::common::take_id(call.service, call.path.thread, call.query.take)?;
    let command = Command::Fork { from, at: body.entry, name: body.name.clone() };
    let move_options = move_options(body.scope, body.conflicts, body.shared);
    call.change_takes(call.path.thread, command, move_options, call.query.dry_run)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchBody {
    /// What to move.
    #[serde(default)]
    scope: Scope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
}

fn switch(call: &Call<'_, TakePath, DryRunQuery, SwitchBody>) -> Result<Answer<ChangedOrPreview>, Problem> {
    let move_options = move_options(call.body.scope, call.body.conflicts, false);
    let command = Command::Switch { take: call.path.take };
    call.change_takes(call.path.thread, command, move_options, call.query.dry_run)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenameBody {
    /// The new name.
    name: String,
}

fn keep(call: &Call<'_, TakePath, DryRunQuery, SwitchBody>) -> Result<Answer<ChangedOrPreview>, Problem> {
    let move_options = move_options(call.body.scope, call.body.conflicts, false);
    let command = Command::Keep { take: call.path.take };
    call.change_takes(call.path.thread, command, move_options, call.query.dry_run)
}

fn merge(call: &Call<'_, TakePath, DryRunQuery, SwitchBody>) -> Result<Answer<ChangedOrPreview>, Problem> {
    let (thread, scope) = (call.path.thread, call.body.scope);
    let timeline = &call.service.timeline;
    let reader = timeline.read()?;
    let state = reader.state(thread)?;
    let (into, from) = (take_of(&reader, &state, None)?, take_of(&reader, &state, Some(call.path.take))?);
    let command = reader.merge(thread, (&into, &from), scope, timeline.now())?;
    drop(reader);
    let move_options = move_options(scope, call.body.conflicts, false);
    call.change_takes(thread, command, move_options, call.query.dry_run)
}

fn rename(call: &Call<'_, TakePath, NoQuery, RenameBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let (take, name) = (call.path.take, call.body.name.clone());
    call.change(call.path.thread, Command::RenameTake { take, name })
}

fn remove(call: &Call<'_, TakePath, DryRunQuery>) -> Result<Answer<ChangedOrPreview>, Problem> {
    let command = Command::DeleteTake { take: call.path.take };
    call.change_takes(call.path.thread, command, MoveOptions::default(), call.query.dry_run)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PromoteBody {
    /// Title of the new thread; by default the take's name.
    title: Option<String>,
    /// Leave files as they are.
    #[serde(default)]
    conversation_alone: bool,
}

fn promote(call: &Call<'_, TakePath, NoQuery, PromoteBody>) -> Result<Answer<PromoteOutcome>, Problem> {
    let (thread, take, title) = (call.path.thread, call.path.take, call.body.title.clone());
    let move_options = MoveOptions {
        scope: if call.body.conversation_alone { Scope::Conversation } else { Scope::Both },
        ..MoveOptions::default()
    };
    let executed = call.perform((thread, None), PlanRequest::Promote { take, title }, move_options)?;
    let promoted = executed.into_promoted()?;
    let (version, location) = (promoted.source.version, format!("/v1/threads/{}", promoted.promoted.thread));
    Ok(Answer::at(promoted, version).with_location(location))
}
