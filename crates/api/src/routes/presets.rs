//! Context presets: named lists of context files of a project.

use retake_model::id::ThreadId;
use retake_model::take::FileItem;
use retake_timeline::{ChangeOutcome, ContextPreset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{TakeQuery, ThreadPath, take_id, take_of};
use super::state::GROUP;
use crate::endpoint::{Answer, Call, Endpoint, NoQuery, delete, get, post};
use crate::problem::Problem;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/presets", list).about(
            GROUP,
            "List context presets",
            "Of the thread's project, by name; or those that were deleted or replaced, latest first.",
        ),
        post("/v1/threads/{thread}/presets", save).unversioned().about(
            GROUP,
            "Save a context preset",
            "For all threads of the project. Replaces a preset of the same name, which can be restored. Not an operation, \
             because presets belong to no thread.",
        ),
        post("/v1/threads/{thread}/presets/load", load).about(
            GROUP,
            "Load a context preset",
            "Sets the take's context files to its files. An undo reverts it.",
        ),
        post("/v1/threads/{thread}/presets/restore", restore).unversioned().about(
            GROUP,
            "Restore a context preset",
            "The latest of that name that was deleted or replaced. The current one can be restored in turn. The last 1,000 \
             of a project are stored.",
        ),
        delete("/v1/threads/{thread}/presets/{preset}", remove).unversioned().about(
            GROUP,
            "Delete a context preset",
            "Takes that loaded it keep their files. It can be restored.",
        ),
    ]
}

/// All presets of a project.
#[derive(Serialize, JsonSchema)]
struct Presets {
    /// By name.
    items: Vec<ContextPreset>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// List deleted and replaced presets instead.
    #[serde(default)]
    deleted: bool,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<Presets>, Problem> {
    let (reader, thread) = (call.service.timeline.read()?, call.path.thread);
    let items = if call.query.deleted {
        reader.settings(thread).former_presets()?
    } else {
        reader.settings(thread).presets()?
    };
    Ok(Answer::of(Presets { items }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveBody {
    /// Its name: one line without a slash.
    name: String,
    /// The files; by default the take's context files.
    items: Option<Vec<FileItem>>,
}

fn save(call: &Call<'_, ThreadPath, TakeQuery, SaveBody>) -> Result<Answer<ContextPreset>, Problem> {
    let (timeline, thread) = (&call.service.timeline, call.path.thread);
    let items = if let Some(items) = &call.body.items {
        items.clone()
    } else {
        let reader = timeline.read()?;
        take_of(&reader, &reader.state(thread)?, call.query.take)?.context_files
    };
    Ok(Answer::of(timeline.save_context_preset(thread, &call.body.name, items)?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadBody {
    /// The preset's name.
    name: String,
}

fn load(call: &Call<'_, ThreadPath, TakeQuery, LoadBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let thread = call.path.thread;
    let take = take_id(call.service, thread, call.query.take)?;
    let caller = call.caller(thread)?;
    let done = call.service.timeline.load_context_preset(thread, take, &call.body.name, caller)?;
    let version = done.version;
    Ok(Answer::at(done, version))
}

fn restore(call: &Call<'_, ThreadPath, NoQuery, LoadBody>) -> Result<Answer<ContextPreset>, Problem> {
    let restored = call.service.timeline.restore_context_preset(call.path.thread, &call.body.name)?;
    Ok(Answer::of(restored))
}

#[derive(Deserialize, JsonSchema)]
struct PresetPath {
    /// The thread's id.
    thread: ThreadId,
    /// The preset's name.
    preset: String,
}

fn remove(call: &Call<'_, PresetPath>) -> Result<Answer<ContextPreset>, Problem> {
    Ok(Answer::of(call.service.timeline.delete_context_preset(call.path.thread, &call.path.preset)?))
}
