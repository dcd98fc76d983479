//! The running turn and its approval requests.

use maud::{Markup, html};
use retake_agent::pending_approvals;
use retake_agent::provider::config::ProviderEnvironment;
use retake_model::agent::AgentState;
use retake_model::entry::preview;
use retake_model::id::{TakeId, ThreadId};
use retake_model::turn::TurnMessage;
use retake_render::number::counted;
use retake_timeline::PendingMove;
use serde_json::json;

use crate::conversation::take_of;
use crate::draw::with_visible_controls;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// The state of a take's agent and what it waits for.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let take = take_of(&reader, thread, query)?;
    let running = studio.timeline.store().is_turn_running(take.id)?;
    let questions = if running { pending_approvals(&reader, thread, &take)? } else { Vec::new() };
    let failed = match take.agent.as_ref().map(|agent| &agent.state) {
        Some(AgentState::Failed { message, .. }) => Some(message.clone()),
        _ => None,
    };
    let left = take.agent.as_ref().filter(|_| !running).map(|agent| match agent.state {
        AgentState::ShuttingDown { .. } => "The server or program that ran it was stopped.",
        _ => "The process was killed.",
    });
    let record = studio.runtime_database.turn(take.id)?.filter(|_| running);
    let state = record.zip(take.agent.clone()).map(|(record, agent)| record.agent(agent).state.kind());
    let letters = if running { studio.runtime_database.messages(take.id)? } else { Vec::new() };
    let waiting: Vec<&str> = letters
        .iter()
        .filter_map(|(_, letter)| match letter {
            TurnMessage::Steer { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let pending = studio.timeline.pending_moves()?;
    let interrupted = pending.iter().find(|pending| pending.thread == thread && !pending.running);
    Ok(html! {
        // Includes the draft, because an undo or another window may change it.
        div id="turn" data-live="turn" data-running=(running) data-draft=(take.draft) {
            p id="agent-state" class="facts" role="status" { @if let Some(state) = state { "Agent: " (state.label()) } }
            @if let Some(interrupted) = interrupted { (pending_move(interrupted)) }
            @for question in &questions {
                section class="question" role="alertdialog" aria-label="Approval needed" data-call=(question.call) {
                    h2 { "Allow " code { (with_visible_controls(&question.question.tool)) } "?" }
                    pre class="plain" tabindex="0" {
                        @for line in &question.question.what {
                            span class=(match line.chars().next() { Some('+') => "added", Some('-') => "removed", _ => "" }) { (with_visible_controls(line)) "\n" }
                        }
                    }
                    p class="acts" { (decisions(thread, take.id, &question.call)) }
                }
            }
            @if let Some(message) = failed {
                section class="question failed" role="alert" {
                    h2 { "The turn failed" }
                    p { (message) }
                    p class="acts" {
                        button type="button" class="primary" data-act="resume" { "Resume" }
                        (interrupt(thread, take.id, "Dismiss"))
                    }
                }
            } @else if let Some(why) = left {
                section class="question" role="alert" {
                    h2 { "A turn is unfinished" }
                    p { (why) " Tools that were running are not run again." }
                    p class="acts" {
                        button type="button" class="primary" data-act="resume" { "Resume" }
                        (interrupt(thread, take.id, "Dismiss"))
                    }
                }
            }
            @if !waiting.is_empty() {
                ol class="queue" aria-label="Queued messages" {
                    @for text in &waiting { li { span class="preview" { (preview(text)) } span class="facts" { "sent with the next request" } } }
                }
            }
        }
    })
}

/// A notice about a file move that a crash interrupted.
fn pending_move(pending: &PendingMove) -> Markup {
    html! {
        section class="question" role="alert" data-about="pending-move" {
            h2 { "A move of files was interrupted" }
            p {
                "In " code { (with_visible_controls(&pending.folder)) } ". "
                @if pending.exists { "The next change of this thread, such as an undo, finishes it first." }
                @else { "Next: " (pending.next) "." }
            }
        }
    }
}

/// The decision buttons for a call.
fn decisions(thread: ThreadId, take: TakeId, call: &str) -> Markup {
    let decide = |name: &str, label: &str, title: &str, allow: bool, remember: bool| {
        let body = json!({"call": call, "allow": allow, "remember": remember});
        html! {
            button type="button" class=[(name == "allow").then_some("primary")] data-act="ask" data-about=(name) data-method="POST"
                data-ask=(format!("/v1/threads/{thread}/turn/approve?take={take}")) data-body=(body) title=(title) { (label) }
        }
    };
    html! {
        (decide("allow", "Allow", "", true, false))
        (decide("always", "Always allow this exact call", "Do not ask about this call again in this project", true, true))
        (decide("deny", "Deny", "", false, false))
    }
}

/// A button that interrupts the turn of a take.
pub(crate) fn interrupt(thread: ThreadId, take: TakeId, label: &str) -> Markup {
    html! {
        button type="button" data-act="ask" data-about="interrupt" data-method="POST"
            data-ask=(format!("/v1/threads/{thread}/turn/interrupt?take={take}")) { (label) }
    }
}

/// The model and settings of the next request, with a link to change them.
pub(crate) fn model_status(
    studio: &Studio,
    thread: ThreadId,
    query: &PageQuery,
) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let take = take_of(&reader, thread, query)?;
    let settings = reader.settings(thread).effective()?;
    let usual = studio.setup.default_model(&ProviderEnvironment::from_process());
    let usual = usual.model.as_deref().unwrap_or(&usual.provider);
    let model = settings.model.as_deref().or(settings.provider.as_deref()).unwrap_or(usual);
    let along = take.context_files.len() + take.screenshots.len();
    let prompted = !(settings.project_system_prompt.is_empty() && settings.global_system_prompt.is_empty());
    Ok(html! {
        button id="set-to" data-live="set-to" type="button" data-act="tab" data-tab="settings"
            title="Settings: provider, model, prompts and context files" {
            span class="model" { (model) }
            @if let Some(effort) = settings.effort { " · effort " (effort.name()) }
            @if let Some(temperature) = settings.temperature { " · temperature " (temperature) }
            @if prompted { " · custom prompt" }
            @if along > 0 { " · " (counted(along as u64, "file", "files")) }
        }
    })
}
