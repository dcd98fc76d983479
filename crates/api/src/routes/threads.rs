//! Threads: list, create, rename, tag, delete, restore.

use axum::http::Method;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::state::Visibility;
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_model::time::Timestamp;
use retake_timeline::{
    ChangeOutcome, Command, DeletedFilter, Facet, NewThread, PendingMove, ThreadFilter, ThreadLocations,
    ThreadRow, TreeThread, UndoStatus,
};
use retake_workspace::folder::path_from_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{MAX_PAGE, Page, ThreadPath, invalid_cursor, limit};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, change, delete, get, post};
use crate::problem::Problem;
use crate::service::GitStatus;
use crate::service::environment_at;

pub(super) const GROUP: &str = "Threads";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads", list).about(GROUP, "List threads", "Pinned threads first, then most recently changed."),
        post("/v1/threads", create).answers_created().unversioned().about(
            GROUP,
            "Create a thread",
            "In `project`, or in the project of the server's folder.",
        ),
        get("/v1/threads/summary", summaries).about(
            GROUP,
            "List threads with their workspaces",
            "As `/v1/threads`, with the git status of each folder: branch, head, dirty.",
        ),
        get("/v1/threads/{thread}", show).about(GROUP, "Show a thread", ""),
        delete("/v1/threads/{thread}", delete_thread).about(
            GROUP,
            "Delete a thread",
            "Nothing is destroyed; `restore` brings it back.",
        ),
        post("/v1/threads/{thread}/restore", restore).about(GROUP, "Restore a deleted thread", ""),
        post("/v1/threads/{thread}/rename", rename).about(
            GROUP,
            "Rename a thread",
            "The title must be unique in the project.",
        ),
        post("/v1/threads/{thread}/tags", tag).about(GROUP, "Add and remove tags", ""),
        change(Method::PUT, "/v1/threads/{thread}/pinned", pin).about(GROUP, "Pin or unpin a thread", ""),
        change(Method::PUT, "/v1/threads/{thread}/sharing", share).about(
            GROUP,
            "Set who may see a thread on a hub",
            "Omitted fields do not change. A private thread is never sent \
             to one. Turns still send it to the provider of the model. Not part of history: undo, redo, jump and reset do not change it.",
        ),
        post("/v1/threads/{thread}/current", work_on).about(
            GROUP,
            "Make a thread the current one of its project",
            "Commands use it by default.",
        ),
        get("/v1/tree", tree).about(
            GROUP,
            "List threads with their takes",
            "As a tree: each take has its parent take, each promoted thread its parent thread.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only threads of this project.
    project: Option<ProjectId>,
    /// Deleted threads: `hidden` leaves them out, `only` lists nothing else, `shown` lists all.
    #[serde(default)]
    deleted: DeletedFilter,
    /// Only threads whose title contains this text.
    title: Option<String>,
    /// Only threads with this tag.
    tag: Option<String>,
    /// Only threads with changes made on this git branch.
    branch: Option<String>,
    /// Only threads with changes made at this git commit.
    commit: Option<String>,
    /// Only threads with changes made in this folder.
    directory: Option<String>,
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A thread in a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct ThreadItem {
    /// The project that lists it on this machine.
    home: ProjectId,
    #[serde(flatten)]
    summary: ThreadSummary,
    /// An unfinished move of its files, left by a crash or still running.
    pending_move: Option<PendingMove>,
}

impl ThreadItem {
    /// Finds the pending move of the thread.
    pub(super) fn new(row: ThreadRow, pending: &[PendingMove]) -> Self {
        let pending_move = pending_of(pending, row.summary.id);
        Self { home: row.home, summary: row.summary, pending_move }
    }
}

pub(super) fn pending_of(pending: &[PendingMove], thread: ThreadId) -> Option<PendingMove> {
    pending.iter().find(|pending| pending.thread == thread).cloned()
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<ThreadItem>>, Problem> {
    let page = rows(call)?;
    let pending = call.service.timeline.pending_moves()?;
    let items = page.items.into_iter().map(|row| ThreadItem::new(row, &pending));
    Ok(Answer::of(Page { items: items.collect(), next: page.next }))
}

fn rows(call: &Call<'_, NoPath, ListQuery>) -> Result<Page<ThreadRow>, Problem> {
    let query = &call.query;
    let facets = [
        (Facet::Tag, &query.tag),
        (Facet::Branch, &query.branch),
        (Facet::Commit, &query.commit),
        (Facet::Directory, &query.directory),
    ];
    let filter = ThreadFilter {
        project: query.project,
        deleted: query.deleted,
        facets: facets.into_iter().filter_map(|(facet, text)| Some((facet, text.clone()?))).collect(),
        title: query.title.clone(),
        ..ThreadFilter::default()
    };
    let after = query.cursor.as_deref().map(str::parse).transpose();
    let after = after.map_err(|_| invalid_cursor())?;
    let page = call.service.timeline.threads_page(&filter, after, limit(query.limit, 50, MAX_PAGE)?)?;
    Ok(Page { items: page.items, next: page.next.map(|next| next.to_string()) })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewThreadBody {
    /// The project; by default that of the server's folder.
    project: Option<ProjectId>,
    /// Its title; a free one by default.
    title: Option<String>,
    /// Whether it is never sent to a hub.
    #[serde(default)]
    private: bool,
    /// Make it the current thread of its project, which commands use by default.
    #[serde(default)]
    current: bool,
}

fn create(call: &Call<'_, NoPath, NoQuery, NewThreadBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let body = &call.body;
    let timeline = &call.service.timeline;
    let new = |project| NewThread {
        title: body.title.clone(),
        private: body.private,
        current: body.current,
        ..NewThread::in_project(project)
    };
    let done = if let Some(project) = body.project {
        let project = call.service.projects.known(project)?;
        timeline.create_thread(new(project), call.caller_in(project))?
    } else {
        let project = timeline.project_if_known(&call.service.projects.folder)?;
        let mut caller = call.caller_in(project.id);
        if !project.recorded {
            caller.environment = Some(environment_at(&path_from_text(&project.path)));
        }
        timeline.create_thread_in(&project, new(project.id), caller)?
    };
    let location = format!("/v1/threads/{}", done.thread);
    let version = done.version;
    Ok(Answer::at(done, version).with_location(location))
}

/// A thread in a list, with its workspace.
#[derive(Serialize, JsonSchema)]
struct ThreadWithWorkspace {
    /// The project that lists it on this machine.
    home: ProjectId,
    #[serde(flatten)]
    summary: ThreadSummary,
    /// Git status of its folder; null if the folder is missing.
    workspace: Option<GitStatus>,
    /// An unfinished move of its files, left by a crash or still running.
    pending_move: Option<PendingMove>,
}

fn summaries(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<ThreadWithWorkspace>>, Problem> {
    let page = rows(call)?;
    let pending = call.service.timeline.pending_moves()?;
    let items = page.items.into_iter().map(|row| ThreadWithWorkspace {
        workspace: call.service.projects.git_status(row.home),
        pending_move: pending_of(&pending, row.summary.id),
        home: row.home,
        summary: row.summary,
    });
    Ok(Answer::of(Page { items: items.collect(), next: page.next }))
}

/// A thread.
#[derive(Serialize, JsonSchema)]
struct ThreadAnswer {
    /// The project that lists it on this machine.
    home: ProjectId,
    #[serde(flatten)]
    summary: ThreadSummary,
    /// Time of the last change.
    last_activity: Timestamp,
    /// Commits checked out while it changed, earliest first.
    commits_seen: Vec<String>,
    /// Branches checked out while it changed, earliest first.
    branches_seen: Vec<String>,
    /// Folders in which it changed, earliest first.
    directories_seen: Vec<String>,
    /// Whether undo and redo are possible.
    undo_status: UndoStatus,
    /// The available roles.
    roles: Vec<String>,
    /// Its takes, oldest first; the first 500.
    all_takes: Vec<TakeSummary>,
    /// An unfinished move of its files, left by a crash or still running.
    pending_move: Option<PendingMove>,
}

fn show(call: &Call<'_, ThreadPath>) -> Result<Answer<ThreadAnswer>, Problem> {
    let reader = call.service.timeline.read()?;
    let row = reader.thread(call.path.thread)?;
    let undo_status = reader.history(call.path.thread).undo_status()?;
    let takes = reader.queries().takes_of(row.number)?;
    let version = row.summary.version;
    let pending_move = pending_of(&call.service.timeline.pending_moves()?, row.summary.id);
    let seen = ThreadLocations::of(&reader, &row)?;
    let shown = ThreadAnswer {
        pending_move,
        home: row.home,
        last_activity: row.summary.updated,
        commits_seen: seen.commits,
        branches_seen: seen.branches,
        directories_seen: seen.directories,
        summary: row.summary,
        undo_status,
        roles: reader.settings(call.path.thread).roles()?,
        all_takes: takes.into_iter().take(MAX_PAGE).map(|take| take.summary).collect(),
    };
    Ok(Answer::at(shown, version))
}

fn delete_thread(call: &Call<'_, ThreadPath>) -> Result<Answer<ChangeOutcome>, Problem> {
    call.change(call.path.thread, Command::Delete)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyBody {}

fn restore(call: &Call<'_, ThreadPath, NoQuery, EmptyBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    call.change(call.path.thread, Command::Restore)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenameBody {
    /// The new title.
    title: String,
}

fn rename(call: &Call<'_, ThreadPath, NoQuery, RenameBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    call.change(call.path.thread, Command::Rename { title: call.body.title.clone() })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TagBody {
    /// Tags to add.
    #[serde(default)]
    add: Vec<String>,
    /// Tags to remove.
    #[serde(default)]
    remove: Vec<String>,
}

fn tag(call: &Call<'_, ThreadPath, NoQuery, TagBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let TagBody { add, remove } = &call.body;
    call.change(call.path.thread, Command::Tag { add: add.clone(), remove: remove.clone() })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PinBody {
    /// Whether it is pinned.
    pinned: bool,
}

fn pin(call: &Call<'_, ThreadPath, NoQuery, PinBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    call.change(call.path.thread, Command::Pin { pinned: call.body.pinned })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShareBody {
    /// Who may see it on a hub.
    visibility: Option<Visibility>,
    /// Whether it is never sent to a hub.
    private: Option<bool>,
    /// Whether support may see it on a hub.
    shared_with_support: Option<bool>,
}

fn share(call: &Call<'_, ThreadPath, NoQuery, ShareBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let ShareBody { visibility, private, shared_with_support } = call.body;
    call.change(call.path.thread, Command::Share { visibility, private, shared_with_support })
}

fn work_on(call: &Call<'_, ThreadPath, NoQuery, EmptyBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let thread = call.path.thread;
    let done = call.service.timeline.work_on(thread, call.caller(thread)?)?;
    let version = done.version;
    Ok(Answer::at(done, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TreeQuery {
    /// Only threads of this project.
    project: Option<ProjectId>,
    /// Deleted threads: `hidden`, `only` or `shown`.
    #[serde(default)]
    deleted: DeletedFilter,
    /// Page size: 1 to 500, 100 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

fn tree(call: &Call<'_, NoPath, TreeQuery>) -> Result<Answer<Page<TreeThread>>, Problem> {
    let query = &call.query;
    let after = query.cursor.as_deref().map(str::parse).transpose();
    let after = after.map_err(|_| invalid_cursor())?;
    let limit = limit(query.limit, 100, MAX_PAGE)?;
    let filter = ThreadFilter { project: query.project, deleted: query.deleted, ..ThreadFilter::default() };
    let page = call.service.timeline.tree_page(&filter, after, limit)?;
    Ok(Answer::of(Page { items: page.items, next: page.next.map(|next| next.to_string()) }))
}
