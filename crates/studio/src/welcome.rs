//! The welcome page.

use maud::{Markup, html};
use retake_model::id::ThreadId;

use crate::draw::document;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};
use crate::tree;

/// The current thread of the server's project.
pub(crate) fn current(studio: &Studio) -> Option<ThreadId> {
    let thread = studio.timeline.project_if_known(&studio.folder).ok()?.current?;
    let row = studio.timeline.read().ok()?.thread(thread).ok()?;
    row.summary.deleted.is_none().then_some(thread)
}

pub(crate) fn draw(studio: &Studio) -> Result<Markup, PageError> {
    let left = tree::draw(studio, &PageQuery::default())?;
    Ok(document(
        "Welcome",
        &[],
        &html! {
            div class="studio" {
                nav id="left" aria-label="Threads" { (left) }
                main class="alone" id="main" {
                    h1 { "Go back, try again, compare" }
                    p class="lead" {
                        "Your agent session becomes editable, like a document under version control: edit any message, undo and redo \
                         any change, fork at any message. The files of the project move with it."
                    }
                    ol class="steps" {
                        li { b { "Create a thread." } " It works in " code { (studio.folder.display().to_string()) } "." }
                        li { b { "Send a prompt." } " Without an API key the built-in assistant answers, with real tools." }
                        li { b { "Undo it." } " Messages and files are reverted together. Redo restores both." }
                        li { b { "Retry." } " A retry creates another take; compare shows two side by side." }
                    }
                    p { button type="button" class="primary" data-act="ask" data-about="new-thread" data-method="POST" data-ask="/v1/threads" data-body=r#"{"current":true}"# data-then="/studio/threads/{thread}" { "Create a thread" } }
                }
            }
        },
    ))
}
