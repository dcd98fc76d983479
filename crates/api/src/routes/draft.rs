//! The draft of a take: unsent text and its pictures.

use axum::http::Method;
use retake_model::content::ContentId;
use retake_model::id::{TakeId, ThreadId};
use retake_model::take::{Attachments, NewPicture};
use retake_timeline::{ChangeOutcome, Command};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{TakeQuery, ThreadPath, take_id, take_of};
use super::entries::pictures;
use super::state::GROUP;
use crate::endpoint::{Answer, Call, Endpoint, change, delete, get, post};
use crate::problem::{Code, Problem};

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/draft", draft).about(
            GROUP,
            "Read the draft",
            "The unsent text and its pictures.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/draft", set).about(
            GROUP,
            "Set the draft",
            "Keeps its pictures. Changes in quick succession are one undo step.",
        ),
        delete("/v1/threads/{thread}/draft", clear).about(
            GROUP,
            "Discard the draft",
            "Its text and pictures; an undo restores both.",
        ),
        post("/v1/threads/{thread}/draft/pictures", attach).about(
            GROUP,
            "Attach pictures to the draft",
            "They are sent with it. A picture that is already attached keeps its position.",
        ),
        delete("/v1/threads/{thread}/draft/pictures/{picture}", detach).about(
            GROUP,
            "Remove a picture from the draft",
            "",
        ),
    ]
}

/// The draft of a take.
#[derive(Serialize, JsonSchema)]
struct Draft {
    /// The take.
    take: TakeId,
    /// The whole text.
    text: String,
    /// The attached pictures.
    pictures: Attachments,
}

fn draft(call: &Call<'_, ThreadPath, TakeQuery>) -> Result<Answer<Draft>, Problem> {
    let reader = call.service.timeline.read()?;
    let version = reader.thread(call.path.thread)?.summary.version;
    let take = take_of(&reader, &reader.state(call.path.thread)?, call.query.take)?;
    Ok(Answer::at(Draft { take: take.id, text: take.draft, pictures: take.attached }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DraftBody {
    /// The whole text.
    text: String,
}

fn set(call: &Call<'_, ThreadPath, TakeQuery, DraftBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::SetDraft { take, text: call.body.text.clone() })
}

fn clear(call: &Call<'_, ThreadPath, TakeQuery>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::ClearDraft { take })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttachBody {
    /// The pictures (png, jpg, gif, webp) and PDF documents, in base64.
    pictures: Vec<String>,
}

fn attach(call: &Call<'_, ThreadPath, TakeQuery, AttachBody>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    let pictures = pictures(&call.body.pictures)?.into_iter().map(NewPicture::new).collect::<Result<_, _>>();
    let pictures = pictures.map_err(|error| Problem::new(Code::Refused, error))?;
    call.change(call.path.thread, Command::Attach { take, pictures })
}

#[derive(Deserialize, JsonSchema)]
struct AttachmentPath {
    /// The thread's id.
    thread: ThreadId,
    /// The picture's content id.
    picture: ContentId,
}

fn detach(call: &Call<'_, AttachmentPath, TakeQuery>) -> Result<Answer<ChangeOutcome>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::Detach { take, picture: call.path.picture })
}
