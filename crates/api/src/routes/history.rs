//! History: undo, redo, jump, and the list of all that happened.

use retake_model::id::{TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::{
    Command, Differing, Done, Executed, FileReport, Goal, HistoryItem, Looking, Moved, PendingMove,
    PlanRequest, Preview, SavedVersion, Standing, Unit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{
    Ahead, Conflicts, DoneOrPreview, MOST, OfTake, OfTakeAhead, Page, ThreadPath, WhichScope, limit, number,
    take_of,
};
use super::threads::{Nothing, pending_of};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, get, post};
use crate::problem::Problem;

const GROUP: &str = "History";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/history", list).about(
            GROUP,
            "List operations",
            "Newest first, with what is current, undone and redoable.",
        ),
        get("/v1/threads/{thread}/undo-status", standing).about(
            GROUP,
            "Whether undo and redo are possible",
            "In the active take, or in the one that `take` names.",
        ),
        get("/v1/threads/{thread}/compare-versions", between).about(
            GROUP,
            "See what differs between two moments",
            "Entries, drafts, settings, lists and takes, from one operation's state to another's: what a move there would \
             bring and take away, or what an operation did. How files differ is told by `changes`.",
        ),
        post("/v1/threads/{thread}/undo", undo).about(
            GROUP,
            "Take back the last turns",
            "Conversation and files together, unless `halves` says otherwise. One operation; a redo makes it again. Undo, redo \
             and jump move the active take, or the one that `take` names: with its files if it has a worktree, else only \
             over changes without files.",
        ),
        post("/v1/threads/{thread}/patch-undo", patch_undo).about(
            GROUP,
            "Take back the last turns with their files",
            "As `undo` with both halves; refused where files are not kept. Answers path by path.",
        ),
        post("/v1/threads/{thread}/redo", redo).about(GROUP, "Make turns again that were taken back", ""),
        post("/v1/threads/{thread}/jump", jump).about(
            GROUP,
            "Go to any moment",
            "Every state that there ever was can be reached, undone ones too.",
        ),
        post("/v1/threads/{thread}/save", save).about(GROUP, "Give the present moment a name", ""),
        get("/v1/threads/{thread}/saves", saves).about(GROUP, "List the saved versions", "Newest first."),
        post("/v1/sessions", save_session).about(
            GROUP,
            "Save a thread as it is now",
            "Every change is on disk already: this gives the version a name, and answers the saved session. With the `id` \
             of a saved session, that session is saved again: under its name, if no other is given. Earlier versions \
             stay as they were saved. A thread that cannot be read is never replaced by another.",
        ),
        post("/v1/threads/{thread}/reset", reset).about(
            GROUP,
            "Clear a thread",
            "Entries, settings, drafts and file lists of all takes. Prompts that threads share are kept. One undo brings \
             everything back.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Where the last page ended: operations before this version.
    cursor: Option<String>,
    /// The take that tells what is current and redoable; the active one by default.
    take: Option<TakeId>,
}

/// A page of the operations of a thread.
#[derive(Serialize, JsonSchema)]
struct HistoryPage {
    #[serde(flatten)]
    page: Page<HistoryItem>,
    /// A move of the thread's files that has begun and not ended; none as a rule.
    pending_move: Option<PendingMove>,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<HistoryPage>, Problem> {
    let looking = call.service.timeline.look()?;
    let version = looking.thread(call.path.thread)?.summary.version;
    let before = number(call.query.cursor.as_deref())?;
    let (thread, take) = (call.path.thread, call.query.take);
    check_take(&looking, thread, take)?;
    let items = looking.history_in(thread, take, before, limit(call.query.limit, 50, MOST)?)?;
    let next = items.last().map(|last| last.version).filter(|last| *last > 1).map(|last| last.to_string());
    let pending_move = pending_of(&call.service.timeline.pending_moves()?, call.path.thread);
    Ok(Answer::at(HistoryPage { page: Page { items, next }, pending_move }, version))
}

/// Refuses a take that the thread does not have.
fn check_take(looking: &Looking<'_>, thread: ThreadId, take: Option<TakeId>) -> Result<(), Problem> {
    take_of(looking, &looking.state(thread)?, take).map(drop)
}

fn standing(call: &Call<'_, ThreadPath, OfTake>) -> Result<Answer<Standing>, Problem> {
    let looking = call.service.timeline.look()?;
    check_take(&looking, call.path.thread, call.query.take)?;
    let standing = looking.standing_in(call.path.thread, call.query.take)?;
    Ok(Answer::at(standing, standing.version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BetweenQuery {
    /// The operation whose state is looked from; the one before `to` if none is named.
    from: Option<u64>,
    /// The operation whose state is looked to; the present if none is named.
    to: Option<u64>,
    /// How many entries are named at most: 1 to 500, 50 if not said. All are counted.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

fn between(call: &Call<'_, ThreadPath, BetweenQuery>) -> Result<Answer<Differing>, Problem> {
    let (looking, query) = (call.service.timeline.look()?, &call.query);
    let version = looking.thread(call.path.thread)?.summary.version;
    let most = limit(query.limit, 50, MOST)?;
    let to = query.to.unwrap_or(version);
    let from = query.from.unwrap_or_else(|| to.saturating_sub(1).max(1));
    Ok(Answer::at(looking.differing(call.path.thread, [from, to], most)?, version))
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WhichUnit {
    /// Turns: what was done together is undone together.
    #[default]
    Turn,
    /// Single operations.
    Operation,
}

impl From<WhichUnit> for Unit {
    fn from(unit: WhichUnit) -> Self {
        match unit {
            WhichUnit::Turn => Self::Turn,
            WhichUnit::Operation => Self::Operation,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepsBody {
    /// How many steps.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u64,
    /// What a step is.
    #[serde(default)]
    unit: WhichUnit,
    /// What to move.
    #[serde(default)]
    scope: WhichScope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: Conflicts,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn one() -> u64 {
    1
}

/// What came of a move along the log, or would come of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MovedBy {
    #[serde(flatten)]
    moved: Option<Moved>,
    /// Whether nothing was moved, and this is only what would be.
    dry_run: bool,
    /// What would be done to the conversation, where nothing was.
    preview: Option<Preview>,
    /// What became of files, path by path; none where no files are known, or only the conversation moved.
    files: Option<FileReport>,
}

fn undo(call: &Call<'_, ThreadPath, OfTakeAhead, StepsBody>) -> Result<Answer<MovedBy>, Problem> {
    let body = &call.body;
    go(
        call,
        call.path.thread,
        Goal::Undo(body.unit.into(), steps(body.steps)?),
        body.scope,
        (body.conflicts, body.shared),
    )
}

fn redo(call: &Call<'_, ThreadPath, OfTakeAhead, StepsBody>) -> Result<Answer<MovedBy>, Problem> {
    let body = &call.body;
    go(
        call,
        call.path.thread,
        Goal::Redo(body.unit.into(), steps(body.steps)?),
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
    /// How many turns.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    steps: u64,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: Conflicts,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn patch_undo(call: &Call<'_, ThreadPath, OfTakeAhead, PatchUndoBody>) -> Result<Answer<MovedBy>, Problem> {
    // Refused before anything moves where files cannot.
    call.service.needed_desk_of(call.path.thread)?;
    let steps = steps(call.body.steps)?;
    go(
        call,
        call.path.thread,
        Goal::Undo(Unit::Turn, steps),
        WhichScope::Both,
        (call.body.conflicts, call.body.shared),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JumpBody {
    /// The operation whose state becomes current.
    version: u64,
    /// What to move.
    #[serde(default)]
    scope: WhichScope,
    /// How to resolve files that do not merge.
    #[serde(default)]
    conflicts: Conflicts,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default such a move
    /// is refused, and a preview lists them.
    #[serde(default)]
    shared: bool,
}

fn jump(call: &Call<'_, ThreadPath, OfTakeAhead, JumpBody>) -> Result<Answer<MovedBy>, Problem> {
    let body = &call.body;
    go(call, call.path.thread, Goal::Jump(body.version), body.scope, (body.conflicts, body.shared))
}

fn go<P, B>(
    call: &Call<'_, P, OfTakeAhead, B>,
    thread: ThreadId,
    goal: Goal,
    scope: WhichScope,
    (conflicts, shared): (Conflicts, bool),
) -> Result<Answer<MovedBy>, Problem> {
    let (handling, request) = (scope.handling(conflicts, shared), PlanRequest::Move(goal));
    if call.query.dry_run {
        let preview = call.preview((thread, call.query.take), request, handling)?;
        let (version, files) = (preview.version, preview.files.clone());
        let body = MovedBy { dry_run: true, moved: None, preview: Some(preview), files };
        return Ok(Answer::at(body, version));
    }
    let Executed { moved, files, .. } = call.perform((thread, call.query.take), request, handling)?;
    let version = moved.as_ref().map(|moved| moved.done.version);
    Ok(Answer { body: MovedBy { dry_run: false, moved, preview: None, files }, version, location: None })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveBody {
    /// The name.
    name: String,
}

fn save(call: &Call<'_, ThreadPath, NoQuery, SaveBody>) -> Result<Answer<Done>, Problem> {
    save_with_files(call, call.path.thread, call.body.name.clone())
}

/// Saves a version with the files that are there, where files are kept and the folder is there.
fn save_with_files<P, Q, B>(
    call: &Call<'_, P, Q, B>,
    thread: ThreadId,
    name: String,
) -> Result<Answer<Done>, Problem> {
    let place = (call.service.setup.files.as_ref(), None);
    let done = call.service.timeline.save(thread, name, call.caller(thread)?, place)?;
    let version = done.version;
    Ok(Answer::at(done, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SavesQuery {
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Where the last page ended: versions before this one.
    cursor: Option<String>,
}

fn saves(call: &Call<'_, ThreadPath, SavesQuery>) -> Result<Answer<Page<SavedVersion>>, Problem> {
    let looking = call.service.timeline.look()?;
    let version = looking.thread(call.path.thread)?.summary.version;
    let (before, most) = (number(call.query.cursor.as_deref())?, limit(call.query.limit, 50, MOST)?);
    let items = looking.saves(call.path.thread, before, most)?;
    let next = items.last().filter(|_| items.len() == most).map(|last| last.version.to_string());
    Ok(Answer::at(Page { items, next }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionBody {
    /// The session that is saved again: the thread that an earlier answer named.
    id: Option<ThreadId>,
    /// The thread; the same as `id`. The current one of the server's project if neither is given.
    thread: Option<ThreadId>,
    /// A name for the version; that of the last save of `id`, or else the time, if none is given.
    name: Option<String>,
}

/// A session as it was saved.
#[derive(Serialize, JsonSchema)]
struct SavedSession {
    /// What names the session: its thread.
    id: ThreadId,
    /// The name that it was saved under.
    name: String,
    /// The thread's title.
    title: String,
    /// The take that is saved as the active one.
    take: TakeId,
    /// How many entries that take has.
    entries: u64,
    /// When the thread was made.
    created: Timestamp,
    /// When it was saved.
    updated: Timestamp,
    #[serde(flatten)]
    done: Done,
}

fn save_session(call: &Call<'_, NoPath, NoQuery, SessionBody>) -> Result<Answer<SavedSession>, Problem> {
    let body = &call.body;
    let thread = match (body.id, body.thread) {
        (Some(id), Some(thread)) if id != thread => {
            return Err(Problem::refused("id and thread name different threads; give one of them"));
        }
        (Some(thread), _) | (None, Some(thread)) => thread,
        (None, None) => call.service.current_thread()?,
    };
    // Read before anything is written: a session that cannot be read is refused, and not made anew.
    let looking = call.service.timeline.look()?;
    let before = match body.id {
        Some(id) => looking.saves(id, None, 1)?.pop().map(|saved| saved.name),
        None => None,
    };
    drop(looking);
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

fn reset(call: &Call<'_, ThreadPath, Ahead, Nothing>) -> Result<Answer<DoneOrPreview>, Problem> {
    call.change_or_preview(call.path.thread, Command::Reset, call.query.dry_run)
}
