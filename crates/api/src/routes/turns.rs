//! Turns: beginning one, looking at what runs, and telling it something.
//!
//! ```text
//!   POST turns, retry, turn/resume ─► on disk ─► 202     the turn goes on in this server; events tell how
//!   POST turn/steer, interrupt, approve ─► a letter ─►   reaches it in whatever process it runs
//! ```

use retake_agent::approval::Mode;
use retake_agent::setup::Wanted;
use retake_agent::{
    Again, Asked, Beginning, Reply, Resuming, Sender, Unreached, Workshop, asked, check_start_commit,
};
use retake_model::agent::Agent;
use retake_model::command::Prompt;
use retake_model::entry::{EntryVersion, default_role};
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_model::settings::Effort;
use retake_model::time::Timestamp;
use retake_model::turn::{PartialAnswer, RunningTurn};
use retake_timeline::NewEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Conflicts, OfTake, Page, ThreadPath, id, limit, shared_changes, take_id, take_of};
use super::entries::pictures;
use super::threads::Nothing;
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get, post};
use crate::problem::{Code, Problem};
use crate::service::Service;
use crate::turns::{Begun, Job};

const GROUP: &str = "Turns";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        post("/v1/threads/{thread}/turns", begin).begins().about(
            GROUP,
            "Ask the agent to do something",
            "Answers when the prompt is on disk; the turn goes on in this server, and `/v1/events` tells how. The whole \
             turn is one step of undo, with the files that it changed. A take that is not the active one needs a folder \
             of its own.",
        ),
        post("/v1/threads/{thread}/retry", retry).begins().about(
            GROUP,
            "Try a message again",
            "In a take of its own: the same or another prompt, the same or another model. Fork, files and the turn's \
             beginning are one operation; where any of it fails, there is no new take.",
        ),
        get("/v1/threads/{thread}/turn", show).about(
            GROUP,
            "See what a take's agent does",
            "In whatever process it runs; with the answer so far, and the calls that wait for a person.",
        ),
        post("/v1/threads/{thread}/turn/steer", steer).unversioned().about(
            GROUP,
            "Tell a running turn something",
            "The model hears it before it is called again. It becomes an entry.",
        ),
        post("/v1/threads/{thread}/turn/approve", approve).unversioned().about(
            GROUP,
            "Decide about a call that waits",
            "Of several who decide, exactly one is heard; the others get a conflict.",
        ),
        post("/v1/threads/{thread}/turn/interrupt", interrupt).unversioned().about(
            GROUP,
            "End a turn",
            "What has arrived is kept. A turn that its program did not live to end is closed.",
        ),
        post("/v1/threads/{thread}/turn/resume", resume).begins().about(
            GROUP,
            "Go on with a turn that failed, or whose program died",
            "A tool that was running then is never run again: the model is told that it was interrupted.",
        ),
        get("/v1/turns", list).about(GROUP, "List turns that run", "In whatever process; also those that a crash left."),
    ]
}

/// What tools may do without being asked about.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Approve {
    /// Look at files; ask about everything else.
    Ask,
    /// Also write files; ask about commands.
    Edits,
    /// Everything.
    All,
    /// Look at files, and nothing else: what would have to be asked about is refused.
    None,
}

impl From<Approve> for Mode {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask => Self::Ask,
            Approve::Edits => Self::AllowEdits,
            Approve::All => Self::AllowAll,
            Approve::None => Self::Deny,
        }
    }
}

fn wanted(
    provider: Option<&String>,
    model: Option<&String>,
    effort: Option<Effort>,
    approve: Option<Approve>,
) -> Wanted {
    Wanted { provider: provider.cloned(), model: model.cloned(), effort, approve: approve.map(Mode::from) }
}

/// Where a turn runs, and the settings that hold from there on.
type Prepared = (Workshop, Vec<(String, String)>);

impl<P, Q, B> Call<'_, P, Q, B> {
    /// Where a take's turns run, by which rules.
    pub(super) fn workshop(
        &self,
        thread: ThreadId,
        take: TakeId,
        wanted: &Wanted,
    ) -> Result<Prepared, Problem> {
        let (service, timeline) = (self.service, &self.service.timeline);
        let looking = timeline.look()?;
        let home = looking.thread(thread)?.home;
        let settings = looking.effective_settings(thread)?;
        drop(looking);
        let surroundings = service.surroundings(home);
        let place = service.setup.place(timeline, thread, take, self.who.actor.clone(), surroundings)?;
        let shop = service.setup.workshop(timeline, &place, &settings, wanted, &(service.around)())?;
        Ok((shop, service.setup.changed(&settings, wanted)))
    }

    fn set_off(&self, job: Job) -> Result<Answer<Begun>, Problem> {
        let begun = self.service.turns.begin(&self.service.shared()?, job)?;
        let (version, location) = (begun.version, format!("/v1/threads/{}/turn", begun.thread));
        Ok(Answer::at(begun, version).found_at(location))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BeginBody {
    /// What to ask.
    prompt: Option<String>,
    /// Send the take's draft instead.
    #[serde(default)]
    draft: bool,
    /// Pictures to show, in base64: png, jpg, gif or webp.
    #[serde(default)]
    pictures: Vec<String>,
    /// Refuse unless the commit that the thread started from is checked out.
    #[serde(default)]
    at_start_commit: bool,
    /// Who serves the model. It holds for the thread from here on.
    provider: Option<String>,
    /// Which model answers; `PROVIDER/MODEL` names both. It holds for the thread from here on.
    model: Option<String>,
    /// How hard the model thinks. It holds for the thread from here on.
    effort: Option<Effort>,
    /// What tools may do without being asked about, in this turn; what is configured if not said.
    approve: Option<Approve>,
}

fn begin(call: &Call<'_, ThreadPath, OfTake, BeginBody>) -> Result<Answer<Begun>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let take = take_id(call.service, thread, call.query.take)?;
    if body.at_start_commit {
        check_start_commit(&call.service.timeline, thread, take)?;
    }
    let prompt = match (&body.prompt, body.draft) {
        (Some(text), false) => {
            let roles = call.service.timeline.look()?.effective_roles(thread)?;
            message(call, default_role(&roles), text, &body.pictures)?
        }
        (None, true) if body.pictures.is_empty() => Prompt::Draft { role: None },
        (None, true) => {
            return Err(Problem::new(
                Code::Refused,
                "`pictures` go with `prompt`; those of a draft are put to it by POST draft/pictures",
            ));
        }
        _ => return Err(Problem::new(Code::Refused, "exactly one of `prompt` and `draft`")),
    };
    let wanted = wanted(body.provider.as_ref(), body.model.as_ref(), body.effort, body.approve);
    let (shop, settings) = call.workshop(thread, take, &wanted)?;
    let beginning = Beginning { prompt, settings, expected: call.expected, request: call.request };
    call.set_off(Box::new(move |cancel, audience| shop.run(thread, take, beginning, cancel, audience)))
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
    /// The message; the last one of the user's if none is named.
    entry: Option<EntryId>,
    /// What to say instead.
    prompt: Option<String>,
    /// What to call the new take; the next free name if none is given.
    name: Option<String>,
    /// What becomes of files that do not merge. `fork` with `dry_run` foretells which do not.
    #[serde(default)]
    conflicts: Conflicts,
    /// Whether changes are undone that were made while another command or tool ran, so that it is not known whose they
    /// are. Otherwise the retry is refused; `fork` with `dry_run` names them.
    #[serde(default)]
    shared: bool,
    /// Who serves the model. It holds for the thread from here on.
    provider: Option<String>,
    /// Which model answers; `PROVIDER/MODEL` names both. It holds for the thread from here on.
    model: Option<String>,
    /// How hard the model thinks. It holds for the thread from here on.
    effort: Option<Effort>,
    /// What tools may do without being asked about, in this turn; what is configured if not said.
    approve: Option<Approve>,
}

fn retry(call: &Call<'_, ThreadPath, OfTake, RetryBody>) -> Result<Answer<Begun>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let looking = call.service.timeline.look()?;
    let take = take_of(&looking, &looking.state(thread)?, call.query.take)?;
    let at = match body.entry {
        Some(entry) => entry,
        None => looking
            .last_message(thread, &take)?
            .ok_or_else(|| Problem::new(Code::Conflict, "this take has no message to try again"))?,
    };
    let prompt = match &body.prompt {
        None => Prompt::Same,
        Some(text) => {
            let role = looking.entry(&take, at)?.map_or_else(String::new, |(_, entry)| entry.role);
            message(call, &role, text, &[])?
        }
    };
    let (on_conflict, shared) = (body.conflicts.into(), shared_changes(body.shared));
    let again = Again { from: take.id, at, name: body.name.clone(), on_conflict, shared };
    drop(looking);
    let wanted = wanted(body.provider.as_ref(), body.model.as_ref(), body.effort, body.approve);
    let (shop, settings) = call.workshop(thread, again.from, &wanted)?;
    let beginning = Beginning { prompt, settings, expected: call.expected, request: call.request };
    call.set_off(Box::new(move |cancel, audience| shop.retry(thread, again, beginning, cancel, audience)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeBody {
    /// Who serves the model. It holds for the thread from here on.
    provider: Option<String>,
    /// Which model answers; `PROVIDER/MODEL` names both. It holds for the thread from here on.
    model: Option<String>,
    /// How hard the model thinks. It holds for the thread from here on.
    effort: Option<Effort>,
    /// What tools may do without being asked about, in this turn; what is configured if not said.
    approve: Option<Approve>,
}

fn resume(call: &Call<'_, ThreadPath, OfTake, ResumeBody>) -> Result<Answer<Begun>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let take = take_id(call.service, thread, call.query.take)?;
    let wanted = wanted(body.provider.as_ref(), body.model.as_ref(), body.effort, body.approve);
    let (shop, settings) = call.workshop(thread, take, &wanted)?;
    let resuming = Resuming { settings, expected: call.expected, request: call.request };
    call.set_off(Box::new(move |cancel, audience| shop.resume(thread, take, resuming, cancel, audience)))
}

/// What a take's agent does.
#[derive(Serialize, JsonSchema)]
struct TurnNow {
    /// The take.
    take: TakeId,
    /// Whether a turn runs in it.
    running: bool,
    /// Whether it runs in this server.
    here: bool,
    /// How far it is; none if nothing runs and nothing failed.
    agent: Option<Agent>,
    /// Calls that wait for a person.
    asked: Vec<Asked>,
    /// What has arrived of an answer that is not an entry yet.
    partial: Option<PartialAnswer>,
    /// When the turn began, or was last gone on with.
    started: Option<Timestamp>,
    /// The process that runs it.
    process: Option<u32>,
}

fn show(call: &Call<'_, ThreadPath, OfTake>) -> Result<Answer<TurnNow>, Problem> {
    let (service, thread) = (call.service, call.path.thread);
    // Asked before the log is: what has ended meanwhile is then seen as ended.
    let take = take_id(service, thread, call.query.take)?;
    let running = service.timeline.store().turn_runs(take)?;
    let record = service.ledger.turn(take)?.filter(|_| running);
    let looking = service.timeline.look()?;
    let version = looking.thread(thread)?.summary.version;
    let take = take_of(&looking, &looking.state(thread)?, Some(take))?;
    // The answer may have become an entry since the record was written.
    let partial = match record.as_ref().and_then(|record| record.partial.clone()) {
        Some(partial) if looking.entry(&take, partial.entry)?.is_some() => None,
        partial => partial,
    };
    let now = TurnNow {
        take: take.id,
        running,
        here: record.as_ref().is_some_and(|record| service.turns.has(record.turn)),
        asked: if running { asked(&looking, thread, &take)? } else { Vec::new() },
        agent: take.agent,
        started: record.as_ref().map(|record| record.started),
        process: record.as_ref().map(|record| record.process),
        partial,
    };
    Ok(Answer::at(now, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SteerBody {
    /// What to tell it.
    message: String,
}

/// A message that will be heard.
#[derive(Serialize, JsonSchema)]
struct Steered {
    /// The entry that it becomes.
    entry: EntryId,
}

fn steer(call: &Call<'_, ThreadPath, OfTake, SteerBody>) -> Result<Answer<Steered>, Problem> {
    if call.body.message.trim().is_empty() {
        return Err(Problem::new(Code::Refused, "there is nothing to tell it"));
    }
    let take = known_take(call, call.query.take)?;
    let (sender, message) = (Sender::new(&call.service.timeline)?, &call.body.message);
    let entry = match call.made {
        Some(made) => {
            let entry = EntryId::from_bytes(*made.bytes());
            sender.steer_as(call.path.thread, take, entry, message)?;
            entry
        }
        None => sender.steer(take, message)?,
    };
    Ok(Answer::of(Steered { entry }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApproveBody {
    /// Which call, as `asked` of `turn` names it.
    call: String,
    /// Whether it may run.
    allow: bool,
    /// Whether this very call need not be asked about again in this project.
    #[serde(default)]
    remember: bool,
    /// What the model is told where it may not.
    reason: Option<String>,
}

/// A decision that is heard.
#[derive(Serialize, JsonSchema)]
struct Approved {
    /// Which call.
    call: String,
    /// Whether it may run.
    allowed: bool,
}

fn approve(call: &Call<'_, ThreadPath, OfTake, ApproveBody>) -> Result<Answer<Approved>, Problem> {
    let ApproveBody { call: id, allow: allowed, remember, reason } = &call.body;
    let take = known_take(call, call.query.take)?;
    let reply = Reply { allowed: *allowed, remember: *remember, reason: reason.clone() };
    Sender::new(&call.service.timeline)?.decide(call.path.thread, take, id, &reply)?;
    Ok(Answer::of(Approved { call: id.clone(), allowed: *allowed }))
}

/// What became of a turn that was to end.
#[derive(Serialize, JsonSchema)]
struct Interrupted {
    /// Whether a turn was running that was told to end; it ends in a moment.
    stopped: bool,
    /// Whether a turn was left unfinished that was closed.
    closed: bool,
}

fn interrupt(call: &Call<'_, ThreadPath, OfTake, Nothing>) -> Result<Answer<Interrupted>, Problem> {
    let take = known_take(call, call.query.take)?;
    match Sender::new(&call.service.timeline)?.interrupt(take) {
        Ok(()) => Ok(Answer::of(Interrupted { stopped: true, closed: false })),
        Err(Unreached::NothingRuns) => {
            let thread = call.path.thread;
            let (shop, _) = call.workshop(thread, take, &Wanted::default())?;
            if !shop.close(thread, take)? {
                return Err(Unreached::NothingRuns.into());
            }
            Ok(Answer::of(Interrupted { stopped: false, closed: true }))
        }
        Err(error) => Err(error.into()),
    }
}

/// A take that the thread has: letters are sent to nobody else's.
fn known_take<Q, B>(call: &Call<'_, ThreadPath, Q, B>, named: Option<TakeId>) -> Result<TakeId, Problem> {
    let looking = call.service.timeline.look()?;
    Ok(take_of(&looking, &looking.state(call.path.thread)?, named)?.id)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// How many: 1 to 500, 100 if not said.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// A turn that runs, or that a crash left.
#[derive(Serialize, JsonSchema)]
struct RunningItem {
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// The turn.
    turn: TurnId,
    /// When it began.
    started: Timestamp,
    /// The process that runs it.
    process: u32,
    /// Whether it runs; if not, its program did not live to end it, and it can be resumed.
    running: bool,
    /// Whether it runs in this server.
    here: bool,
}

/// Turns that run, and those that can be gone on with; each with whether it runs.
fn unfinished(service: &Service) -> Result<Vec<(RunningTurn, bool)>, Problem> {
    let mut turns = service.timeline.store().running(&service.ledger)?;
    let looking = service.timeline.look()?;
    // A program that dies just after a turn's last step leaves its record, but nothing to go on with. A thread that
    // was purged since leaves nothing either.
    turns.retain(|(turn, running)| {
        let take = || take_of(&looking, &looking.state(turn.thread)?, Some(turn.take));
        *running || take().is_ok_and(|take| take.agent.is_some_and(|agent| agent.turn == turn.turn))
    });
    Ok(turns)
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<RunningItem>>, Problem> {
    let service = call.service;
    let limit = limit(call.query.limit, 100, 500)?;
    // Turns end while others read: the last one of the page before may be gone by now.
    let last: Option<TurnId> = id(call.query.cursor.as_deref())?;
    let mut turns = unfinished(service)?;
    turns.sort_by_key(|(turn, _)| turn.turn);
    turns.retain(|(turn, _)| last.is_none_or(|last| turn.turn > last));
    let more = turns.len() > limit;
    turns.truncate(limit);
    let next = turns.last().filter(|_| more).map(|(turn, _)| turn.turn.to_string());
    let item = |(turn, running): (RunningTurn, bool)| RunningItem {
        thread: turn.thread,
        take: turn.take,
        turn: turn.turn,
        started: turn.started,
        process: turn.process,
        running,
        here: running && service.turns.has(turn.turn),
    };
    let items = turns.into_iter().map(item).collect();
    Ok(Answer::of(Page { items, next }))
}
