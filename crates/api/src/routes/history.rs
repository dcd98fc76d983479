//! History: list operations, undo, redo, jump, save.

use retake_model::id::{TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::{
    ChangeOutcome, Command, FileReport, Goal, HistoryItem, HistoryMove, PendingMove, PlanOutcome,
    PlanRequest, Preview, Reader, SavedVersion, Turn, TurnName, UndoStatus, Unit, VersionComparison,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{
    DoneOrPreview, DryRunQuery, MAX_PAGE, Page, TakeDryRunQuery, TakeQuery, ThreadPath, cursor, limit,
    move_options, take_of,
};
use super::threads::{EmptyBody, pending_of};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, get, post};
use crate::problem::Problem;
use retake_model::replay::OnConflict;
use retake_timeline::Scope;

const GROUP: &str = "History";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/history", list).about(
            GROUP,
            "List operations",
            "Newest first, marked as current, undone or redoable.",
        ),
        get("/v1/threads/{thread}/turns", turns).about(
            GROUP,
            "List the turns of a take",
            "Newest first: each with its prompt, entries, files, tokens, cost, time and model. `turn:NUMBER` is a revision: the \
             state after its last operation. Undone turns are not listed.",
        ),
        get("/v1/threads/{thread}/turns/{turn}", turn).about(
            GROUP,
            "Show a turn",
            "By its number, or `last`.",
        ),
        get("/v1/threads/{thread}/undo-status", undo_status).about(
            GROUP,
            "Show whether undo and redo are possible",
            "For the active take, or for `take`.",
        ),
        get("/v1/threads/{thread}/compare-versions", compare_versions).about(
            GROUP,
            "Compare two versions of a thread",
            "The differences of entries, drafts, settings, lists and takes: the effect of a move between the versions, or of \
             one operation. For files use `diff`.",
        ),
        post("/v1/threads/{thread}/undo", undo).about(
            GROUP,
            "Undo turns",
            "Reverts conversation and files together, or what `scope` selects. One operation, which a redo reverts. Undo, redo \
             and jump move the active take, or `take`: with its files if it has a worktree, otherwise only across changes \
             without files.",
        ),
        post("/v1/threads/{thread}/patch-undo", patch_undo).about(
            GROUP,
            "Undo turns with their files",
            "As `undo` with `scope` `both`, but refused if file recording is off. Reports each path.",
        ),
        post("/v1/threads/{thread}/redo", redo).about(GROUP, "Redo turns", ""),
        post("/v1/threads/{thread}/jump", jump).about(
            GROUP,
            "Jump to a version",
            "Every version is reachable, including undone ones.",
        ),
        post("/v1/threads/{thread}/save", save).about(GROUP, "Save the current version under a name", ""),
        get("/v1/threads/{thread}/saves", saves).about(GROUP, "List saved versions", "Newest first."),
        post("/v1/sessions", save_session).about(
            GROUP,
            "Save a session",
            "All changes are on disk already: this names the current version of a thread, and returns it as a session. With \
             the `id` of a saved session, saves that one again, under its last name unless `name` is given. Earlier saves \
             stay. A thread that cannot be read is never replaced.",
        ),
        post("/v1/threads/{thread}/reset", reset).about(
            GROUP,
            "Reset a thread",
            "Clears entries, settings, drafts and file lists of all takes, but keeps shared prompts. One undo restores \
             everything.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page: its last version.
    cursor: Option<String>,
    /// The take for which to mark current and redoable operations; the active one by default.
    take: Option<TakeId>,
}

/// A page of the operations of a thread.
#[derive(Serialize, JsonSchema)]
struct HistoryPage {
    #[serde(flatten)]
    page: Page<HistoryItem>,
    /// An unfinished move of the thread's files, left by a crash or still running.
    pending_move: Option<PendingMove>,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<HistoryPage>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    let before = cursor(call.query.cursor.as_deref())?;
    let (thread, take) = (call.path.thread, call.query.take);
    check_take(&reader, thread, take)?;
    let items = reader.history(thread).in_take(take).list(before, limit(call.query.limit, 50, MAX_PAGE)?)?;
    let next = items.last().map(|last| last.version).filter(|last| *last > 1).map(|last| last.to_string());
    let pending_move = pending_of(&call.service.timeline.pending_moves()?, call.path.thread);
    Ok(Answer::at(HistoryPage { page: Page { items, next }, pending_move }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TurnsQuery {
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page: its last number.
    cursor: Option<String>,
    /// The take; the active one by default.
    take: Option<TakeId>,
}

/// A page of the turns of a take.
#[derive(Serialize, JsonSchema)]
struct TurnsPage {
    /// Number of turns of the take.
    count: u64,
    #[serde(flatten)]
    page: Page<Turn>,
}

fn turns(call: &Call<'_, ThreadPath, TurnsQuery>) -> Result<Answer<TurnsPage>, Problem> {
    let reader = call.service.timeline.read()?;
    let (thread, take) = (call.path.thread, call.query.take);
    let version = reader.thread(thread)?.summary.version;
    let before = cursor(call.query.cursor.as_deref())?;
    check_take(&reader, thread, take)?;
    let found = reader.history(thread).in_take(take).turns()?;
    let items = found.list(before, limit(call.query.limit, 50, MAX_PAGE)?)?;
    let next = items.last().map(|last| last.name.number).filter(|last| *last > 1);
    let page = Page { items, next: next.map(|last| last.to_string()) };
    Ok(Answer::at(TurnsPage { count: found.count(), page }, version))
}

#[derive(Deserialize, JsonSchema)]
struct TurnPath {
    /// The thread's id.
    thread: ThreadId,
    /// The turn: its number, or `last`.
    turn: String,
}

fn turn(call: &Call<'_, TurnPath, TakeQuery>) -> Result<Answer<Turn>, Problem> {
    let reader = call.service.timeline.read()?;
    let (thread, take) = (call.path.thread, call.query.take);
    let version = reader.thread(thread)?.summary.version;
    check_take(&reader, thread, take)?;
    let found = reader.history(thread).in_take(take).turns()?.find(&call.path.turn)?;
    Ok(Answer::at(found, version))
}

fn check_take(reader: &Reader<'_>, thread: ThreadId, take: Option<TakeId>) -> Result<(), Problem> {
    take_of(reader, &reader.state(thread)?, take).map(drop)
}

fn undo_status(call: &Call<'_, ThreadPath, TakeQuery>) -> Result<Answer<UndoStatus>, Problem> {
    let reader = call.service.timeline.read()?;
    check_take(&reader, call.path.thread, call.query.take)?;
    let undo_status = reader.history(call.path.thread).in_take(call.query.take).undo_status()?;
    Ok(Answer::at(undo_status, undo_status.version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareVersionsQuery {
    /// The first version; by default the one before `to`.
    from: Option<u64>,
    /// The second version; the current one by default.
    to: Option<u64>,
    /// Maximum number of entries to list: 1 to 500, 50 by default. The counts include all.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

fn compare_versions(
    call: &Call<'_, ThreadPath, CompareVersionsQuery>,
) -> Result<Answer<VersionComparison>, Problem> {
    let (reader, query) = (call.service.timeline.read()?, &call.query);
    let version = reader.thread(call.path.thread)?.summary.version;
    let most = limit(query.limit, 50, MAX_PAGE)?;
    let to = query.to.unwrap_or(version);
    let from = query.from.unwrap_or_else(|| to.saturating_sub(1).max(1));
    Ok(Answer::at(reader.history(call.path.thread).compare([from, to], most)?, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepsBody {
    /// Number of steps; 1 by default.
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: Option<u64>,
    /// Undo everything after this version instead: `turn:NUMBER`, a version or a saved name.
    to: Option<String>,
    /// Unit of a step.
    #[serde(default)]
    unit: Unit,
    /// What to move.
    #[serde(default)]
    scope: Scope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn default_steps() -> u64 {
    1
}

/// The result of a move along the log, or its preview.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MoveAnswer {
    #[serde(flatten)]
    moved: Option<HistoryMove>,
    /// Whether this is a preview: nothing was moved.
    dry_run: bool,
    /// The preview of the conversation, if this is one.
    preview: Option<Preview>,
    /// The result for each path; null if no files are recorded or only the conversation moved.
    files: Option<FileReport>,
    /// The turns whose prompts were undone (newest first) or redone (oldest first); `preview.turns` in a preview.
    turns: Vec<TurnName>,
}

fn undo(call: &Call<'_, ThreadPath, TakeDryRunQuery, StepsBody>) -> Result<Answer<MoveAnswer>, Problem> {
    let body = &call.body;
    let goal = match (&body.to, body.steps) {
        (Some(_), Some(_)) => return Err(Problem::refused("give either `steps` or `to`")),
        (Some(text), None) => {
            let reader = call.service.timeline.read()?;
            let (thread, take) = (call.path.thread, call.query.take);
            check_take(&reader, thread, take)?;
            let version = reader.history(thread).in_take(take).version_named(text)?;
            Goal::UndoTo(body.unit, version)
        }
        (None, count) => Goal::Undo(body.unit, steps(count.unwrap_or(1))?),
    };
    perform_move(call, call.path.thread, goal, body.scope, (body.conflicts, body.shared))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedoBody {
    /// Number of steps.
    #[serde(default = "default_steps")]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u64,
    /// Unit of a step.
    #[serde(default)]
    unit: Unit,
    /// What to move.
    #[serde(default)]
    scope: Scope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn redo(call: &Call<'_, ThreadPath, TakeDryRunQuery, RedoBody>) -> Result<Answer<MoveAnswer>, Problem> {
    let body = &call.body;
    perform_move(
        call,
        call.path.thread,
        Goal::Redo(body.unit, steps(body.steps)?),
        body.scope,
        (body.conflicts, body.shared),
    )
}

fn steps(asked: u64) -> Result<u64, Problem> {
    match asked {
        steps @ 1..=1_000_000 => Ok(steps),
        _ => Err(Problem::invalid("steps must be from 1 to 1000000")),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PatchUndoBody {
    /// Number of turns.
    #[serde(default = "default_steps")]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u64,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn patch_undo(
    call: &Call<'_, ThreadPath, TakeDryRunQuery, PatchUndoBody>,
) -> Result<Answer<MoveAnswer>, Problem> {
    // Refuse before anything moves if file recording is off.
    call.service.require_working_copy(call.path.thread)?;
    let steps = steps(call.body.steps)?;
    perform_move(
        call,
        call.path.thread,
        Goal::Undo(Unit::Turn, steps),
        Scope::Both,
        (call.body.conflicts, call.body.shared),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JumpBody {
    /// The version to jump to.
    version: u64,
    /// What to move.
    #[serde(default)]
    scope: Scope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn jump(call: &Call<'_, ThreadPath, TakeDryRunQuery, JumpBody>) -> Result<Answer<MoveAnswer>, Problem> {
    let body = &call.body;
    perform_move(call, call.path.thread, Goal::Jump(body.version), body.scope, (body.conflicts, body.shared))
}

fn perform_move<P, B>(
    call: &Call<'_, P, TakeDryRunQuery, B>,
    thread: ThreadId,
    goal: Goal,
    scope: Scope,
    (conflicts, shared): (OnConflict, bool),
) -> Result<Answer<MoveAnswer>, Problem> {
    let (move_options, request) = (move_options(scope, conflicts, shared), PlanRequest::Move(goal));
    if call.query.dry_run {
        let preview = call.preview((thread, call.query.take), request, move_options)?;
        let (version, files) = (preview.version, preview.files.clone());
        let body =
            MoveAnswer { dry_run: true, moved: None, preview: Some(preview), files, turns: Vec::new() };
        return Ok(Answer::at(body, version));
    }
    let PlanOutcome { moved, files, .. } = call.perform((thread, call.query.take), request, move_options)?;
    let version = moved.as_ref().map(|moved| moved.done.version);
    // The move is durable: its turns are named as far as they can be read.
    let turns = match &moved {
        Some(moved) => {
            let reader = call.service.timeline.read()?;
            reader.history(thread).in_take(call.query.take).turns_moved(moved).unwrap_or_default()
        }
        None => Vec::new(),
    };
    let body = MoveAnswer { dry_run: false, moved, preview: None, files, turns };
    Ok(Answer { body, version, location: None })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveBody {
    /// The name.
    name: String,
}

fn save(call: &Call<'_, ThreadPath, NoQuery, SaveBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    save_with_files(call, call.path.thread, call.body.name.clone())
}

/// Saves a version, with the current files if file recording is on and the folder exists.
fn save_with_files<P, Q, B>(
    call: &Call<'_, P, Q, B>,
    thread: ThreadId,
    name: String,
) -> Result<Answer<ChangeOutcome>, Problem> {
    let folder_options = (call.service.agent.setup.files.as_ref(), None);
    let done = call.service.timeline.save(thread, name, call.caller(thread)?, folder_options)?;
    let version = done.version;
    Ok(Answer::at(done, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SavesQuery {
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page: its last version.
    cursor: Option<String>,
}

fn saves(call: &Call<'_, ThreadPath, SavesQuery>) -> Result<Answer<Page<SavedVersion>>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    let (before, most) = (cursor(call.query.cursor.as_deref())?, limit(call.query.limit, 50, MAX_PAGE)?);
    let items = reader.history(call.path.thread).saves(before, most)?;
    let next = items.last().filter(|_| items.len() == most).map(|last| last.version.to_string());
    Ok(Answer::at(Page { items, next }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionBody {
    /// The session to save again: `id` of an earlier response.
    id: Option<ThreadId>,
    /// The thread; must equal `id` if both are given. By default the current thread of the server's project.
    thread: Option<ThreadId>,
    /// A name for the version; by default that of the last save of `id`, or the time.
    name: Option<String>,
}

/// A saved session.
#[derive(Serialize, JsonSchema)]
struct SavedSession {
    /// Id of the session, which is its thread.
    id: ThreadId,
    /// The name of the saved version.
    name: String,
    /// The thread's title.
    title: String,
    /// The active take.
    take: TakeId,
    /// Number of entries of that take.
    entries: u64,
    /// Creation time of the thread.
    created: Timestamp,
    /// Time of the save.
    updated: Timestamp,
    #[serde(flatten)]
    done: ChangeOutcome,
}

fn save_session(call: &Call<'_, NoPath, NoQuery, SessionBody>) -> Result<Answer<SavedSession>, Problem> {
    let body = &call.body;
    let thread = match (body.id, body.thread) {
        (Some(id), Some(thread)) if id != thread => {
            return Err(Problem::refused("`id` and `thread` differ; give only one of them"));
        }
        (Some(thread), _) | (None, Some(thread)) => thread,
        (None, None) => call.service.projects.current_thread()?,
    };
    // Read before writing: a session that cannot be read is refused, not created again.
    let reader = call.service.timeline.read()?;
    let before = match body.id {
        Some(id) => reader.history(id).saves(None, 1)?.pop().map(|saved| saved.name),
        None => None,
    };
    drop(reader);
    let now = || format!("session {}", call.service.timeline.now());
    let name = body.name.clone().or(before).unwrap_or_else(now);
    let Answer { body: done, version, location } = save_with_files(call, thread, name.clone())?;
    let summary = done.summary.clone();
    let body = SavedSession {
        id: thread,
        name: name.trim().to_owned(),
        title: summary.title,
        take: summary.active.id,
        entries: summary.active.entries,
        created: summary.created,
        updated: summary.updated,
        done,
    };
    Ok(Answer { body, version, location })
}

fn reset(call: &Call<'_, ThreadPath, DryRunQuery, EmptyBody>) -> Result<Answer<DoneOrPreview>, Problem> {
    call.change_or_preview(call.path.thread, Command::Reset, call.query.dry_run)
}
