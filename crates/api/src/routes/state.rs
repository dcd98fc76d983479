//! Settings, roles and file lists.

use axum::http::Method;
use retake_model::settings::{Effort, Settings};
use retake_model::take::{FileItem, FileList};
use retake_timeline::{ChangeOutcome, Command};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::common::{TakeQuery, ThreadPath, take_id, take_of};
use crate::endpoint::{Answer, Call, Endpoint, NoQuery, change, get};
use crate::problem::Problem;

pub(super) const GROUP: &str = "Settings and drafts";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/settings", settings).about(GROUP, "Read the settings", ""),
        change(Method::PATCH, "/v1/threads/{thread}/settings", set).about(
            GROUP,
            "Change settings",
            "Only those in the body; one operation. Null resets a setting to its default.",
        ),
        get("/v1/threads/{thread}/roles", roles).about(GROUP, "Read the roles", ""),
        change(Method::PUT, "/v1/threads/{thread}/roles", set_roles).about(
            GROUP,
            "Set the roles",
            "In order; an empty list resets them to User.",
        ),
        get("/v1/threads/{thread}/lists/{list}", files).about(
            GROUP,
            "Read a file list",
            "`files`, `context_files` or `screenshots` of a take.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/lists/{list}", set_files).about(
            GROUP,
            "Set a file list",
            "The whole list.",
        ),
    ]
}

fn settings(call: &Call<'_, ThreadPath>) -> Result<Answer<Settings>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(reader.settings(call.path.thread).effective()?, version))
}

/// Settings to change. Omitted fields do not change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are read by name, from the JSON")]
struct SettingsBody {
    /// The system prompt of the project, shared by its threads.
    project_system_prompt: Option<String>,
    /// The system prompt shared by all projects.
    global_system_prompt: Option<String>,
    /// The base system prompt, used if `use_default_base_prompt` is off.
    base_system_prompt: Option<String>,
    /// Whether to use the built-in base prompt.
    use_default_base_prompt: Option<bool>,
    /// Sampling temperature, from 0 to 2.
    temperature: Option<f64>,
    /// Nucleus sampling, from 0 to 1.
    top_p: Option<f64>,
    /// Max output tokens.
    max_tokens: Option<u32>,
    /// Whether to add an entry with the files changed since the last turn before each prompt.
    auto_add_history: Option<bool>,
    /// Provider to use.
    provider: Option<String>,
    /// Model to use.
    model: Option<String>,
    /// How hard the model thinks.
    effort: Option<Effort>,
}

/// The names and values of a settings object. Null becomes the default value.
pub(crate) fn values(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let usual = Settings::default();
    let text = |name: &str, value: &Value| match value {
        Value::Null => usual.get(name).unwrap_or_default(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    fields.iter().map(|(name, value)| (name.clone(), text(name, value))).collect()
}

/// Refuses a value of another type than the document names. Settings are set from text, which would accept a number as
/// the name of a model.
fn check_types(fields: &Map<String, Value>) -> Result<(), Problem> {
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let (fits, expected) = match name.as_str() {
            "use_default_base_prompt" | "auto_add_history" => (value.is_boolean(), "true or false"),
            "temperature" | "top_p" | "max_tokens" => (value.is_number(), "a number"),
            _ => (value.is_string(), "a string"),
        };
        if !fits {
            return Err(Problem::refused(format!("{name} must be {expected} or null")));
        }
    }
    Ok(())
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

fn set(call: &Call<'_, ThreadPath, NoQuery, AnySettings>) -> Result<Answer<ChangeOutcome>, Problem> {
    check_types(&call.body.0)?;
    call.change(call.path.thread, Command::Set { values: values(&call.body.0) })
}

/// The roles of a thread.
#[derive(Serialize, JsonSchema)]
struct Roles {
    /// The roles, in order.
    roles: Vec<String>,
}

fn roles(call: &Call<'_, ThreadPath>) -> Result<Answer<Roles>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(Roles { roles: reader.settings(call.path.thread).roles()? }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RolesBody {
    /// The roles, in order.
    roles: Vec<String>,
}

fn set_roles(call: &Call<'_, ThreadPath, NoQuery, RolesBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    call.change(call.path.thread, Command::SetRoles { roles: call.body.roles.clone() })
}

#[derive(Deserialize, JsonSchema)]
struct ListPath {
    /// The thread's id.
    thread: retake_model::id::ThreadId,
    /// Which list.
    list: FileList,
}

/// A list of files.
#[derive(Serialize, JsonSchema)]
struct Files {
    /// The files, in order.
    items: Vec<FileItem>,
}

fn files(call: &Call<'_, ListPath, TakeQuery>) -> Result<Answer<Files>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    let take = take_of(&reader, &reader.state(call.path.thread)?, call.query.take)?;
    let items = match call.path.list {
        FileList::Files => take.files,
        FileList::ContextFiles => take.context_files,
        FileList::Screenshots => take.screenshots,
    };
    Ok(Answer::at(Files { items }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilesBody {
    /// The whole list, in order.
    items: Vec<FileItem>,
}

fn set_files(call: &Call<'_, ListPath, TakeQuery, FilesBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    let (list, items) = (call.path.list, call.body.items.clone());
    call.change(call.path.thread, Command::SetFiles { take, list, items })
}
