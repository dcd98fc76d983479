//! Turns: start, observe, steer, approve, interrupt, resume.
//!
//! ```text
//!   POST turns, retry, turn/resume ─► on disk ─► 202         the turn continues in this server and sends events
//!   POST turn/steer, interrupt, approve ─► a message ─►      reaches the turn in any process
//! ```

use retake_agent::approval::ApprovalMode;
use retake_agent::setup::TurnOverrides;
use retake_agent::{
    AgentRuntime, PendingApproval, Reply, ResumeRequest, RetryRequest, SendError, TurnHandle, TurnRequest,
    check_start_commit, pending_approvals,
};
use retake_model::agent::Agent;
use retake_model::command::Prompt;
use retake_model::entry::{EntryVersion, default_role};
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::settings::Effort;
use retake_model::time::Timestamp;
use retake_model::turn::{PartialAnswer, RunningTurn};
use retake_surface::Approve;
use retake_timeline::NewEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Page, TakeQuery, ThreadPath, cursor, limit, shared_changes, take_id, take_of};
use super::entries::pictures;
use super::threads::EmptyBody;
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get, post};
use crate::problem::{Code, Problem};
use crate::service::Service;
use crate::turns::{StartedTurn, TurnJob};
use retake_model::replay::OnConflict;

const GROUP: &str = "Turns";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        post("/v1/threads/{thread}/turns", begin).answers_accepted().about(
            GROUP,
            "Start a turn",
            "Responds when the prompt is on disk; the turn continues in this server, and its events arrive on `/v1/events`. The whole turn, \
             with its file changes, is one undo step. A take other than the active one needs a worktree.",
        ),
        post("/v1/threads/{thread}/retry", retry).answers_accepted().about(
            GROUP,
            "Retry a message",
            "In a new take, with the same or another prompt and model. The fork, its files and the start of the turn are \
             one operation: if any part fails, there is no new take.",
        ),
        get("/v1/threads/{thread}/turn", show).about(
            GROUP,
            "Show the turn of a take",
            "In any process; with the partial response and the calls that wait for approval.",
        ),
        post("/v1/threads/{thread}/turn/steer", steer).unversioned().about(
            GROUP,
            "Steer a running turn",
            "Sends a message to the model before its next request. It becomes an entry.",
        ),
        post("/v1/threads/{thread}/turn/approve", approve).unversioned().about(
            GROUP,
            "Approve or deny a tool call",
            "The first decision counts; later ones get a conflict.",
        ),
        post("/v1/threads/{thread}/turn/interrupt", interrupt).unversioned().about(
            GROUP,
            "Interrupt a turn",
            "Keeps the partial response. Also closes a turn whose process exited or was killed.",
        ),
        post("/v1/threads/{thread}/turn/resume", resume).answers_accepted().about(
            GROUP,
            "Resume a turn that failed, or whose process exited or was killed",
            "A tool that was running is not run again: its result says that it was interrupted.",
        ),
        get("/v1/turns", list).about(GROUP, "List running turns", "In all processes, and turns that a crash left unfinished."),
    ]
}

fn overrides(
    provider: Option<&String>,
    model: Option<&String>,
    effort: Option<Effort>,
    approve: Option<Approve>,
) -> TurnOverrides {
    TurnOverrides {
        provider: provider.cloned(),
        model: model.cloned(),
        effort,
        approve: approve.map(ApprovalMode::from),
    }
}

/// A runtime for a turn, and the settings that the request changes.
type PreparedTurn = (AgentRuntime, Vec<(String, String)>);

impl<P, Q, B> Call<'_, P, Q, B> {
    /// Prepares the runtime for turns of a take.
    pub(super) fn runtime(
        &self,
        thread: ThreadId,
        take: TakeId,
        overrides: &TurnOverrides,
    ) -> Result<PreparedTurn, Problem> {
        let (service, timeline) = (self.service, &self.service.timeline);
        let reader = timeline.read()?;
        let home = reader.thread(thread)?.home;
        let settings = reader.settings(thread).effective()?;
        drop(reader);
        let environment = service.projects.environment(home);
        let turn =
            service.agent.setup.turn_context(timeline, thread, take, self.who.actor.clone(), environment)?;
        let runtime = service.agent.setup.runtime(
            timeline,
            &turn,
            &settings,
            overrides,
            &(service.agent.provider_environment)(),
        )?;
        Ok((runtime, service.agent.setup.changed_settings(&settings, overrides)))
    }

    fn start_turn(&self, job: TurnJob) -> Result<Answer<StartedTurn>, Problem> {
        let started = self.service.turns.begin(job)?;
        let (version, location) = (started.version, format!("/v1/threads/{}/turn", started.thread));
        Ok(Answer::at(started, version).with_location(location))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartBody {
    /// The prompt.
    prompt: Option<String>,
    /// Send the take's draft instead of `prompt`.
    #[serde(default)]
    draft: bool,
    /// Pictures to send with `prompt`, in base64: png, jpg, gif or webp.
    #[serde(default)]
    pictures: Vec<String>,
    /// Refuse unless the commit at which the thread started is checked out.
    #[serde(default)]
    at_start_commit: bool,
    /// Provider to use, for this turn and later ones of the thread.
    provider: Option<String>,
    /// Model to use, for this turn and later ones of the thread; `PROVIDER/MODEL` sets both.
    model: Option<String>,
    /// How hard the model thinks. It holds for the thread from here on.
    effort: Option<Effort>,
    /// Tool calls to allow without asking, in this turn; if absent, as configured.
    approve: Option<Approve>,
}

fn begin(call: &Call<'_, ThreadPath, TakeQuery, StartBody>) -> Result<Answer<StartedTurn>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let take = take_id(call.service, thread, call.query.take)?;
    if body.at_start_commit {
        check_start_commit(&call.service.timeline, thread, take)?;
    }
    let prompt = match (&body.prompt, body.draft) {
        (Some(text), false) => {
            let roles = call.service.timeline.read()?.settings(thread).roles()?;
            message(call, default_role(&roles), text, &body.pictures)?
        }
        (None, true) if body.pictures.is_empty() => Prompt::Draft { role: None },
        (None, true) => {
            return Err(Problem::new(
                Code::Refused,
                "`pictures` need a `prompt`; attach pictures to a draft with POST draft/pictures",
            ));
        }
        _ => return Err(Problem::new(Code::Refused, "give exactly one of `prompt` and `draft`")),
    };
    let overrides = overrides(body.provider.as_ref(), body.model.as_ref(), body.effort, body.approve);
    let (runtime, settings) = call.runtime(thread, take, &overrides)?;
    let request = TurnRequest { prompt, settings, expected: call.expected, request: call.request };
    call.start_turn(Box::new(move |cancel, observer| runtime.run(thread, take, request, cancel, observer)))
}

fn message<P, Q, B>(
    call: &Call<'_, P, Q, B>,
    role: &str,
    text: &str,
    shown: &[String],
) -> Result<Prompt, Problem> {
    let version = EntryVersion::from_text(role, text, call.service.timeline.now());
    let entry = NewEntry::with_pictures(version, pictures(shown)?);
    Ok(Prompt::Entry(entry.map_err(|error| Problem::new(Code::Refused, error))?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryBody {
    /// The user message; the last one by default.
    entry: Option<EntryId>,
    /// Another prompt; by default the same message.
    prompt: Option<String>,
    /// Name of the new take; the next free one by default.
    name: Option<String>,
    /// How to resolve files that do not merge. `fork` with `dry_run` lists them.
    #[serde(default)]
    conflicts: OnConflict,
    /// Also revert changes that may be another command's or tool's, because both ran at the time. By default the retry
    /// is refused, and `fork` with `dry_run` lists them.
    #[serde(default)]
    shared: bool,
    /// Provider to use, for this turn and later ones of the thread.
    provider: Option<String>,
    /// Model to use, for this turn and later ones of the thread; `PROVIDER/MODEL` sets both.
    model: Option<String>,
    /// How hard the model thinks. It holds for the thread from here on.
    effort: Option<Effort>,
    /// Tool calls to allow without asking, in this turn; if absent, as configured.
    approve: Option<Approve>,
}

fn retry(call: &Call<'_, ThreadPath, TakeQuery, RetryBody>) -> Result<Answer<StartedTurn>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let reader = call.service.timeline.read()?;
    let take = take_of(&reader, &reader.state(thread)?, call.query.take)?;
    let at = match body.entry {
        Some(entry) => entry,
        None => reader
            .entries(thread, &take)
            .last_message()?
            .ok_or_else(|| Problem::new(Code::Conflict, "this take has no user message to retry"))?,
    };
    let prompt = match &body.prompt {
        None => Prompt::Original,
        Some(text) => {
            let role =
                reader.entries(thread, &take).get(at)?.map_or_else(String::new, |(_, entry)| entry.role);
            message(call, &role, text, &[])?
        }
    };
    let (on_conflict, shared) = (body.conflicts, shared_changes(body.shared));
    let retry = RetryRequest { from: take.id, at, name: body.name.clone(), on_conflict, shared };
    drop(reader);
    let overrides = overrides(body.provider.as_ref(), body.model.as_ref(), body.effort, body.approve);
    let (runtime, settings) = call.runtime(thread, retry.from, &overrides)?;
    let request = TurnRequest { prompt, settings, expected: call.expected, request: call.request };
    call.start_turn(Box::new(move |cancel, observer| runtime.retry(thread, retry, request, cancel, observer)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeBody {
    /// Provider to use, for this turn and later ones of the thread.
    provider: Option<String>,
    /// Model to use, for this turn and later ones of the thread; `PROVIDER/MODEL` sets both.
    model: Option<String>,
    /// How hard the model thinks. It holds for the thread from here on.
    effort: Option<Effort>,
    /// Tool calls to allow without asking, in this turn; if absent, as configured.
    approve: Option<Approve>,
}

fn resume(call: &Call<'_, ThreadPath, TakeQuery, ResumeBody>) -> Result<Answer<StartedTurn>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let take = take_id(call.service, thread, call.query.take)?;
    let overrides = overrides(body.provider.as_ref(), body.model.as_ref(), body.effort, body.approve);
    let (runtime, settings) = call.runtime(thread, take, &overrides)?;
    let request = ResumeRequest { settings, expected: call.expected, request: call.request };
    call.start_turn(Box::new(move |cancel, observer| runtime.resume(thread, take, request, cancel, observer)))
}

/// The turn of a take.
#[derive(Serialize, JsonSchema)]
struct TurnStatus {
    /// The take.
    take: TakeId,
    /// Whether a turn is running.
    running: bool,
    /// Whether it runs in this server.
    in_this_server: bool,
    /// Its state; null if no turn is running or failed.
    agent: Option<Agent>,
    /// Calls that wait for approval.
    pending_approvals: Vec<PendingApproval>,
    /// The partial response that is not an entry yet.
    partial: Option<PartialAnswer>,
    /// When the turn started or last resumed.
    started: Option<Timestamp>,
    /// The process that runs it.
    process: Option<u32>,
}

fn show(call: &Call<'_, ThreadPath, TakeQuery>) -> Result<Answer<TurnStatus>, Problem> {
    let (service, thread) = (call.service, call.path.thread);
    // Read before the log, so that a turn that ends meanwhile is shown as ended.
    let take = take_id(service, thread, call.query.take)?;
    let running = service.timeline.store().is_turn_running(take)?;
    let record = service.runtime_database.turn(take)?.filter(|_| running);
    let reader = service.timeline.read()?;
    let version = reader.thread(thread)?.summary.version;
    let take = take_of(&reader, &reader.state(thread)?, Some(take))?;
    // The answer may have become an entry since the record was written.
    let partial = match record.as_ref().and_then(|record| record.partial.clone()) {
        Some(partial) if reader.entries(thread, &take).get(partial.entry)?.is_some() => None,
        partial => partial,
    };
    let now = TurnStatus {
        take: take.id,
        running,
        in_this_server: record.as_ref().is_some_and(|record| service.turns.has(record.turn)),
        pending_approvals: if running { pending_approvals(&reader, thread, &take)? } else { Vec::new() },
        agent: match &record {
            Some(record) => take.agent.map(|agent| record.agent(agent)),
            None => take.agent,
        },
        started: record.as_ref().map(|record| record.started),
        process: record.as_ref().map(|record| record.process),
        partial,
    };
    Ok(Answer::at(now, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SteerBody {
    /// The message.
    message: String,
}

/// A message that the turn will receive.
#[derive(Serialize, JsonSchema)]
struct SteerAnswer {
    /// The entry that it will become.
    entry: EntryId,
}

fn steer(call: &Call<'_, ThreadPath, TakeQuery, SteerBody>) -> Result<Answer<SteerAnswer>, Problem> {
    if call.body.message.trim().is_empty() {
        return Err(Problem::new(Code::Refused, "the message is empty"));
    }
    let take = resolve_take(call, call.query.take)?;
    let (sender, message) = (TurnHandle::new(&call.service.timeline)?, &call.body.message);
    let entry = match call.made {
        Some(made) => {
            let entry = EntryId::from_bytes(*made.bytes());
            sender.steer_as(call.path.thread, take, entry, message)?;
            entry
        }
        None => sender.steer(take, message)?,
    };
    Ok(Answer::of(SteerAnswer { entry }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApproveBody {
    /// The call, from `pending_approvals` of `turn`.
    call: String,
    /// Whether it may run.
    allow: bool,
    /// Always allow this exact call in this project.
    #[serde(default)]
    remember: bool,
    /// Reason for the model, if denied.
    reason: Option<String>,
}

/// A decision that the turn will receive.
#[derive(Serialize, JsonSchema)]
struct ApproveAnswer {
    /// The call.
    call: String,
    /// Whether it may run.
    allowed: bool,
}

fn approve(call: &Call<'_, ThreadPath, TakeQuery, ApproveBody>) -> Result<Answer<ApproveAnswer>, Problem> {
    let ApproveBody { call: id, allow: allowed, remember, reason } = &call.body;
    let take = resolve_take(call, call.query.take)?;
    let reply = Reply { allowed: *allowed, remember: *remember, reason: reason.clone() };
    TurnHandle::new(&call.service.timeline)?.decide(call.path.thread, take, id, &reply)?;
    Ok(Answer::of(ApproveAnswer { call: id.clone(), allowed: *allowed }))
}

/// The result of an interrupt.
#[derive(Serialize, JsonSchema)]
struct InterruptAnswer {
    /// Whether a running turn was interrupted; it ends shortly.
    stopped: bool,
    /// Whether an unfinished turn was closed.
    closed: bool,
}

fn interrupt(call: &Call<'_, ThreadPath, TakeQuery, EmptyBody>) -> Result<Answer<InterruptAnswer>, Problem> {
    let take = resolve_take(call, call.query.take)?;
    match TurnHandle::new(&call.service.timeline)?.interrupt(take) {
        Ok(()) => Ok(Answer::of(InterruptAnswer { stopped: true, closed: false })),
        Err(SendError::NoTurnRunning) => {
            let thread = call.path.thread;
            let (runtime, _) = call.runtime(thread, take, &TurnOverrides::default())?;
            if !runtime.close(thread, take)? {
                return Err(SendError::NoTurnRunning.into());
            }
            Ok(Answer::of(InterruptAnswer { stopped: false, closed: true }))
        }
        Err(error) => Err(error.into()),
    }
}

/// The named take of the thread, or the active one.
fn resolve_take<Q, B>(call: &Call<'_, ThreadPath, Q, B>, named: Option<TakeId>) -> Result<TakeId, Problem> {
    let reader = call.service.timeline.read()?;
    Ok(take_of(&reader, &reader.state(call.path.thread)?, named)?.id)
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

/// A running turn, or one that a crash left unfinished.
#[derive(Serialize, JsonSchema)]
struct RunningTurnItem {
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// The turn.
    turn: TurnId,
    /// Start time.
    started: Timestamp,
    /// The process that runs it.
    process: u32,
    /// Whether it is running; if not, its process was killed, and it can be resumed.
    running: bool,
    /// Whether it runs in this server.
    in_this_server: bool,
}

/// Running turns and resumable ones, each with whether it is running.
fn unfinished(service: &Service) -> Result<Vec<(RunningTurn, bool)>, Problem> {
    let mut turns = service.timeline.store().running_turns(&service.runtime_database)?;
    let reader = service.timeline.read()?;
    // A process that dies just after a turn's last step leaves its record, but nothing to resume; so does a purge.
    turns.retain(|(turn, running)| {
        let take = || take_of(&reader, &reader.state(turn.thread)?, Some(turn.take));
        *running || take().is_ok_and(|take| take.agent.is_some_and(|agent| agent.turn == turn.turn))
    });
    Ok(turns)
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<RunningTurnItem>>, Problem> {
    let service = call.service;
    let limit = limit(call.query.limit, 100, 500)?;
    // The last turn of the previous page may have ended; those after it are still found by id.
    let last: Option<TurnId> = cursor(call.query.cursor.as_deref())?;
    let mut turns = unfinished(service)?;
    turns.sort_by_key(|(turn, _)| turn.turn);
    turns.retain(|(turn, _)| last.is_none_or(|last| turn.turn > last));
    let more = turns.len() > limit;
    turns.truncate(limit);
    let next = turns.last().filter(|_| more).map(|(turn, _)| turn.turn.to_string());
    let item = |(turn, running): (RunningTurn, bool)| RunningTurnItem {
        thread: turn.thread,
        take: turn.take,
        turn: turn.turn,
        started: turn.started,
        process: turn.process,
        running,
        in_this_server: running && service.turns.has(turn.turn),
    };
    let items = turns.into_iter().map(item).collect();
    Ok(Answer::of(Page { items, next }))
}
