//! The turn that runs, and what it asks.

use maud::{Markup, html};
use retake_agent::asked;
use retake_model::agent::AgentState;
use retake_model::id::ThreadId;

use crate::conversation::take_of;
use crate::draw::exact;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};

/// What a take's agent does, and what it waits for.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let take = take_of(&looking, thread, query)?;
    let running = studio.timeline.store().turn_runs(take.id)?;
    let questions = if running { asked(&looking, thread, &take)? } else { Vec::new() };
    let failed = match take.agent.as_ref().map(|agent| &agent.state) {
        Some(AgentState::Failed { message, .. }) => Some(message.clone()),
        _ => None,
    };
    let left = take.agent.is_some() && !running;
    Ok(html! {
        // The draft goes along: an undo may bring back what was sent, and another window may have typed.
        div id="turn" data-live="turn" data-running=(running) data-draft=(take.draft) {
            @for question in &questions {
                section class="question" role="alertdialog" aria-label="A call waits for you" data-call=(question.call) {
                    h3 { "May it run " code { (exact(&question.question.tool)) } "?" }
                    pre class="plain" tabindex="0" {
                        @for line in &question.question.what {
                            span class=(match line.chars().next() { Some('+') => "added", Some('-') => "removed", _ => "" }) { (exact(line)) "\n" }
                        }
                    }
                    p class="acts" {
                        button type="button" class="primary" data-act="allow" { "Allow" }
                        button type="button" data-act="always" title="This very call need not be asked about again in this project" { "Always this" }
                        button type="button" data-act="deny" { "Do not" }
                    }
                }
            }
            @if let Some(message) = failed {
                section class="question failed" role="alert" {
                    h3 { "The turn failed" }
                    p { (message) }
                    p class="acts" {
                        button type="button" class="primary" data-act="resume" { "Go on" }
                        button type="button" data-act="interrupt" { "Leave it" }
                    }
                }
            } @else if left {
                section class="question" role="alert" {
                    h3 { "A turn is unfinished" }
                    p { "Its program did not live to end it. Tools that ran then are not run again." }
                    p class="acts" {
                        button type="button" class="primary" data-act="resume" { "Go on" }
                        button type="button" data-act="interrupt" { "Close it" }
                    }
                }
            }
        }
    })
}
