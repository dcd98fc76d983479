//! Properties of a conversation by name, some of them settable.

use std::collections::BTreeMap;

use axum::http::Method;
use retake_model::settings::{NAMES, Settings};
use retake_model::state::ThreadState;
use retake_model::take::{FileItem, FileList, Take};
use retake_timeline::ThreadRow;
use retake_timeline::{Caller, ChangeError, Command, UndoStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::super::common::take_of;
use super::super::state::values;
use super::{GROUP, SessionQuery, UpdateAnswer, updated};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, change, get};
use crate::problem::{Code, Problem};
use crate::service::Service;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/api/fields", list).about(
            GROUP,
            "Read all fields",
            "With a description, and whether it is settable.",
        ),
        get("/api/fields/{field}", read).about(GROUP, "Read a field", ""),
        change(Method::PUT, "/api/fields/{field}", write).about(GROUP, "Set a field", "One operation."),
    ]
}

/// The state that fields are read from.
struct FieldContext {
    row: ThreadRow,
    state: ThreadState,
    roles: Vec<String>,
    take: Take,
    settings: Settings,
    undo_status: UndoStatus,
}

/// Builds the command that sets a field.
type WriteField = fn(&FieldContext, &RawValue) -> Result<Command, serde_json::Error>;

/// A field other than a setting.
struct Field {
    name: &'static str,
    about: &'static str,
    read: fn(&FieldContext) -> Result<Box<RawValue>, serde_json::Error>,
    write: Option<WriteField>,
}

const FIELDS: &[Field] = &[
    Field {
        name: "title",
        about: "The title of the thread.",
        read: |fields| to_raw_value(&fields.row.summary.title),
        write: Some(|_, value| Ok(Command::Rename { title: serde_json::from_str(value.get())? })),
    },
    Field {
        name: "pinned",
        about: "Whether the thread is at the top of lists.",
        read: |fields| to_raw_value(&fields.row.summary.pinned),
        write: Some(|_, value| Ok(Command::Pin { pinned: serde_json::from_str(value.get())? })),
    },
    Field {
        name: "tags",
        about: "The thread's tags.",
        read: |fields| to_raw_value(&fields.row.summary.tags),
        write: Some(|fields, value| {
            let wanted: Vec<String> = serde_json::from_str(value.get())?;
            let had = &fields.row.summary.tags;
            let remove = had.iter().filter(|tag| !wanted.contains(tag)).cloned().collect();
            let add = wanted.into_iter().filter(|tag| !had.contains(tag)).collect();
            Ok(Command::Tag { add, remove })
        }),
    },
    Field {
        name: "private",
        about: "Whether the thread is never sent to a hub. Turns still send it to the provider of the model.",
        read: |fields| to_raw_value(&fields.row.summary.private),
        write: Some(|_, value| {
            let private = Some(serde_json::from_str(value.get())?);
            Ok(Command::Share { visibility: None, private, shared_with_support: None })
        }),
    },
    Field {
        name: "roles",
        about: "The available roles, in order.",
        read: |fields| to_raw_value(&fields.roles),
        write: Some(|_, value| Ok(Command::SetRoles { roles: serde_json::from_str(value.get())? })),
    },
    Field {
        name: "draft",
        about: "The unsent text.",
        read: |fields| to_raw_value(&fields.take.draft),
        write: Some(|fields, value| {
            Ok(Command::SetDraft { take: fields.take.id, text: serde_json::from_str(value.get())? })
        }),
    },
    Field {
        name: "files",
        about: "Files of the take.",
        read: |fields| to_raw_value(&fields.take.files),
        write: Some(|fields, value| set_files(fields, FileList::Files, value)),
    },
    Field {
        name: "context_files",
        about: "Files whose content is sent with the next request.",
        read: |fields| to_raw_value(&fields.take.context_files),
        write: Some(|fields, value| set_files(fields, FileList::ContextFiles, value)),
    },
    Field {
        name: "screenshots",
        about: "Pictures sent with the next request.",
        read: |fields| to_raw_value(&fields.take.screenshots),
        write: Some(|fields, value| set_files(fields, FileList::Screenshots, value)),
    },
    Field {
        name: "thread",
        about: "The thread's id.",
        read: |fields| to_raw_value(&fields.row.summary.id),
        write: None,
    },
    Field {
        name: "project",
        about: "The project that lists the thread.",
        read: |fields| to_raw_value(&fields.row.home),
        write: None,
    },
    Field {
        name: "version",
        about: "The number of operations of the thread.",
        read: |fields| to_raw_value(&fields.row.summary.version),
        write: None,
    },
    Field {
        name: "take",
        about: "The take's id.",
        read: |fields| to_raw_value(&fields.take.id),
        write: None,
    },
    Field {
        name: "take_name",
        about: "The take's name.",
        read: |fields| to_raw_value(&fields.take.name),
        write: None,
    },
    Field {
        name: "active_take",
        about: "The id of the active take. The callback `switch` changes it, with the files.",
        read: |fields| to_raw_value(&fields.state.active),
        write: None,
    },
    Field {
        name: "takes",
        about: "The number of takes.",
        read: |fields| to_raw_value(&fields.row.summary.takes),
        write: None,
    },
    Field {
        name: "entries",
        about: "The number of entries of the take. `/api/session` lists them.",
        read: |fields| to_raw_value(&fields.take.entries.len()),
        write: None,
    },
    Field {
        name: "agent",
        about: "The state of the take's agent; null if no turn is running or failed.",
        read: |fields| to_raw_value(&fields.take.agent),
        write: None,
    },
    Field {
        name: "can_undo",
        about: "Whether an undo is possible.",
        read: |fields| to_raw_value(&fields.undo_status.can_undo),
        write: None,
    },
    Field {
        name: "can_redo",
        about: "Whether a redo is possible.",
        read: |fields| to_raw_value(&fields.undo_status.can_redo),
        write: None,
    },
];

/// Each file is a path, or an object with a `path`, whose other fields are stored unchanged.
fn set_files(fields: &FieldContext, list: FileList, value: &RawValue) -> Result<Command, serde_json::Error> {
    let given: Vec<Box<RawValue>> = serde_json::from_str(value.get())?;
    let item = |one: Box<RawValue>| {
        if one.get().starts_with('"') {
            serde_json::from_str(one.get()).map(|path: String| FileItem::new(path))
        } else {
            serde_json::from_str(one.get())
        }
    };
    let items = given.into_iter().map(item).collect::<Result<_, _>>()?;
    Ok(Command::SetFiles { take: fields.take.id, list, items })
}

fn read_fields(service: &Service, query: &SessionQuery) -> Result<FieldContext, Problem> {
    let thread = service.resolve_thread(query.thread)?;
    let reader = service.timeline.read()?;
    let state = reader.state(thread)?;
    let take = take_of(&reader, &state, query.take)?;
    let (settings, undo_status) = (
        reader.settings(thread).effective_in(&state)?,
        reader.history(thread).in_take(Some(take.id)).undo_status()?,
    );
    let roles = reader.settings(thread).roles()?;
    Ok(FieldContext { row: reader.thread(thread)?, state, roles, take, settings, undo_status })
}

/// A field.
#[derive(Serialize, JsonSchema)]
struct FieldItem {
    /// Its name.
    name: String,
    /// Description.
    about: String,
    /// Whether it is settable.
    settable: bool,
    /// Current value.
    #[schemars(with = "Value")]
    value: Box<RawValue>,
}

/// All fields.
#[derive(Serialize, JsonSchema)]
struct FieldList {
    /// Settings first, then the others.
    fields: Vec<FieldItem>,
}

fn field_items(fields: &FieldContext) -> Result<Vec<FieldItem>, Problem> {
    let internal = |error: serde_json::Error| Problem::new(Code::Internal, error);
    let settings = to_raw_value(&fields.settings).map_err(internal)?;
    let mut settings: BTreeMap<&str, Box<RawValue>> =
        serde_json::from_str(settings.get()).map_err(internal)?;
    let mut all = Vec::new();
    for name in NAMES {
        let value = settings.remove(name).map_or_else(|| to_raw_value(&()), Ok).map_err(internal)?;
        let about = "A setting of the thread.".to_owned();
        all.push(FieldItem { name: name.to_owned(), about, settable: true, value });
    }
    for field in FIELDS {
        all.push(FieldItem {
            name: field.name.to_owned(),
            about: field.about.to_owned(),
            settable: field.write.is_some(),
            value: (field.read)(fields).map_err(internal)?,
        });
    }
    Ok(all)
}

fn list(call: &Call<'_, NoPath, SessionQuery>) -> Result<Answer<FieldList>, Problem> {
    let fields = read_fields(call.service, &call.query)?;
    Ok(Answer::at(FieldList { fields: field_items(&fields)? }, fields.row.summary.version))
}

#[derive(Deserialize, JsonSchema)]
struct FieldPath {
    /// The field's name.
    field: String,
}

fn unknown(name: &str) -> Problem {
    Problem::not_found(format!("no field {name:?}; GET /api/fields lists them"))
}

fn read(call: &Call<'_, FieldPath, SessionQuery>) -> Result<Answer<FieldItem>, Problem> {
    let fields = read_fields(call.service, &call.query)?;
    let found = field_items(&fields)?.into_iter().find(|shown| shown.name == call.path.field);
    let found = found.ok_or_else(|| unknown(&call.path.field))?;
    Ok(Answer::at(found, fields.row.summary.version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteBody {
    /// The new value.
    #[schemars(with = "Value")]
    value: Box<RawValue>,
}

fn write(call: &Call<'_, FieldPath, SessionQuery, WriteBody>) -> Result<Answer<UpdateAnswer>, Problem> {
    loop {
        let fields = read_fields(call.service, &call.query)?;
        let command = command(&fields, &call.path.field, &call.body.value)?;
        let (thread, version) = (fields.row.summary.id, fields.row.summary.version);
        let caller = call.caller(thread)?;
        // The command may depend on the state that was read, so that it is valid only for that version.
        let expecting = Caller { expected: caller.expected.or(Some(version)), ..caller };
        match call.service.timeline.change(thread, command, expecting) {
            Err(ChangeError::Conflict { .. }) if call.expected.is_none() => {}
            done => {
                let done = done?;
                let version = done.version;
                return Ok(updated(Answer::at(done, version)));
            }
        }
    }
}

/// The command that sets a field or a setting.
fn command(fields: &FieldContext, name: &str, value: &RawValue) -> Result<Command, Problem> {
    if NAMES.contains(&name) {
        let value = serde_json::from_str(value.get()).map_err(Problem::refused)?;
        return Ok(Command::Set { values: values(&Map::from_iter([(name.to_owned(), value)])) });
    }
    let field = FIELDS.iter().find(|field| field.name == name).ok_or_else(|| unknown(name))?;
    let write = field.write.ok_or_else(|| Problem::refused(format!("{name} is read-only")))?;
    write(fields, value).map_err(|error| Problem::refused(format!("{name}: {error}")))
}
