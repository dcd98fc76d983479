//! Models: compression, comparison of takes, the trace, usage, available providers.

use retake_agent::compare::{Comparison, compare as put_side_by_side};
use retake_agent::provider::live::LiveCache;
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
            "Replace old entries with a summary",
            "The model writes the summary, and the response waits for it. One operation: an undo restores the originals.",
        ),
        get("/v1/threads/{thread}/compare", compare).about(
            GROUP,
            "Compare two takes",
            "The entries of each since they diverged, their cost, and the differences of their files as last recorded.",
        ),
        get("/v1/threads/{thread}/trace", comms).about(
            GROUP,
            "List trace records",
            "Every model request, response and tool call, newest first, without bodies. The trace never contains API keys.",
        ),
        get("/v1/trace/{number}", comm).about(GROUP, "Read a trace record", "With its body."),
        get("/v1/threads/{thread}/usage", thread_usage).about(GROUP, "Show the models that a thread used, and their cost", ""),
        get("/v1/usage", usage).about(
            GROUP,
            "Show disk usage and model cost",
            "Of the whole store.",
        ),
        get("/v1/models", models).about(GROUP, "List providers and models", "With the reason why a provider is not ready. Live models are those that the last `retake models --refresh` found; this request contacts no provider."),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompressBody {
    /// About how many of the last entries to keep. The cut is always just before a user message.
    #[serde(default = "ten")]
    keep: u64,
    /// Provider to use, for this request only.
    provider: Option<String>,
    /// Model that writes the summary, for this request only; `PROVIDER/MODEL` sets both.
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
    // The stop flag cancels the request, so that shutdown does not wait for a summary.
    let compressed = shop.compress(thread, take, Keep::Entries(body.keep), knowing, &call.service.stop)?;
    let version = compressed.version;
    Ok(Answer::at(compressed, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareQuery {
    /// The first take.
    one: TakeId,
    /// The second take; the active one by default.
    other: Option<TakeId>,
    /// How many entries of each take to return: 1 to 500, 100 by default. `entries` lists all of them.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Level of detail for each file.
    #[serde(default)]
    detail: HowMuch,
}

/// Level of detail for each file.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HowMuch {
    /// The kind of change only.
    Paths,
    /// The number of added and removed lines.
    Counts,
    /// The changed lines.
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

/// A comparison of two takes.
#[derive(Serialize, JsonSchema)]
struct Compared {
    #[serde(flatten)]
    comparison: Comparison,
    /// Differences from the files of the first take to those of the second; null if the files of one are unknown. At
    /// most 500 files, fewer if their diffs are large; `stat` counts all, and `diff` lists all.
    files: Option<Changes>,
}

fn compare(call: &Call<'_, ThreadPath, CompareQuery>) -> Result<Answer<Compared>, Problem> {
    let (query, thread) = (&call.query, call.path.thread);
    let looking = call.service.timeline.look()?;
    let version = looking.thread(thread)?.summary.version;
    let state = looking.state(thread)?;
    let (one, other) = (take_of(&looking, &state, Some(query.one))?, take_of(&looking, &state, query.other)?);
    if one.id == other.id {
        return Err(Problem::new(Code::Refused, "both takes are the same; choose another one"));
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
            // The diffs of all files may not fit into memory.
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
    /// Page size: 1 to 500, 20 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A record of the trace: a model request, its response, or a tool call.
#[derive(Serialize, JsonSchema)]
struct CommItem {
    /// Its number; numbers only increase.
    number: i64,
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// Time of the record.
    time: Timestamp,
    /// `request`, `answer`, `error`, `tool_call` or `tool_result`.
    kind: String,
    /// Metadata, such as the model, tokens and duration.
    facts: Value,
    /// The body; null in lists, and if it was purged or redacted.
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
    found.map(Answer::of).ok_or_else(|| Problem::not_found(format!("no trace record {number}")))
}

/// Models that a thread used.
#[derive(Serialize, JsonSchema)]
struct ThreadUsage {
    /// Most used first, as far back as the trace goes.
    models: Vec<ModelUse>,
}

fn thread_usage(call: &Call<'_, ThreadPath>) -> Result<Answer<ThreadUsage>, Problem> {
    let thread = call.path.thread;
    call.service.timeline.look()?.thread(thread)?;
    Ok(Answer::of(ThreadUsage { models: models_used(call.service.timeline.store(), Some(thread))? }))
}

/// Disk usage of the store, and models used.
#[derive(Serialize, JsonSchema)]
struct WholeUsage {
    #[serde(flatten)]
    store: Usage,
    /// Models used by all threads, most used first.
    models: Vec<ModelUse>,
}

fn usage(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<WholeUsage>, Problem> {
    let store = call.service.timeline.store();
    Ok(Answer::of(WholeUsage { store: store.usage()?, models: models_used(store, None)? }))
}

fn models(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<Models>, Problem> {
    let cache = LiveCache::read(call.service.timeline.store().folder());
    Ok(Answer::of(call.service.setup.models(&(call.service.around)(), &cache)))
}
