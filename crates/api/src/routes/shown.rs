//! How entries are shown: folded or whole, rendered or as they were written; and the pictures in them.

use axum::http::Method;
use data_encoding::BASE64;
use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_timeline::{Showing, WhichEntries};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{EntryPath, OfTake, ThreadPath};
use super::entries::GROUP;
use crate::endpoint::{Answer, Call, Endpoint, NoQuery, change, get};
use crate::problem::Problem;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        change(Method::PUT, "/v1/threads/{thread}/entries/{entry}/view", one).unversioned().about(
            GROUP,
            "Collapse or expand an entry",
            "Remembered, but not part of history.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/entries/view", all_of_take).unversioned().about(
            GROUP,
            "Collapse or expand all entries of a take",
            "What is left out stays as it is, entry by entry. Remembered, but not part of history.",
        ),
        get("/v1/threads/{thread}/pictures/{picture}", picture).about(
            GROUP,
            "Read a picture of an entry or a draft",
            "The bytes, in base64. Only what the thread shows, or showed at some time.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneBody {
    /// Whether only a preview of it is shown.
    #[serde(default)]
    collapsed: bool,
    /// Whether it is shown as text to be edited.
    #[serde(default)]
    source: bool,
}

/// How an entry is shown.
#[derive(Serialize, JsonSchema)]
struct ShownAs {
    /// Whether only a preview of it is shown.
    collapsed: bool,
    /// Whether it is shown as text to be edited.
    source: bool,
}

fn one(call: &Call<'_, EntryPath, NoQuery, OneBody>) -> Result<Answer<ShownAs>, Problem> {
    let OneBody { collapsed, source } = call.body;
    let showing = Showing { collapsed: Some(collapsed), source: Some(source) };
    let which = WhichEntries::These(vec![call.path.entry]);
    call.service.timeline.show_entries(call.path.thread, which, showing)?;
    Ok(Answer::of(ShownAs { collapsed, source }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AllBody {
    /// Whether only previews of them are shown.
    collapsed: Option<bool>,
    /// Whether they are shown as text to be edited.
    source: Option<bool>,
}

/// How all entries of a take are shown.
#[derive(Serialize, JsonSchema)]
struct AllShownAs {
    /// How many entries there are.
    entries: u64,
    /// Whether only previews of them are shown, if that was said.
    collapsed: Option<bool>,
    /// Whether they are shown as text to be edited, if that was said.
    source: Option<bool>,
}

fn all_of_take(call: &Call<'_, ThreadPath, OfTake, AllBody>) -> Result<Answer<AllShownAs>, Problem> {
    let AllBody { collapsed, source } = call.body;
    if collapsed.is_none() && source.is_none() {
        return Err(Problem::refused("say `collapsed`, `source`, or both"));
    }
    let (which, showing) = (WhichEntries::AllOf(call.query.take), Showing { collapsed, source });
    let entries = call.service.timeline.show_entries(call.path.thread, which, showing)?;
    Ok(Answer::of(AllShownAs { entries, collapsed, source }))
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
    /// How many bytes.
    bytes: u64,
    /// The bytes, in base64.
    base64: String,
}

fn picture(call: &Call<'_, PicturePath>) -> Result<Answer<Picture>, Problem> {
    let looking = call.service.timeline.look()?;
    if !looking.shows_picture(call.path.thread, call.path.picture)? {
        return Err(Problem::not_found("nothing in this thread shows such a picture, or ever did"));
    }
    let bytes = looking.picture(call.path.picture)?;
    let bytes = bytes.ok_or_else(|| Problem::not_found("this picture was destroyed"))?;
    Ok(Answer::of(Picture { bytes: bytes.len() as u64, base64: BASE64.encode(&bytes) }))
}
