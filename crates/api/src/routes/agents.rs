//! What models say and cost: compressing, comparing, the communications log, who can be asked.

use retake_agent::compare::{Comparison, compare as put_side_by_side};
use retake_agent::setup::{Models, Wanted};
use retake_agent::{Compressed, Keep, Knowing, ModelUse, models_used};
use retake_model::id::{TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::store::{Comm, CommFilter, Usage};
use retake_timeline::{Changes, Detail, Question, USUAL_CONTEXT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::{MOST, OfTake, Page, ThreadPath, limit, number, take_id, take_of};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, get, post};
use crate::problem::{Code, Problem};

const GROUP: &str = "Models and cost";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        post("/v1/threads/{thread}/compress", compress).about(
            GROUP,
            "Put a summary in the place of old entries",
            "The model writes it; the answer comes when it has. One operation: an undo brings the originals back.",
        ),
        get("/v1/threads/{thread}/compare", compare).about(
            GROUP,
            "Put two takes side by side",
            "What each said since they parted, what that cost, and how their files differ, as they were last recorded.",
        ),
        get("/v1/threads/{thread}/comms", comms).about(
            GROUP,
            "List what was said to models",
            "Every request, answer and tool call, newest first, without the texts. Keys are never in it.",
        ),
        get("/v1/comms/{number}", comm).about(GROUP, "Read what was said to a model", "The whole record."),
        get("/v1/threads/{thread}/usage", thread_usage).about(GROUP, "What models a thread used, and what that cost", ""),
        get("/v1/usage", usage).about(
            GROUP,
            "How much room the store takes, and what models cost",
            "Over all threads.",
        ),
        get("/v1/models", models).about(GROUP, "Who can be asked", "And what is missing for the others."),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompressBody {
    /// About how many of the last entries stay; the cut is made before a message of the user's.
    #[serde(default = "ten")]
    keep: u64,
    /// Who serves the model, for this once.
    provider: Option<String>,
    /// Which model writes the summary, for this once; `PROVIDER/MODEL` names both.
    model: Option<String>,
}

fn ten() -> u64 {
    10
}

fn compress(call: &Call<'_, ThreadPath, OfTake, CompressBody>) -> Result<Answer<Compressed>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let take = take_id(call.service, thread, call.query.take)?;
    let wanted = Wanted { provider: body.provider.clone(), model: body.model.clone(), ..Wanted::default() };
    let (shop, _) = call.workshop(thread, take, &wanted)?;
    let knowing = Knowing { expected: call.expected, request: call.request, turn: None };
    let _asking = call.service.lanes.ask_model()?;
    // A server that stops does not wait for a summary.
    let compressed = shop.compress(thread, take, Keep::Entries(body.keep), knowing, &call.service.stop)?;
    let version = compressed.version;
    Ok(Answer::at(compressed, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareQuery {
    /// One take.
    one: TakeId,
    /// The other; the active one if none is named.
    other: Option<TakeId>,
    /// How many entries of each are given: 1 to 500, 100 if not said. `entries` has them all, by the page.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// How much is told of each file.
    #[serde(default)]
    detail: HowMuch,
}

/// How much is told of each file.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HowMuch {
    /// What happened to it.
    Paths,
    /// The lines that came and went, counted.
    Counts,
    /// The lines themselves.
    #[default]
    Lines,
}

impl From<HowMuch> for Detail {
    fn from(detail: HowMuch) -> Self {
        match detail {
            HowMuch::Paths => Self::Paths,
            HowMuch::Counts => Self::Counts,
            HowMuch::Lines => Self::Hunks(USUAL_CONTEXT),
        }
    }
}

/// Two takes side by side.
#[derive(Serialize, JsonSchema)]
struct Compared {
    #[serde(flatten)]
    comparison: Comparison,
    /// How the files of the second differ from those of the first; none if the files of one are not known. The first 500,
    /// and fewer where there is very much to say of them; `stat` counts all, and `diff` has them by the page.
    files: Option<Changes>,
}

fn compare(call: &Call<'_, ThreadPath, CompareQuery>) -> Result<Answer<Compared>, Problem> {
    let (query, thread) = (&call.query, call.path.thread);
    let looking = call.service.timeline.look()?;
    let version = looking.thread(thread)?.summary.version;
    let state = looking.state(thread)?;
    let (one, other) = (take_of(&looking, &state, Some(query.one))?, take_of(&looking, &state, query.other)?);
    if one.id == other.id {
        return Err(Problem::new(Code::Refused, "that is the same take twice; name another one"));
    }
    let most = limit(query.limit, 100, MOST)?;
    let mut comparison = put_side_by_side(&looking, thread, [&one, &other], &call.service.setup.prices)?;
    for side in &mut comparison.sides {
        side.entries.truncate(most);
    }
    let files = match comparison.sides.each_ref().map(|side| side.files) {
        [Some(one), Some(other)] => {
            let whole = match query.detail {
                HowMuch::Paths => Detail::Paths,
                HowMuch::Counts | HowMuch::Lines => Detail::Counts,
            };
            let whole = looking.changes(one, other, &Question::all(whole))?;
            // The lines of all files may be more than there is room for.
            let some = looking.some_changes(one, other, &Question::all(query.detail.into()), 0, MOST)?;
            Some(Changes { files: some.files, ..whole })
        }
        _ => None,
    };
    Ok(Answer::at(Compared { comparison, files }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CommsQuery {
    /// How many: 1 to 500, 20 if not said.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// Something that was said to a model, by it, or between it and a tool.
#[derive(Serialize, JsonSchema)]
struct CommItem {
    /// Its number; numbers only grow.
    number: i64,
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// When.
    time: Timestamp,
    /// `request`, `answer`, `error`, `tool_call` or `tool_result`.
    kind: String,
    /// What is known about it.
    facts: Value,
    /// What was said; none in a list, or if it was destroyed.
    body: Option<String>,
}

impl From<Comm> for CommItem {
    fn from(comm: Comm) -> Self {
        let Comm { number, thread, take, time, kind, facts, body } = comm;
        Self {
            number,
            thread,
            take,
            time,
            kind,
            facts: serde_json::from_str(&facts).unwrap_or_default(),
            body,
        }
    }
}

fn comms(call: &Call<'_, ThreadPath, CommsQuery>) -> Result<Answer<Page<CommItem>>, Problem> {
    let thread = call.path.thread;
    call.service.timeline.look()?.thread(thread)?;
    let before = number(call.query.cursor.as_deref())?;
    let before = before.map(|before| i64::try_from(before).unwrap_or(i64::MAX));
    let most = limit(call.query.limit, 20, MOST)?;
    let filter = CommFilter {
        thread: Some(thread),
        numbers: before.map(|before| 0..before),
        last: Some(most as u64 + 1),
        bodies: false,
    };
    let mut items: Vec<CommItem> = Vec::new();
    call.service.ledger.comms(&filter, &mut |comm| {
        items.push(comm.into());
        Ok(())
    })?;
    items.reverse();
    let more = items.len() > most;
    items.truncate(most);
    let next = items.last().filter(|_| more).map(|last| last.number.to_string());
    Ok(Answer::of(Page { items, next }))
}

#[derive(Deserialize, JsonSchema)]
struct CommPath {
    /// The record's number.
    number: i64,
}

fn comm(call: &Call<'_, CommPath>) -> Result<Answer<CommItem>, Problem> {
    let number = call.path.number;
    let filter =
        CommFilter { numbers: Some(number..number.saturating_add(1)), bodies: true, ..CommFilter::default() };
    let mut found = None;
    call.service.ledger.comms(&filter, &mut |comm| {
        found = Some(CommItem::from(comm));
        Ok(())
    })?;
    found.map(Answer::of).ok_or_else(|| Problem::not_found(format!("there is no record {number}")))
}

/// What models were used for.
#[derive(Serialize, JsonSchema)]
struct ThreadUsage {
    /// The most used first, as far as the communications log reaches back.
    models: Vec<ModelUse>,
}

fn thread_usage(call: &Call<'_, ThreadPath>) -> Result<Answer<ThreadUsage>, Problem> {
    let thread = call.path.thread;
    call.service.timeline.look()?.thread(thread)?;
    Ok(Answer::of(ThreadUsage { models: models_used(call.service.timeline.store(), Some(thread))? }))
}

/// How much room the store takes, and what models were used for.
#[derive(Serialize, JsonSchema)]
struct WholeUsage {
    #[serde(flatten)]
    store: Usage,
    /// Models that answered, over all threads, the most used first.
    models: Vec<ModelUse>,
}

fn usage(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<WholeUsage>, Problem> {
    let store = call.service.timeline.store();
    Ok(Answer::of(WholeUsage { store: store.usage()?, models: models_used(store, None)? }))
}

fn models(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<Models>, Problem> {
    Ok(Answer::of(call.service.setup.models(&(call.service.around)())))
}
