//! The page of a thread.

use axum::http::StatusCode;
use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_model::take::Take;
use retake_surface::{Approve, Choice};
use retake_timeline::Reader;

use crate::conversation::{filtered, take_of, whole};
use crate::draw::document;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};
use crate::{attachments, history, tree, turn};

pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let row = reader.thread(thread)?;
    let state = reader.state(thread)?;
    let take = take_of(&reader, thread, query)?;
    let conversation = if query.roles.is_empty() {
        whole(studio, &reader, thread, &take, query)?
    } else {
        filtered(studio, thread, query)?
    };
    // Past versions and filtered views have no composer.
    let works = query.at.is_none() && query.roles.is_empty();
    let bar = draw_bar(&reader, thread, &take, &query.roles)?;
    let here = PageQuery {
        path: Some(thread.to_string()),
        take: Some(take.id),
        q: query.q.clone(),
        only: query.only.clone(),
        ..PageQuery::default()
    };
    let facts = [
        ("thread", thread.to_string()),
        ("take", take.id.to_string()),
        ("active", (take.id == state.active).to_string()),
        ("version", row.summary.version.to_string()),
        ("sequence", reader.queries().last_sequence()?.to_string()),
        ("past", query.at.map_or_else(String::new, |at| at.to_string())),
    ];
    let running = turn::draw(studio, thread, query)?;
    let set_to = turn::model_status(studio, thread, query)?;
    let history = history::draw(studio, thread, &PageQuery { take: Some(take.id), ..PageQuery::default() })?;
    let left = tree::draw(studio, &here)?;
    Ok(document(
        &row.summary.title,
        &facts,
        &html! {
            @if works { a class="skip" href="#draft" { "Skip to the message field" } }
            div class="studio" {
                nav id="left" aria-label="Threads" { (left) }
                main id="main" {
                    (bar)
                    @if let Some(at) = query.at {
                        p class="notice" {
                            "Version " (at) " of this thread. "
                            button type="button" data-act="jump" data-version=(at) data-ask=(history::jump_route(&reader, thread, Some(take.id))?) { "Jump to this version" } " "
                            a href=(format!("/studio/threads/{thread}")) { "Current version" }
                        }
                    } @else if !query.roles.is_empty() {
                        p class="notice" {
                            "Only entries by " span class="name" { (query.roles.join(" and ")) } ". "
                            a href=(format!("/studio/threads/{thread}?take={}", take.id)) { "Show all" }
                        }
                    } @else if take.id != state.active {
                        p class="notice" {
                            "This take is not active; the files in the folder belong to another take. "
                            button type="button" data-act="switch" data-take=(take.id.to_string()) { "Switch to this take" }
                        }
                    }
                    // The heading above those of entries.
                    h2 class="hidden" { "Conversation" }
                    (conversation)
                    @if works { (running) (composer(thread, &take, &set_to)) }
                    template id="editor" { (writing("editor", "Save", "leave-edit", &html! {})) }
                }
                aside id="right" aria-label="Details" {
                    div class="tabs" role="tablist" {
                        @for (name, label) in [("history", "History"), ("files", "Files"), ("settings", "Settings")] {
                            button type="button" role="tab" aria-controls="panel" data-act="tab" data-tab=(name)
                                aria-selected=(if name == "history" { "true" } else { "false" }) { (label) }
                        }
                    }
                    div id="panel" role="tabpanel" { (history) }
                }
            }
        },
    ))
}

/// The bar above the conversation.
pub(crate) fn bar(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    // The page of a take that was deleted elsewhere also refreshes its bar.
    match take_of(&reader, thread, query) {
        Ok(take) => draw_bar(&reader, thread, &take, &query.roles),
        Err(failed) if failed.status == StatusCode::NOT_FOUND => {
            let roles = reader.settings(thread).roles()?;
            Ok(gone(thread, &take_of(&reader, thread, &PageQuery::default())?, &roles))
        }
        Err(failed) => Err(failed),
    }
}

/// The bar of a deleted take. The script opens the active take and appends the text typed here to its draft.
fn gone(thread: ThreadId, active: &Take, roles: &[String]) -> Markup {
    let draft = if active.draft.is_empty() { String::new() } else { format!("{}\n\n", active.draft) };
    html! {
        header id="bar" data-live="bar" data-active=(active.id.to_string()) data-gone=(draft) {
            button type="button" class="narrow" data-act="menu" aria-label="Threads" { "☰" }
            p class="notice" role="alert" {
                "This take was deleted or undone elsewhere; this is its last state. "
                a data-act="active" href=(format!("/studio/threads/{thread}")) { "Open the active take" }
            }
            (inserting(roles))
        }
    }
}

/// The form for inserting an entry. Part of the bar, which is refreshed when the roles change.
fn inserting(roles: &[String]) -> Markup {
    html! {
        template id="inserting" {
            (writing("inserting", "Insert", "leave-insert", &html! {
                select aria-label="Role" { @for role in roles { option value=(role) { (role) } } }
            }))
        }
    }
}

fn draw_bar(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
    chosen: &[String],
) -> Result<Markup, PageError> {
    let row = reader.thread(thread)?;
    let undo_status = reader.history(thread).in_take(Some(take.id)).undo_status()?;
    let (roles, active) = (reader.settings(thread).roles()?, reader.state(thread)?.active.to_string());
    let takes = reader.queries().takes_of(row.number)?;
    let others = takes.iter().map(|other| &other.summary).filter(|other| other.id != take.id);
    let others: Vec<_> = others.collect();
    let dialog = |about: &str, label: &str, title: &str| {
        let src = format!("/studio/threads/{thread}/dialog?take={}&about={about}", take.id);
        html! { button type="button" data-act="dialog" data-about=(about) data-src=(src) title=(title) { (label) } }
    };
    let shown = |collapsed: bool, label: &str| {
        let ask = format!("/v1/threads/{thread}/entries/view?take={}", take.id);
        let body = format!("{{\"collapsed\":{collapsed}}}");
        let about = if collapsed { "collapse-all" } else { "expand-all" };
        html! { button type="button" data-act="ask" data-about=(about) data-method="PUT" data-ask=(ask) data-body=(body) { (label) } }
    };
    Ok(html! {
        header id="bar" data-live="bar" data-active=(active) data-until=[asked_again(chosen)] {
            button type="button" class="narrow" data-act="menu" aria-label="Threads" { "☰" }
            h1 { (row.summary.title) }
            span class="take-name" title="Take" { (take.name) }
            (inserting(&roles))
            span class="space" {}
            span class="group" {
                button type="button" data-act="undo" disabled[!undo_status.can_undo] title="Undo the last turn, with its files (Ctrl+Z)" { "Undo" }
                button type="button" data-act="redo" disabled[!undo_status.can_redo] title="Redo (Ctrl+Y)" { "Redo" }
            }
            @if !others.is_empty() {
                details class="menu" {
                    summary { "Compare" }
                    ul {
                        @for other in &others {
                            li { a href=(format!("/studio/threads/{thread}/compare?take={}&other={}", take.id, other.id)) { "with " (other.name) } }
                        }
                    }
                }
            }
            details class="menu" {
                summary { "More" }
                ul {
                    li { (dialog("save", "Save this version…", "Save the current version under a name")) }
                    li { (shown(true, "Collapse all")) }
                    li { (shown(false, "Expand all")) }
                    li role="separator" {}
                    li { (dialog("truncate", "Truncate…", "Keep only the last pairs of prompt and answer")) }
                    li { button type="button" data-act="ask" data-about="compress" data-method="POST" data-ask=(format!("/v1/threads/{thread}/compress?take={}", take.id))
                        data-then="Compressed." title="Replace old entries with a summary" { "Compress" } }
                    li { (dialog("clear", "Clear…", "Remove all entries of this take")) }
                    li { (dialog("reset", "Reset…", "Clear entries, settings, drafts and lists of all takes")) }
                    li role="separator" {}
                    li { (dialog("rename-take", "Rename this take…", "")) }
                    @if !others.is_empty() { li { (dialog("delete-take", "Delete this take…", "An undo restores it")) } }
                    li { (dialog("delete-thread", "Delete this thread…", "Hide it from the list; it can be restored")) }
                }
            }
            (filter(take, &roles, chosen))
            button type="button" class="narrow" data-act="details" aria-label="Details" { "⋯" }
        }
    })
}

/// The role parameters for refreshing the bar.
fn asked_again(chosen: &[String]) -> Option<String> {
    let fields: Vec<_> = chosen.iter().map(|role| ("role", role)).collect();
    let query = serde_urlencoded::to_string(fields).unwrap_or_default();
    (!chosen.is_empty()).then(|| format!("&{query}"))
}

/// The role filter.
fn filter(take: &Take, roles: &[String], chosen: &[String]) -> Markup {
    let tool = "Tool".to_owned();
    let is_chosen = |role: &String| chosen.iter().any(|one| one.eq_ignore_ascii_case(role));
    let label = if chosen.is_empty() { "All roles".to_owned() } else { chosen.join(", ") };
    html! {
        details class="menu" id="filter" {
            summary title="Filter by role" { (label) }
            form id="roles" {
                input type="hidden" name="take" value=(take.id.to_string());
                ul {
                    @for role in roles.iter().chain((!roles.contains(&tool)).then_some(&tool)) {
                        li { label { input type="checkbox" name="role" value=(role) checked[is_chosen(role)]; " " (role) } }
                    }
                    li { button { "Show" } }
                }
            }
        }
    }
}

/// A form with a text field.
fn writing(class: &str, yes: &str, leave: &str, fields: &Markup) -> Markup {
    html! {
        form class=(class) {
            (fields)
            textarea aria-label="Text" rows="4" {}
            p class="acts" {
                button class="primary" title="Ctrl+Enter" { (yes) }
                button type="button" data-act=(leave) title="Esc" { "Cancel" }
            }
        }
    }
}

fn composer(thread: ThreadId, take: &Take, set_to: &Markup) -> Markup {
    html! {
        form id="composer" {
            div class="card" {
                (attachments::of_take(thread, take))
                label class="hidden" for="draft" { "Message" }
                textarea id="draft" rows="2" placeholder="Message…" { (take.draft) }
                div class="below" {
                    (set_to)
                    label { span class="hidden" { "Approval" }
                        select id="approve" title="What tools may do without approval" {
                            option value="" { "Tools: as configured" }
                            @for (approve, name, _) in Approve::CHOICES {
                                option value=(name) { "Tools: " (approval_label(*approve)) }
                            }
                        }
                    }
                    label class="attach" title="Attach a picture or PDF; you can also paste or drop it" {
                        span { "Picture" }
                        input type="file" id="pictures" accept="image/png,image/jpeg,image/gif,image/webp,application/pdf" multiple;
                    }
                    span id="draft-state" class="quiet" aria-live="polite" {}
                    span class="space" {}
                    span id="stop" hidden { (turn::interrupt(thread, take.id, "Stop")) }
                    button type="submit" class="primary" id="send" title="Ctrl+Enter" { "Send" }
                }
            }
        }
    }
}

fn approval_label(approve: Approve) -> &'static str {
    match approve {
        Approve::Ask => "ask before changes",
        Approve::Edits => "write files",
        Approve::All => "allow everything",
        Approve::None => "read only",
    }
}
