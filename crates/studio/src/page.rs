//! The whole page of a thread.

use axum::http::StatusCode;
use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_model::take::Take;
use retake_timeline::Looking;

use crate::conversation::{picked, take_of, whole};
use crate::draw::document;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};
use crate::{attached, history, tree, turn};

/// The page of a thread.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let row = looking.thread(thread)?;
    let state = looking.state(thread)?;
    let take = take_of(&looking, thread, asked)?;
    let conversation = if asked.roles.is_empty() {
        whole(studio, &looking, thread, &take, asked)?
    } else {
        picked(studio, thread, asked)?
    };
    // What is only looked at is not gone on with.
    let works = asked.at.is_none() && asked.roles.is_empty();
    let bar = draw_bar(&looking, thread, &take, &asked.roles)?;
    let here = Asked {
        path: Some(thread.to_string()),
        take: Some(take.id),
        q: asked.q.clone(),
        only: asked.only.clone(),
        ..Asked::default()
    };
    let facts = [
        ("thread", thread.to_string()),
        ("take", take.id.to_string()),
        ("active", (take.id == state.active).to_string()),
        ("version", row.summary.version.to_string()),
        ("sequence", looking.queries().last_sequence()?.to_string()),
        ("past", asked.at.map_or_else(String::new, |at| at.to_string())),
    ];
    let running = turn::draw(studio, thread, asked)?;
    let set_to = turn::set_to(studio, thread, asked)?;
    let history = history::draw(studio, thread, &Asked { take: Some(take.id), ..Asked::default() })?;
    let left = tree::draw(studio, &here)?;
    Ok(document(
        &row.summary.title,
        &facts,
        &html! {
            @if works { a class="skip" href="#draft" { "To the message" } }
            div class="studio" {
                nav id="left" aria-label="Threads" { (left) }
                main id="main" {
                    (bar)
                    @if let Some(at) = asked.at {
                        p class="notice" {
                            "This is how it was after operation " (at) ". "
                            button type="button" data-act="jump" data-version=(at) data-ask=(history::jump_route(&looking, thread, Some(take.id))?) { "Go back to it" } " "
                            a href=(format!("/studio/threads/{thread}")) { "To the present" }
                        }
                    } @else if !asked.roles.is_empty() {
                        p class="notice" {
                            "Only what " span class="name" { (asked.roles.join(" and ")) } " said. "
                            a href=(format!("/studio/threads/{thread}?take={}", take.id)) { "Show everything" }
                        }
                    } @else if take.id != state.active {
                        p class="notice" {
                            "Another take is being worked on; the files in the folder are that one's. "
                            button type="button" data-act="switch" data-take=(take.id.to_string()) { "Work on this one" }
                        }
                    }
                    // What entries are headed with is below this.
                    h2 class="hidden" { "Conversation" }
                    (conversation)
                    @if works { (running) (composer(thread, &take, &set_to)) }
                    template id="editor" { (writing("editor", "Keep", "leave-edit", &html! {})) }
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

/// The line above the conversation.
pub(crate) fn bar(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    // Who shows a take that went away elsewhere asks for this again, as for everything else.
    match take_of(&looking, thread, asked) {
        Ok(take) => draw_bar(&looking, thread, &take, &asked.roles),
        Err(failed) if failed.status == StatusCode::NOT_FOUND => {
            let roles = looking.effective_roles(thread)?;
            Ok(gone(thread, &take_of(&looking, thread, &Asked::default())?, &roles))
        }
        Err(failed) => Err(failed),
    }
}

/// What stands above the conversation of a take that is no more. The module goes to the active one, and takes along what
/// was typed here, behind the draft that is there.
fn gone(thread: ThreadId, active: &Take, roles: &[String]) -> Markup {
    let draft = if active.draft.is_empty() { String::new() } else { format!("{}\n\n", active.draft) };
    html! {
        header id="bar" data-live="bar" data-active=(active.id.to_string()) data-gone=(draft) {
            button type="button" class="narrow" data-act="menu" aria-label="Threads" { "☰" }
            p class="notice" role="alert" {
                "This take was deleted or undone elsewhere; what you see is how it was. "
                a data-act="active" href=(format!("/studio/threads/{thread}")) { "To the take that is worked on" }
            }
            (inserting(roles))
        }
    }
}

/// What is put in between entries. It stands in the bar, which is drawn again when the roles change.
fn inserting(roles: &[String]) -> Markup {
    html! {
        template id="inserting" {
            (writing("inserting", "Put it in", "leave-insert", &html! {
                select aria-label="Role" { @for role in roles { option value=(role) { (role) } } }
            }))
        }
    }
}

fn draw_bar(
    looking: &Looking<'_>,
    thread: ThreadId,
    take: &Take,
    chosen: &[String],
) -> Result<Markup, Failed> {
    let row = looking.thread(thread)?;
    let standing = looking.standing_in(thread, Some(take.id))?;
    let (roles, active) = (looking.effective_roles(thread)?, looking.state(thread)?.active.to_string());
    let takes = looking.queries().takes_of(row.number)?;
    let others = takes.iter().map(|other| &other.summary).filter(|other| other.id != take.id);
    let others: Vec<_> = others.collect();
    let dialog = |about: &str, label: &str, title: &str| {
        let src = format!("/studio/threads/{thread}/dialog?take={}&about={about}", take.id);
        html! { button type="button" data-act="dialog" data-about=(about) data-src=(src) title=(title) { (label) } }
    };
    let shown = |collapsed: bool, label: &str| {
        let ask = format!("/v1/threads/{thread}/entries-shown?take={}", take.id);
        let body = format!("{{\"collapsed\":{collapsed}}}");
        let about = if collapsed { "collapse-all" } else { "expand-all" };
        html! { button type="button" data-act="ask" data-about=(about) data-method="PUT" data-ask=(ask) data-body=(body) { (label) } }
    };
    Ok(html! {
        header id="bar" data-live="bar" data-active=(active) data-until=[asked_again(chosen)] {
            button type="button" class="narrow" data-act="menu" aria-label="Threads" { "☰" }
            h1 { (row.summary.title) }
            span class="take-name" title="The take" { (take.name) }
            (inserting(&roles))
            span class="space" {}
            span class="group" {
                button type="button" data-act="undo" disabled[!standing.can_undo] title="Undo the last turn, with its files (Ctrl+Z)" { "Undo" }
                button type="button" data-act="redo" disabled[!standing.can_redo] title="Redo (Ctrl+Y)" { "Redo" }
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
                    li { (dialog("save", "Save this moment…", "Give the present moment a name")) }
                    li { (shown(true, "Collapse all")) }
                    li { (shown(false, "Expand all")) }
                    li role="separator" {}
                    li { (dialog("truncate", "Keep the last pairs…", "Cut everything before the last pairs")) }
                    li { button type="button" data-act="ask" data-about="compress" data-method="POST" data-ask=(format!("/v1/threads/{thread}/compress?take={}", take.id))
                        data-then="A summary stands for them now." title="A summary in the place of old entries" { "Compress" } }
                    li { (dialog("clear", "Clear…", "Take all entries out of this take")) }
                    li { (dialog("reset", "Reset…", "Entries, settings, drafts and lists of all takes")) }
                    li role="separator" {}
                    li { (dialog("rename-take", "Rename this take…", "")) }
                    @if !others.is_empty() { li { (dialog("delete-take", "Delete this take…", "An undo brings it back")) } }
                    li { (dialog("put-away", "Put this thread away…", "It leaves the list, and can be brought back")) }
                }
            }
            (filter(take, &roles, chosen))
            button type="button" class="narrow" data-act="details" aria-label="Details" { "⋯" }
        }
    })
}

/// The roles as they are asked for again when the bar is drawn anew.
fn asked_again(chosen: &[String]) -> Option<String> {
    let fields: Vec<_> = chosen.iter().map(|role| ("role", role)).collect();
    let query = serde_urlencoded::to_string(fields).unwrap_or_default();
    (!chosen.is_empty()).then(|| format!("&{query}"))
}

/// Which roles are shown.
fn filter(take: &Take, roles: &[String], chosen: &[String]) -> Markup {
    let tool = "Tool".to_owned();
    let is_chosen = |role: &String| chosen.iter().any(|one| one.eq_ignore_ascii_case(role));
    let label = if chosen.is_empty() { "All roles".to_owned() } else { chosen.join(", ") };
    html! {
        details class="menu" id="filter" {
            summary title="Show only some roles" { (label) }
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

/// A form with a text to write.
fn writing(class: &str, yes: &str, leave: &str, fields: &Markup) -> Markup {
    html! {
        form class=(class) {
            (fields)
            textarea aria-label="Text" rows="4" {}
            p class="acts" {
                button class="primary" title="Ctrl+Enter" { (yes) }
                button type="button" data-act=(leave) title="Esc" { "Leave it" }
            }
        }
    }
}

fn composer(thread: ThreadId, take: &Take, set_to: &Markup) -> Markup {
    html! {
        form id="composer" {
            div class="card" {
                (attached::of_take(thread, take))
                label class="hidden" for="draft" { "Message" }
                textarea id="draft" rows="2" placeholder="Ask for something…" { (take.draft) }
                div class="below" {
                    (set_to)
                    label { span class="hidden" { "Tools may" }
                        select id="approve" title="What tools may do without asking" {
                            option value="" { "Tools: as configured" }
                            option value="ask" { "Tools: ask about changes" }
                            option value="edits" { "Tools: write files" }
                            option value="all" { "Tools: do everything" }
                            option value="none" { "Tools: only look" }
                        }
                    }
                    label class="attach" title="A picture or a PDF document; it may also be pasted or dropped" {
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
