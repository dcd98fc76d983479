//! The first page: what is here, and how to begin.

use maud::{Markup, html};
use retake_model::id::ThreadId;

use crate::draw::document;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};
use crate::tree;

/// The thread that is being worked on in the server's folder.
pub(crate) fn current(studio: &Studio) -> Option<ThreadId> {
    let thread = studio.timeline.project_if_known(&studio.folder).ok()?.current?;
    let row = studio.timeline.look().ok()?.thread(thread).ok()?;
    row.summary.deleted.is_none().then_some(thread)
}

/// A page that says how to begin.
pub(crate) fn draw(studio: &Studio) -> Result<Markup, Failed> {
    let left = tree::draw(studio, &Asked::default())?;
    Ok(document(
        "Welcome",
        &[],
        &html! {
            div class="studio" {
                nav id="left" aria-label="Threads" { (left) }
                main class="alone" id="main" {
                    h1 { "Go back, try again, compare" }
                    p class="lead" {
                        "Retake keeps a conversation with a coding agent and the files of its project on one timeline. Every \
                         answer can be edited, every change undone and redone, any moment forked, the files going along."
                    }
                    ol class="steps" {
                        li { b { "Make a thread." } " It works in " code { (studio.folder.display().to_string()) } "." }
                        li { b { "Ask for something." } " Without a key Retake's own assistant answers, with real tools." }
                        li { b { "Undo it." } " The words and the files go back together. Redo brings both." }
                        li { b { "Try again." } " Retry makes another take; compare puts two side by side." }
                    }
                    p { button type="button" class="primary" data-act="ask" data-about="new-thread" data-method="POST" data-ask="/v1/threads" data-body=r#"{"current":true}"# data-then="/studio/threads/{thread}" { "Make a thread" } }
                }
            }
        },
    ))
}
