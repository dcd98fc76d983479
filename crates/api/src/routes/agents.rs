//! Models: compression, comparison of takes, the trace, usage, available providers.

use retake_agent::compare::{Comparison, MAX_COMPARED_TAKES, compare as compare_takes};
use retake_agent::provider::live::LiveCache;
use retake_agent::setup::{Models, TurnOverrides};
use retake_agent::{CompressOptions, CompressOutcome, ContextSize, KeepRecent, ModelUsage, models_used};
use retake_model::content::ContentId;
use retake_model::id::{TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_store::runtime::{TraceFilter, TraceRecord};
use retake_timeline::StoreUsage;
use retake_timeline::{Changes, DEFAULT_CONTEXT, Detail, DiffOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::{MAX_PAGE, Page, TakeQuery, ThreadPath, cursor, limit, take_id, take_of};
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
        get("/v1/threads/{thread}/context", context).about(
            GROUP,
            "Show what the next request holds",
            "Tokens of the system prompt, tools, context files and each entry, against the model's window.",
        ),
        get("/v1/threads/{thread}/compare", compare).about(
            GROUP,
            "Compare takes",
            "The entries of each since they diverged, aligned by their prompts; their cost; and the differences of their files as last recorded. `other` may be repeated: at most 8 takes.",
        ),
        get("/v1/threads/{thread}/trace", trace).about(
            GROUP,
            "List trace records",
            "Every model request, response and tool call, newest first, without bodies. The trace never contains API keys.",
        ),
        get("/v1/trace/{number}", record).about(GROUP, "Read a trace record", "With its body."),
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
    #[serde(default = "default_keep")]
    keep: u64,
    /// Provider to use, for this request only.
    provider: Option<String>,
    /// Model that writes the summary, for this request only; `PROVIDER/MODEL` sets both.
    model: Option<String>,
}

fn default_keep() -> u64 {
    10
}

fn compress(
    call: &Call<'_, ThreadPath, TakeQuery, CompressBody>,
) -> Result<Answer<CompressOutcome>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let take = take_id(call.service, thread, call.query.take)?;
    let overrides = TurnOverrides {
        provider: body.provider.clone(),
        model: body.model.clone(),
        ..TurnOverrides::default()
    };
    let (runtime, _) = call.runtime(thread, take, &overrides)?;
    let options = CompressOptions { expected: call.expected, request: call.request, turn: None };
    let _permit = call.service.admission.admit_model_request()?;
    // The stop flag cancels the request, so that shutdown does not wait for a summary.
    let compressed =
        runtime.compress(thread, take, KeepRecent::Entries(body.keep), options, &call.service.stop)?;
    let version = compressed.version;
    Ok(Answer::at(compressed, version))
}

fn context(call: &Call<'_, ThreadPath, TakeQuery>) -> Result<Answer<ContextSize>, Problem> {
    let thread = call.path.thread;
    let take = take_id(call.service, thread, call.query.take)?;
    let (runtime, _) = call.runtime(thread, take, &TurnOverrides::default())?;
    Ok(Answer::of(runtime.context_size(thread, take)?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareQuery {
    /// The first take.
    one: TakeId,
    /// The other takes; the active one by default.
    #[serde(default)]
    #[schemars(length(max = 7))]
    other: Vec<TakeId>,
    /// How many entries of each take to return: 1 to 500, 100 by default. `entries` lists all of them.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Level of detail for each file.
    #[serde(default)]
    detail: CompareDetail,
}

/// Level of detail for each file.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CompareDetail {
    /// The kind of change only.
    Paths,
    /// The number of added and removed lines.
    Counts,
    /// The changed lines.
    #[default]
    Lines,
}

impl From<CompareDetail> for Detail {
    fn from(detail: CompareDetail) -> Self {
        match detail {
            CompareDetail::Paths => Self::Paths,
            CompareDetail::Counts => Self::Counts,
            CompareDetail::Lines => Self::Hunks(DEFAULT_CONTEXT),
        }
    }
}

/// A comparison of takes.
#[derive(Serialize, JsonSchema)]
struct ComparedTakes {
    #[serde(flatten)]
    comparison: Comparison,
    /// For each take after the first, the differences of its files from those of the first; null if the files of one are
    /// unknown. At most 500 files, fewer if their diffs are large; `stat` counts all, and `diff` lists all.
    files: Vec<Option<Changes>>,
}

fn compare(call: &Call<'_, ThreadPath, CompareQuery>) -> Result<Answer<ComparedTakes>, Problem> {
    let (query, thread) = (&call.query, call.path.thread);
    let reader = call.service.timeline.read()?;
    let version = reader.thread(thread)?.summary.version;
    let state = reader.state(thread)?;
    let mut takes = vec![take_of(&reader, &state, Some(query.one))?];
    for other in &query.other {
        takes.push(take_of(&reader, &state, Some(*other))?);
    }
    if query.other.is_empty() {
        takes.push(take_of(&reader, &state, None)?);
    }
    if takes.len() > MAX_COMPARED_TAKES {
        return Err(Problem::new(
            Code::Refused,
            format!("at most {MAX_COMPARED_TAKES} takes are compared at once"),
        ));
    }
    if takes.iter().enumerate().any(|(index, take)| takes[..index].iter().any(|other| other.id == take.id)) {
        return Err(Problem::new(Code::Refused, "a take is named twice; choose another one"));
    }
    let most = limit(query.limit, 100, MAX_PAGE)?;
    let takes: Vec<_> = takes.iter().collect();
    let mut comparison = compare_takes(&reader, thread, &takes, &call.service.agent.setup.prices)?;
    for take in &mut comparison.takes {
        take.entries.truncate(most);
    }
    let changes = |one: ContentId, other: ContentId| -> Result<Changes, Problem> {
        let whole = match query.detail {
            CompareDetail::Paths => Detail::Paths,
            CompareDetail::Counts | CompareDetail::Lines => Detail::Counts,
        };
        let whole = reader.snapshot(one).changes(other, &DiffOptions::all(whole))?;
        // The diffs of all files may not fit into memory.
        let options = DiffOptions::all(query.detail.into());
        let some = reader.snapshot(one).changes_page(other, &options, 0, MAX_PAGE)?;
        Ok(Changes { files: some.files, ..whole })
    };
    let mut files = Vec::new();
    if let Some((first, others)) = comparison.takes.split_first() {
        for other in others {
            files.push(first.files.zip(other.files).map(|(one, other)| changes(one, other)).transpose()?);
        }
    }
    Ok(Answer::at(ComparedTakes { comparison, files }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TraceQuery {
    /// Page size: 1 to 500, 20 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A record of the trace: a model request, its response, or a tool call.
#[derive(Serialize, JsonSchema)]
struct TraceItem {
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

impl From<TraceRecord> for TraceItem {
    fn from(record: TraceRecord) -> Self {
        let TraceRecord { number, thread, take, time, kind, facts, body } = record;
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

fn trace(call: &Call<'_, ThreadPath, TraceQuery>) -> Result<Answer<Page<TraceItem>>, Problem> {
    let thread = call.path.thread;
    call.service.timeline.read()?.thread(thread)?;
    let before = cursor::<u64>(call.query.cursor.as_deref())?;
    let before = before.map(|before| i64::try_from(before).unwrap_or(i64::MAX));
    let most = limit(call.query.limit, 20, MAX_PAGE)?;
    let filter = TraceFilter {
        thread: Some(thread),
        numbers: before.map(|before| 0..before),
        last: Some(most as u64 + 1),
        bodies: false,
    };
    let mut items: Vec<TraceItem> = Vec::new();
    call.service.runtime_database.read_trace(&filter, &mut |record| {
        items.push(record.into());
        Ok(())
    })?;
    items.reverse();
    let more = items.len() > most;
    items.truncate(most);
    let next = items.last().filter(|_| more).map(|last| last.number.to_string());
    Ok(Answer::of(Page { items, next }))
}

#[derive(Deserialize, JsonSchema)]
struct TracePath {
    /// The record's number.
    number: i64,
}

fn record(call: &Call<'_, TracePath>) -> Result<Answer<TraceItem>, Problem> {
    let number = call.path.number;
    let filter = TraceFilter {
        numbers: Some(number..number.saturating_add(1)),
        bodies: true,
        ..TraceFilter::default()
    };
    let mut found = None;
    call.service.runtime_database.read_trace(&filter, &mut |record| {
        found = Some(TraceItem::from(record));
        Ok(())
    })?;
    found.map(Answer::of).ok_or_else(|| Problem::not_found(format!("no trace record {number}")))
}

/// Models that a thread used.
#[derive(Serialize, JsonSchema)]
struct ThreadUsage {
    /// Most used first, as far back as the trace goes.
    models: Vec<ModelUsage>,
}

fn thread_usage(call: &Call<'_, ThreadPath>) -> Result<Answer<ThreadUsage>, Problem> {
    let thread = call.path.thread;
    call.service.timeline.read()?.thread(thread)?;
    Ok(Answer::of(ThreadUsage { models: models_used(&call.service.timeline, Some(thread))? }))
}

/// Disk usage of the store, and models used.
#[derive(Serialize, JsonSchema)]
struct UsageReport {
    #[serde(flatten)]
    store: StoreUsage,
    /// Models used by all threads, most used first.
    models: Vec<ModelUsage>,
}

fn usage(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<UsageReport>, Problem> {
    let timeline = &call.service.timeline;
    Ok(Answer::of(UsageReport { store: timeline.store().usage()?, models: models_used(timeline, None)? }))
}

fn models(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<Models>, Problem> {
    let cache = LiveCache::read(call.service.timeline.store().folder());
    Ok(Answer::of(call.service.agent.setup.models(&(call.service.agent.provider_environment)(), &cache)))
}
