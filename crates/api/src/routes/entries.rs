//! Entries: list, add, replace, edit, delete.

use std::collections::BTreeSet;
use std::num::ParseIntError;
use std::str::FromStr;

use axum::http::Method;
use data_encoding::BASE64;
use retake_model::entry::{ContextPart, EntryVersion, default_role, from_json};
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::Version;
use retake_timeline::{ChangeOutcome, Command, EntryView, InsertPosition, NewEntry};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::common::{
    DoneOrPreview, EntryPath, MAX_PAGE, Page, TakeDryRunQuery, TakeQuery, ThreadPath, cursor, limit, take_id,
    take_of,
};
use super::threads::EmptyBody;
use crate::endpoint::{Answer, Call, Endpoint, change, delete, get, post};
use crate::problem::{Code, Problem};
use crate::service::Service;

pub(super) const GROUP: &str = "Entries";

/// Maximum entries of one operation, which is built in memory.
const MAX_ENTRIES: usize = 10_000;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/entries", list).about(
            GROUP,
            "List entries",
            "In order, in pages. `version` lists them as they were just after that operation.",
        ),
        post("/v1/threads/{thread}/entries", add).answers_created().about(
            GROUP,
            "Add entries",
            "At the end, or before or after an entry. One operation for all of them.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/entries", replace).about(
            GROUP,
            "Replace all entries of a take",
            "One operation. Entries sent with their id keep their identity.",
        ),
        get("/v1/threads/{thread}/entries/{entry}", show).about(GROUP, "Read an entry", ""),
        change(Method::PATCH, "/v1/threads/{thread}/entries/{entry}", edit).about(
            GROUP,
            "Edit an entry's text or role",
            "Exactly one of `content` and `role`. Time, usage, thinking and unknown fields are preserved.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/entries/{entry}/context", set_context).about(
            GROUP,
            "Remove parts of an entry from the context",
            "Models get a note instead of these parts; the entry keeps them, and an undo reverts it. An empty list adds them again.",
        ),
        delete("/v1/threads/{thread}/entries/{entry}", remove).about(
            GROUP,
            "Delete an entry",
            "Deleting it again has no effect.",
        ),
        post("/v1/threads/{thread}/send-draft", send_draft).about(
            GROUP,
            "Append the draft as an entry",
            "Does not call a model; use POST `turns` for that.",
        ),
        post("/v1/threads/{thread}/truncate", truncate).about(
            GROUP,
            "Keep only the last pairs of entries",
            "",
        ),
        post("/v1/threads/{thread}/clear", clear).about(GROUP, "Remove all entries of a take", ""),
    ]
}

/// An entry as sent by a client: `role`, `content` or `blocks`, and any other fields, which are preserved.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct EntryInput(Box<RawValue>);

impl JsonSchema for EntryInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EntryInput".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let id = generator.subschema_for::<EntryId>();
        json_schema!({
            "type": "object",
            "description": "An entry. Unknown fields are stored unchanged.",
            "properties": {
                "id": {"anyOf": [id, {"type": "null"}], "description": "Id of the entry, if the client chooses it. An id that exists already is refused."},
                "role": {"type": ["string", "null"], "description": "Role of the author; by default the first of the thread's roles."},
                "content": {"type": ["string", "null"], "description": "The text."},
            },
            "additionalProperties": true,
        })
    }
}

impl EntryInput {
    /// Parses the entry.
    pub(crate) fn read(&self, service: &Service, role: &str) -> Result<NewEntry, Problem> {
        #[derive(Deserialize)]
        struct GuardedBody {
            id: Option<EntryId>,
            content: Option<String>,
            blocks: Option<serde::de::IgnoredAny>,
        }
        let now = service.timeline.now();
        let mut version = from_json(self.0.get(), role, now).map_err(Problem::refused)?;
        // `from_json` has refused anything but an object, with a clearer message.
        let given: GuardedBody = serde_json::from_str(self.0.get()).map_err(Problem::refused)?;
        let GuardedBody { id, content, blocks } = given;
        version.extra.remove("id");
        // With blocks, a different `content` is an edit of them that preserves thinking and calls; for blocks without
        // text it only adds the text. Without blocks, the entry was built from `content` already.
        if let Some(content) = content.filter(|content| blocks.is_some() && *content != version.text()) {
            let had_text = version.blocks.iter().any(|block| block.text().is_some());
            let edited = version.edited;
            version = version.with_text(&content, now);
            if !had_text {
                version.edited = edited;
            }
        }
        Ok(NewEntry { id, version, blobs: Vec::new() })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The take; the active one by default.
    take: Option<TakeId>,
    /// List them as they were just after this operation.
    version: Option<u64>,
    /// The same, for a version by name: a number, a saved name or `turn:NUMBER`.
    at: Option<String>,
    /// Only entries of this role, ignoring case; repeat it for several roles.
    #[serde(default)]
    role: Vec<String>,
    /// Page size: 1 to 500, 50 by default. A page of large entries has fewer.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Number of the first entry to list, counted from 1.
    #[schemars(range(min = 1))]
    start: Option<u64>,
    /// `next` of the previous page. All pages show the version of the first one.
    cursor: Option<String>,
}

/// The start of a page, with the version of the thread, so that entries added or removed meanwhile do not shift it.
#[derive(Debug, PartialEq, Eq)]
struct EntryCursor {
    version: Version,
    position: u64,
}

impl std::fmt::Display for EntryCursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.version, self.position)
    }
}

impl FromStr for EntryCursor {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (version, position) = text.split_once('.').unwrap_or((text, ""));
        Ok(Self { version: version.parse()?, position: position.parse()? })
    }
}

impl ListQuery {
    /// The start of the page; without a cursor, in the requested version or the current one.
    fn cursor(&self, current: Version, named: Option<Version>) -> Result<EntryCursor, Problem> {
        match (cursor::<EntryCursor>(self.cursor.as_deref())?, self.start, named) {
            (None, start, version) => {
                let position = start.unwrap_or(1).checked_sub(1);
                let position = position.ok_or_else(|| Problem::invalid("entries are counted from 1"))?;
                Ok(EntryCursor { version: version.unwrap_or(current), position })
            }
            (Some(_), Some(_), _) => Err(Problem::refused("give either `start` or `cursor`, not both")),
            (Some(cursor), None, Some(version)) if cursor.version != version => Err(Problem::refused(
                format!("the cursor belongs to version {}; leave `version` out", cursor.version),
            )),
            (Some(cursor), None, _) => Ok(cursor),
        }
    }
}

/// A page of entries.
#[derive(Serialize, JsonSchema)]
struct Entries {
    /// The take.
    take: TakeId,
    /// Number of entries of the take.
    count: u64,
    #[serde(flatten)]
    page: Page<EntryView>,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<Entries>, Problem> {
    let (query, thread) = (&call.query, call.path.thread);
    let reader = call.service.timeline.read()?;
    let current = reader.thread(thread)?.summary.version;
    let named = match (&query.at, query.version) {
        (Some(_), Some(_)) => return Err(Problem::refused("give either `at` or `version`")),
        (Some(text), None) => Some(reader.history(thread).in_take(query.take).version_named(text)?),
        (None, version) => version,
    };
    let EntryCursor { version, position } = query.cursor(current, named)?;
    let take = take_of(&reader, &reader.state_at(thread, version)?, query.take)?;
    let count = take.entries.len();
    let start = position.min(count);
    let last = start.saturating_add(limit(query.limit, DEFAULT_PAGE, MAX_PAGE)? as u64).min(count);
    let (mut items, end) = reader.entries(thread, &take).page_within(start..last, PAGE_BYTES)?;
    if !query.role.is_empty() {
        items.retain(|view| query.role.iter().any(|role| role.eq_ignore_ascii_case(&view.entry.role)));
    }
    let next = (end < count).then(|| EntryCursor { version, position: end }.to_string());
    Ok(Answer::at(Entries { take: take.id, count, page: Page { items, next } }, current))
}

/// Default page size.
const DEFAULT_PAGE: usize = 50;

/// Maximum bytes of a page, which is built in memory.
const PAGE_BYTES: usize = 8 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddBody {
    /// The entries in order, at most 10,000.
    #[schemars(length(max = 10_000))]
    entries: Vec<EntryInput>,
    /// Add them just before this entry.
    before: Option<EntryId>,
    /// Add them just after this entry.
    after: Option<EntryId>,
    /// Add them before all others.
    #[serde(default)]
    first: bool,
    /// Pictures that the entries refer to, in base64.
    #[serde(default)]
    pictures: Vec<String>,
}

fn add(call: &Call<'_, ThreadPath, TakeQuery, AddBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let (body, thread) = (&call.body, call.path.thread);
    let at = match (body.before, body.after, body.first) {
        (None, None, false) => InsertPosition::End,
        (Some(entry), None, false) => InsertPosition::Before(entry),
        (None, Some(entry), false) => InsertPosition::After(entry),
        (None, None, true) => InsertPosition::Start,
        _ => return Err(Problem::new(Code::Refused, "give at most one of `before`, `after` and `first`")),
    };
    if body.entries.is_empty() {
        return Err(Problem::new(Code::Refused, "`entries` is empty; give at least one"));
    }
    let (mut entries, active) = read_all(call.service, thread, &body.entries)?;
    if let Some(first) = entries.first_mut() {
        first.blobs = pictures(&body.pictures)?;
    }
    let take = call.query.take.unwrap_or(active);
    call.change(thread, Command::AddEntries { take, at, entries })
}

pub(super) fn pictures(texts: &[String]) -> Result<Vec<Vec<u8>>, Problem> {
    let decode = |text: &String| BASE64.decode(text.as_bytes());
    texts
        .iter()
        .map(decode)
        .collect::<Result<_, _>>()
        .map_err(|error| Problem::new(Code::Refused, format!("a picture is not base64: {error}")))
}

/// Parses the entries of a request, and returns them with the active take.
pub(crate) fn read_all(
    service: &Service,
    thread: ThreadId,
    entries: &[EntryInput],
) -> Result<(Vec<NewEntry>, TakeId), Problem> {
    if entries.len() > MAX_ENTRIES {
        let detail = format!("at most {MAX_ENTRIES} entries per request; use an import for more");
        return Err(Problem::new(Code::Refused, detail));
    }
    let reader = service.timeline.read()?;
    let roles = reader.settings(thread).roles()?;
    let role = default_role(&roles);
    let entries = entries.iter().map(|entry| entry.read(service, role)).collect::<Result<_, _>>()?;
    Ok((entries, reader.state(thread)?.active))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplaceBody {
    /// The entries in order, at most 10,000.
    #[schemars(length(max = 10_000))]
    entries: Vec<EntryInput>,
}

fn replace(call: &Call<'_, ThreadPath, TakeQuery, ReplaceBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let thread = call.path.thread;
    let (entries, active) = read_all(call.service, thread, &call.body.entries)?;
    let take = call.query.take.unwrap_or(active);
    call.change(thread, Command::ReplaceEntries { take, entries })
}

/// An entry and its position.
#[derive(Serialize, JsonSchema)]
struct NumberedEntry {
    /// Its position in the take, counted from 1.
    number: u64,
    /// Its id.
    id: EntryId,
    /// The take.
    take: TakeId,
    /// Its content.
    entry: EntryVersion,
}

fn show(call: &Call<'_, EntryPath, TakeQuery>) -> Result<Answer<NumberedEntry>, Problem> {
    let reader = call.service.timeline.read()?;
    let current = reader.thread(call.path.thread)?.summary.version;
    let take = take_of(&reader, &reader.state(call.path.thread)?, call.query.take)?;
    let found = reader.entries(call.path.thread, &take).get(call.path.entry)?;
    let (position, entry) =
        found.ok_or_else(|| Problem::not_found("no such entry in this take; it may have been deleted"))?;
    let shown = NumberedEntry { number: position + 1, id: call.path.entry, take: take.id, entry };
    Ok(Answer::at(shown, current))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditBody {
    /// The new text.
    content: Option<String>,
    /// The new role.
    role: Option<String>,
}

fn edit(call: &Call<'_, EntryPath, TakeQuery, EditBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let (thread, entry) = (call.path.thread, call.path.entry);
    let take = take_id(call.service, thread, call.query.take)?;
    let command = match (&call.body.content, &call.body.role) {
        (Some(text), None) => Command::EditEntry { take, entry, text: text.clone() },
        (None, Some(role)) => Command::ChangeRole { take, entry, role: role.clone() },
        _ => return Err(Problem::new(Code::Refused, "give exactly one of `content` and `role`")),
    };
    call.change(thread, command)
}

fn remove(call: &Call<'_, EntryPath, TakeQuery>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::DeleteEntries { take, entries: vec![call.path.entry] })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendBody {
    /// Role of the author; by default the first of the thread's roles.
    role: Option<String>,
}

fn send_draft(call: &Call<'_, ThreadPath, TakeQuery, SendBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::SendDraft { take, role: call.body.role.clone() })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TruncateBody {
    /// How many of the last pairs of user and AI entries to keep.
    pairs: u64,
}

fn truncate(
    call: &Call<'_, ThreadPath, TakeDryRunQuery, TruncateBody>,
) -> Result<Answer<DoneOrPreview>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    let command = Command::Truncate { take, pairs: call.body.pairs };
    call.change_or_preview(call.path.thread, command, call.query.dry_run)
}

fn clear(call: &Call<'_, ThreadPath, TakeDryRunQuery, EmptyBody>) -> Result<Answer<DoneOrPreview>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change_or_preview(call.path.thread, Command::Clear { take }, call.query.dry_run)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContextBody {
    /// The parts that models do not get; all others are in the context.
    not_in_context: BTreeSet<ContextPart>,
}

fn set_context(call: &Call<'_, EntryPath, TakeQuery, ContextBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let EntryPath { thread, entry } = call.path;
    let reader = call.service.timeline.read()?;
    let take = take_of(&reader, &reader.state(thread)?, call.query.take)?;
    let (position, _) = reader.find().entry(&take, &entry.to_string())?;
    let view = reader.entries(thread, &take).page(position..position + 1)?.into_iter().next();
    let view = view.ok_or_else(|| Problem::not_found("the entry was deleted"))?;
    drop(reader);
    let version = view.entry.with_not_in_context(&call.body.not_in_context);
    call.change(thread, Command::RewriteEntry { take: take.id, entry, version })
}
