//! Pictures attached to the draft. They are stored with it, so that they survive reloads and crashes.

use maud::{Markup, html};
use retake_model::entry::PDF;
use retake_model::id::ThreadId;
use retake_model::take::Take;

use crate::conversation::take_of;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    Ok(of_take(thread, &take_of(&reader, thread, query)?))
}

/// Each picture as a thumbnail with a button to remove it.
pub(crate) fn of_take(thread: ThreadId, take: &Take) -> Markup {
    html! {
        ul id="attached" data-live="attached" aria-label="Attached pictures" hidden[take.attached.is_empty()] {
            @for (number, attached) in (1..).zip(take.attached.iter()) {
                li {
                    @if attached.media == PDF {
                        span class="document" { "PDF" }
                    } @else {
                        img alt=(format!("Picture {number} ({})", attached.media))
                            src=(format!("/studio/threads/{thread}/picture?take={}&q={}", take.id, attached.picture));
                    }
                    button type="button" data-act="ask" data-method="DELETE" title="Remove"
                        data-ask=(format!("/v1/threads/{thread}/draft/pictures/{}?take={}", attached.picture, take.id))
                        aria-label=(format!("Remove picture {number}")) { "×" }
                }
            }
        }
    }
}
