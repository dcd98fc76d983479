//! History: every operation, what it changed, and the way back to each.

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_words::{actor, story};

use crate::draw::moment;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};

/// How many operations are shown at once.
const SHOWN: usize = 60;

/// Operations, newest first. Those that the present does not contain stay visible, and can be gone to.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let items = looking.history(thread, asked.before, SHOWN)?;
    let next = items.last().map(|last| last.version).filter(|last| *last > 1);
    let mut told = Vec::with_capacity(items.len());
    for item in &items {
        told.push((item, story::tell(&looking, &item.kind, item.state)?));
    }
    Ok(html! {
        div id="history" data-live="history" {
            ol class="history" {
                @for (item, told) in &told {
                    li id=(format!("v-{}", item.version)) class=(class_of(item.current, item.undone, item.redoable))
                        aria-current=[item.current.then_some("step")] {
                        button type="button" data-act="jump" data-version=(item.version) disabled[item.current]
                            title=(if item.current { "This is now" } else { "Go to this moment" }) {
                            span class="number" { (item.version) }
                            span class="words" { (told.words) }
                            @if let Some(preview) = &told.preview { span class="preview" { (preview) } }
                            span class="facts" {
                                (actor(&item.actor)) " · " (moment(item.time))
                                @if item.undone { " · undone" }
                                @if item.redoable { " · redo leads here" }
                            }
                        }
                    }
                }
            }
            @if let Some(before) = next {
                button type="button" data-act="more" data-src=(format!("/studio/threads/{thread}/history?before={before}")) { "Older operations" }
            }
        }
    })
}

fn class_of(current: bool, undone: bool, redoable: bool) -> &'static str {
    match (current, undone, redoable) {
        (true, ..) => "current",
        (_, _, true) => "redoable",
        (_, true, _) => "undone",
        _ => "past",
    }
}
