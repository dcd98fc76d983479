//! The view state of entries (collapsed, source), and their pictures.

use axum::http::Method;
use data_encoding::BASE64;
use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_timeline::{DisplayChange, EntrySelection, read_picture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{EntryPath, TakeQuery, ThreadPath};
use super::entries::GROUP;
use crate::endpoint::{Answer, Call, Endpoint, NoQuery, change, get};
use crate::problem::Problem;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        change(Method::PUT, "/v1/threads/{thread}/entries/{entry}/view", set_entry_view).unversioned().about(
            GROUP,
            "Set the view state of an entry",
            "Collapsed or expanded, rendered or source. Stored, but not part of history.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/entries/view", set_take_view).unversioned().about(
            GROUP,
            "Set the view state of all entries of a take",
            "Omitted fields do not change. Stored, but not part of history.",
        ),
        get("/v1/threads/{thread}/pictures/{picture}", picture).about(
            GROUP,
            "Read a picture of an entry or a draft",
            "In base64. Only pictures that the thread shows or once showed.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntryViewBody {
    /// Whether it is collapsed to a preview.
    #[serde(default)]
    collapsed: bool,
    /// Whether its source is shown instead of rendered text.
    #[serde(default)]
    source: bool,
}

/// The view state of an entry.
#[derive(Serialize, JsonSchema)]
struct ViewState {
    /// Whether it is collapsed to a preview.
    collapsed: bool,
    /// Whether its source is shown instead of rendered text.
    source: bool,
}

fn set_entry_view(call: &Call<'_, EntryPath, NoQuery, EntryViewBody>) -> Result<Answer<ViewState>, Problem> {
    let EntryViewBody { collapsed, source } = call.body;
    let showing = DisplayChange { collapsed: Some(collapsed), source: Some(source) };
    let which = EntrySelection::These(vec![call.path.entry]);
    call.service.timeline.set_entry_display(call.path.thread, which, showing)?;
    Ok(Answer::of(ViewState { collapsed, source }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TakeViewBody {
    /// Whether they are collapsed to previews.
    collapsed: Option<bool>,
    /// Whether their source is shown instead of rendered text.
    source: Option<bool>,
}

/// The new view state of all entries of a take.
#[derive(Serialize, JsonSchema)]
struct TakeViewState {
    /// Number of entries.
    entries: u64,
    /// `collapsed` of the request.
    collapsed: Option<bool>,
    /// `source` of the request.
    source: Option<bool>,
}

fn set_take_view(
    call: &Call<'_, ThreadPath, TakeQuery, TakeViewBody>,
) -> Result<Answer<TakeViewState>, Problem> {
    let TakeViewBody { collapsed, source } = call.body;
    if collapsed.is_none() && source.is_none() {
        return Err(Problem::refused("give `collapsed`, `source`, or both"));
    }
    let (which, showing) = (EntrySelection::AllInTake(call.query.take), DisplayChange { collapsed, source });
    let entries = call.service.timeline.set_entry_display(call.path.thread, which, showing)?;
    Ok(Answer::of(TakeViewState { entries, collapsed, source }))
}

#[derive(Deserialize, JsonSchema)]
struct PicturePath {
    /// The thread's id.
    thread: ThreadId,
    /// The picture's content id.
    picture: ContentId,
}

/// The bytes of a picture.
#[derive(Serialize, JsonSchema)]
struct Picture {
    /// Size in bytes.
    bytes: u64,
    /// The bytes, in base64.
    base64: String,
}

fn picture(call: &Call<'_, PicturePath>) -> Result<Answer<Picture>, Problem> {
    let reader = call.service.timeline.read()?;
    if !reader.history(call.path.thread).shows_picture(call.path.picture)? {
        return Err(Problem::not_found("no such picture in this thread or its history"));
    }
    let bytes = read_picture(&reader, call.path.picture)?;
    let bytes = bytes.ok_or_else(|| Problem::not_found("this picture was purged or redacted"))?;
    Ok(Answer::of(Picture { bytes: bytes.len() as u64, base64: BASE64.encode(&bytes) }))
}
