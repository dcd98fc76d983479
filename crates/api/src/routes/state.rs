//! What a thread and its takes are set to: settings, roles, file lists.

use axum::http::Method;
use retake_model::settings::{Effort, Settings};
use retake_model::take::{FileItem, FileList};
use retake_timeline::{Command, Done};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::common::{OfTake, ThreadPath, take_id, take_of};
use crate::endpoint::{Answer, Call, Endpoint, NoQuery, change, get};
use crate::problem::Problem;

pub(super) const GROUP: &str = "Settings and drafts";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/settings", settings).about(GROUP, "Read the settings", ""),
        change(Method::PATCH, "/v1/threads/{thread}/settings", set).about(
            GROUP,
            "Change settings",
            "Those that are named; one operation. Null sets one back to what is usual.",
        ),
        get("/v1/threads/{thread}/roles", roles).about(GROUP, "Read the roles", ""),
        change(Method::PUT, "/v1/threads/{thread}/roles", set_roles).about(
            GROUP,
            "Say which roles there are",
            "In order; an empty list falls back to User.",
        ),
        get("/v1/threads/{thread}/lists/{list}", files).about(
            GROUP,
            "Read a list of files",
            "`files`, `context_files` or `screenshots` of a take.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/lists/{list}", set_files).about(
            GROUP,
            "Say which files a take names",
            "The whole list.",
        ),
    ]
}

fn settings(call: &Call<'_, ThreadPath>) -> Result<Answer<Settings>, Problem> {
    let looking = call.service.timeline.look()?;
    let version = looking.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(looking.effective_settings(call.path.thread)?, version))
}

/// Settings to change. What is left out stays.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are read by name, from the JSON")]
struct SettingsBody {
    /// The system prompt of the project: of all its threads.
    project_system_prompt: Option<String>,
    /// The system prompt of all the user's projects.
    global_system_prompt: Option<String>,
    /// The base system prompt, in use when `use_default_base_prompt` is off.
    base_system_prompt: Option<String>,
    /// Whether the program's own base prompt is in use.
    use_default_base_prompt: Option<bool>,
    /// Sampling temperature, from 0 to 2.
    temperature: Option<f64>,
    /// Nucleus sampling, from 0 to 1.
    top_p: Option<f64>,
    /// The most tokens that the model may answer with; null for the model's own limit.
    max_tokens: Option<u32>,
    /// Whether an entry before each prompt names the files that were changed since the last turn.
    auto_add_history: Option<bool>,
    /// Who serves the model.
    provider: Option<String>,
    /// Which model answers.
    model: Option<String>,
    /// How hard the model thinks.
    effort: Option<Effort>,
}

/// The names and values that a settings object has. Null is the empty text: back to the usual one.
pub(crate) fn values(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let usual = Settings::default();
    let text = |name: &str, value: &Value| match value {
        Value::Null => usual.get(name).unwrap_or_default(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    fields.iter().map(|(name, value)| (name.clone(), text(name, value))).collect()
}

#[derive(Deserialize)]
#[serde(transparent)]
struct AnySettings(Map<String, Value>);

impl JsonSchema for AnySettings {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SettingsBody::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        SettingsBody::json_schema(generator)
    }
}

fn set(call: &Call<'_, ThreadPath, NoQuery, AnySettings>) -> Result<Answer<Done>, Problem> {
    call.change(call.path.thread, Command::Set { values: values(&call.body.0) })
}

/// The roles of a thread.
#[derive(Serialize, JsonSchema)]
struct Roles {
    /// In the user's order.
    roles: Vec<String>,
}

fn roles(call: &Call<'_, ThreadPath>) -> Result<Answer<Roles>, Problem> {
    let looking = call.service.timeline.look()?;
    let version = looking.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(Roles { roles: looking.effective_roles(call.path.thread)? }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RolesBody {
    /// The roles, in order.
    roles: Vec<String>,
}

fn set_roles(call: &Call<'_, ThreadPath, NoQuery, RolesBody>) -> Result<Answer<Done>, Problem> {
    call.change(call.path.thread, Command::SetRoles { roles: call.body.roles.clone() })
}

#[derive(Deserialize, JsonSchema)]
struct ListPath {
    /// The thread's id.
    thread: retake_model::id::ThreadId,
    /// Which list.
    list: WhichList,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WhichList {
    Files,
    ContextFiles,
    Screenshots,
}

impl From<WhichList> for FileList {
    fn from(list: WhichList) -> Self {
        match list {
            WhichList::Files => Self::Files,
            WhichList::ContextFiles => Self::ContextFiles,
            WhichList::Screenshots => Self::Screenshots,
        }
    }
}

/// A list of files.
#[derive(Serialize, JsonSchema)]
struct Files {
    /// The files, in order.
    items: Vec<FileItem>,
}

fn files(call: &Call<'_, ListPath, OfTake>) -> Result<Answer<Files>, Problem> {
    let looking = call.service.timeline.look()?;
    let version = looking.thread(call.path.thread)?.summary.version;
    let take = take_of(&looking, &looking.state(call.path.thread)?, call.query.take)?;
    let items = match call.path.list {
        WhichList::Files => take.files,
        WhichList::ContextFiles => take.context_files,
        WhichList::Screenshots => take.screenshots,
    };
    Ok(Answer::at(Files { items }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilesBody {
    /// The whole list, in order.
    items: Vec<FileItem>,
}

fn set_files(call: &Call<'_, ListPath, OfTake, FilesBody>) -> Result<Answer<Done>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    let (list, items) = (call.path.list.into(), call.body.items.clone());
    call.change(call.path.thread, Command::SetFiles { take, list, items })
}
