//! The hook API: a simple interface for scripts that drive one conversation.
//!
//! ```text
//!   /api/session     all entries at once            GET, edit, POST back
//!   /api/fields      properties by name             GET, and PUT the settable ones
//!   /api/callbacks   actions by name                each calls a route of `/v1` with the thread filled in
//! ```
//!
//! The default thread is the current one of the server's project. Every change is the same operation as through `/v1`,
//! and an undo reverts it.

mod callbacks;
mod fields;

use std::collections::BTreeMap;

use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_timeline::{ChangeOutcome, Command, EntryView};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::common::take_of;
use super::entries::{EntryInput, read_all};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get, post};
use crate::problem::{Code, Problem};

const GROUP: &str = "Hooks";

/// Maximum entries of a session; longer ones are read in pages from `/v1`.
const MAX_ENTRIES: u64 = 10_000;

/// Maximum text of a session, because the response is built in memory.
const MAX_BYTES: usize = 32 << 20;

pub(super) fn all() -> Vec<Endpoint> {
    let mut all = vec![
        get("/api/session", session).about(
            GROUP,
            "Read all entries of a conversation",
            "At most 10,000 entries and 32 MiB of text; read longer ones in pages from `/v1/threads/{thread}/entries`.",
        ),
        post("/api/session", replace).about(
            GROUP,
            "Replace all entries of a conversation",
            "Edit the result of GET and send it back: entries keep their identity by `id`, and their other fields are \
             preserved. One operation.",
        ),
    ];
    all.extend(fields::all());
    all.extend(callbacks::all());
    all
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionQuery {
    /// The thread; by default the current thread of the server's project.
    thread: Option<ThreadId>,
    /// The take; the active one by default.
    take: Option<TakeId>,
}

/// An entry with its id and fields in one object.
#[derive(Serialize)]
#[serde(transparent)]
struct SessionEntry(BTreeMap<String, Box<RawValue>>);

impl JsonSchema for SessionEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SessionEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let id = generator.subschema_for::<EntryId>();
        json_schema!({
            "type": "object",
            "description": "An entry: its id and fields.",
            "properties": {
                "id": id,
                "role": {"type": "string", "description": "Role of the author."},
                "content": {"type": "string", "description": "The text."},
                "blocks": {"type": "array", "description": "The full content: text, thinking, tool calls, results, pictures."},
            },
            "required": ["id", "role", "content"],
            "additionalProperties": true,
        })
    }
}

impl TryFrom<EntryView> for SessionEntry {
    type Error = Problem;

    fn try_from(view: EntryView) -> Result<Self, Problem> {
        let internal = |error: serde_json::Error| Problem::new(Code::Internal, error);
        // Through text, because a parsed value would not preserve numbers exactly.
        let text = serde_json::to_string(&view.entry).map_err(internal)?;
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&text).map_err(internal)?;
        // Overwrites an unknown field of that name, which is not the identity.
        fields.insert("id".to_owned(), to_raw_value(&view.id).map_err(internal)?);
        Ok(Self(fields))
    }
}

/// All entries of a conversation.
#[derive(Serialize, JsonSchema)]
struct SessionAnswer {
    session: Session,
}

/// A conversation: one take of a thread.
#[derive(Serialize, JsonSchema)]
struct Session {
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// The thread's version.
    version: Version,
    /// The entries, in order.
    entries: Vec<SessionEntry>,
}

fn session(call: &Call<'_, NoPath, SessionQuery>) -> Result<Answer<SessionAnswer>, Problem> {
    let thread = call.service.resolve_thread(call.query.thread)?;
    let reader = call.service.timeline.read()?;
    let version = reader.thread(thread)?.summary.version;
    let take = take_of(&reader, &reader.state(thread)?, call.query.take)?;
    let count = take.entries.len();
    let too_long = || {
        let detail = format!(
            "the take has {count} entries, which is too much for one response; read them in pages from \
             /v1/threads/{thread}/entries"
        );
        Problem::new(Code::Conflict, detail)
    };
    if count > MAX_ENTRIES {
        return Err(too_long());
    }
    let (views, end) = reader.entries(thread, &take).page_within(0..count, MAX_BYTES)?;
    if end < count {
        return Err(too_long());
    }
    let entries = views.into_iter().map(SessionEntry::try_from).collect::<Result<_, _>>()?;
    let session = Session { thread, take: take.id, version, entries };
    Ok(Answer::at(SessionAnswer { session }, version))
}

#[derive(Deserialize, JsonSchema)]
struct ReplaceBody {
    session: NewSession,
}

/// The new entries. Fields other than `entries` are ignored.
#[derive(Deserialize, JsonSchema)]
struct NewSession {
    /// The entries, in order.
    entries: Vec<EntryInput>,
}

/// The result of a change.
#[derive(Serialize, JsonSchema)]
struct UpdateAnswer {
    /// `updated`, or `unchanged` if nothing differed.
    status: &'static str,
    #[serde(flatten)]
    done: ChangeOutcome,
}

fn replace(call: &Call<'_, NoPath, SessionQuery, ReplaceBody>) -> Result<Answer<UpdateAnswer>, Problem> {
    let thread = call.service.resolve_thread(call.query.thread)?;
    let (entries, active) = read_all(call.service, thread, &call.body.session.entries)?;
    let take = call.query.take.unwrap_or(active);
    Ok(updated(call.change(thread, Command::ReplaceEntries { take, entries })?))
}

fn updated(answer: Answer<ChangeOutcome>) -> Answer<UpdateAnswer> {
    let Answer { body: done, version, location } = answer;
    let status = if done.operation.is_some() { "updated" } else { "unchanged" };
    Answer { body: UpdateAnswer { status, done }, version, location }
}
