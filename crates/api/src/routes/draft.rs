//! What is being typed in a take, and the pictures that go along with it.

use axum::http::Method;
use retake_model::content::ContentId;
use retake_model::id::{TakeId, ThreadId};
use retake_model::take::{Attachments, NewPicture};
use retake_timeline::{Command, Done};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{OfTake, ThreadPath, take_id, take_of};
use super::entries::pictures;
use super::state::GROUP;
use crate::endpoint::{Answer, Call, Endpoint, change, delete, get, post};
use crate::problem::{Code, Problem};

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/draft", draft).about(
            GROUP,
            "Read the draft",
            "What is being typed and not yet sent, and which pictures go along.",
        ),
        change(Method::PUT, "/v1/threads/{thread}/draft", set).about(
            GROUP,
            "Record what is being typed",
            "Its pictures stay. Drafts that follow each other within a pause are one step of undo.",
        ),
        delete("/v1/threads/{thread}/draft", clear).about(
            GROUP,
            "Throw the draft away",
            "The text and the pictures; an undo brings both back.",
        ),
        post("/v1/threads/{thread}/draft/pictures", attach).about(
            GROUP,
            "Attach pictures to the draft",
            "They go along when it is sent. One that is attached already stays where it is.",
        ),
        delete("/v1/threads/{thread}/draft/pictures/{picture}", detach).about(
            GROUP,
            "Take a picture off the draft",
            "",
        ),
    ]
}

/// What is being typed.
#[derive(Serialize, JsonSchema)]
struct Draft {
    /// The take.
    take: TakeId,
    /// The whole text.
    text: String,
    /// The pictures that go along.
    pictures: Attachments,
}

fn draft(call: &Call<'_, ThreadPath, OfTake>) -> Result<Answer<Draft>, Problem> {
    let looking = call.service.timeline.look()?;
    let version = looking.thread(call.path.thread)?.summary.version;
    let take = take_of(&looking, &looking.state(call.path.thread)?, call.query.take)?;
    Ok(Answer::at(Draft { take: take.id, text: take.draft, pictures: take.attached }, version))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DraftBody {
    /// The whole text.
    text: String,
}

fn set(call: &Call<'_, ThreadPath, OfTake, DraftBody>) -> Result<Answer<Done>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::SetDraft { take, text: call.body.text.clone() })
}

fn clear(call: &Call<'_, ThreadPath, OfTake>) -> Result<Answer<Done>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::ClearDraft { take })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttachBody {
    /// The pictures (png, jpg, gif, webp) and PDF documents, in base64.
    pictures: Vec<String>,
}

fn attach(call: &Call<'_, ThreadPath, OfTake, AttachBody>) -> Result<Answer<Done>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    let pictures = pictures(&call.body.pictures)?.into_iter().map(NewPicture::new).collect::<Result<_, _>>();
    let pictures = pictures.map_err(|error| Problem::new(Code::Refused, error))?;
    call.change(call.path.thread, Command::Attach { take, pictures })
}

#[derive(Deserialize, JsonSchema)]
struct AttachedPath {
    /// The thread's id.
    thread: ThreadId,
    /// The picture's content id.
    picture: ContentId,
}

fn detach(call: &Call<'_, AttachedPath, OfTake>) -> Result<Answer<Done>, Problem> {
    let take = take_id(call.service, call.path.thread, call.query.take)?;
    call.change(call.path.thread, Command::Detach { take, picture: call.path.picture })
}
