//! Confirmation dialogs and forms.
//!
//! A dialog declares the request that it sends: the script adds the values of its fields by name.
//!
//! ```text
//!   button data-act="dialog" data-src ──► this fragment ──► OK ──► data-method data-ask { fields } ──► data-then
//! ```

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_render::describe_reset;
use retake_render::number::counted;
use retake_timeline::ResetSummary;

use crate::conversation::take_of;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

const NOTHING_TO_CLEAR: &str = "Nothing to clear.";

pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let row = reader.thread(thread)?;
    let take = take_of(&reader, thread, query)?;
    let of_thread = format!("/v1/threads/{thread}");
    let of_take = format!("{of_thread}/takes/{}", take.id);
    let here = format!("/studio/threads/{thread}");
    Ok(match query.about.as_deref().unwrap_or_default() {
        "save" => Dialog { yes: "Save", ask: format!("{of_thread}/save"), then: "Saved.", ..Dialog::default() }
            .draw(&text("name", "Name of this version", "")),
        "save-preset" => {
            let ask = format!("{of_thread}/presets?take={}", take.id);
            Dialog { yes: "Save", ask, then: "Saved.", ..Dialog::default() }.draw(&text("name", "Name of the preset", ""))
        }
        "truncate" => {
            let ask = format!("{of_thread}/truncate?take={}", take.id);
            Dialog { yes: "Truncate", ask, ..Dialog::default() }.draw(&html! {
                label { "How many of the last pairs of prompt and answer to keep" input type="number" name="pairs" value="3" min="0" required; }
            })
        }
        "clear" => {
            let ask = format!("{of_thread}/clear?take={}", take.id);
            let entries = counted(take.entries.len(), "entry", "entries");
            let then = if take.entries.is_empty() { NOTHING_TO_CLEAR } else { "Done." };
            Dialog { yes: "Clear", ask, then, ..Dialog::default() }.draw(&html! {
                h2 { "Remove all entries?" }
                p { "This removes " (entries) " from the take “" (take.name) "”. The draft and the files stay. An undo restores the entries." }
            })
        }
        "reset" => {
            let takes_away = ResetSummary::of(&reader, &reader.state(thread)?)?;
            let then = if takes_away == ResetSummary::default() { NOTHING_TO_CLEAR } else { "Done." };
            Dialog { yes: "Reset", ask: format!("{of_thread}/reset"), then, ..Dialog::default() }.draw(&html! {
                h2 { "Reset the thread?" }
                p { "This clears " (describe_reset(&takes_away)) ". Takes, title, tags, roles and history stay. An undo restores everything." }
            })
        }
        "delete-thread" => Dialog { method: "DELETE", yes: "Delete", ask: of_thread, then: "/studio" }
            .draw(&html! { h2 { "Delete “" (row.summary.title) "”?" } p { "It disappears from the list. The filter “Deleted” shows it, and you can restore it." } }),
        "rename-take" => Dialog { yes: "Rename", ask: format!("{of_take}/rename"), ..Dialog::default() }
            .draw(&text("name", "Name of the take", &take.name)),
        "delete-take" => Dialog { method: "DELETE", yes: "Delete", ask: of_take, then: &here }
            .draw(&html! { h2 { "Delete the take “" (take.name) "”?" } p { "An undo restores it with its entries." } }),
        "role" => {
            let entry = query.entry.ok_or_else(|| PageError::not_found("The parameter `entry` is required."))?;
            let (_, known) = reader.entries(thread, &take).get(entry)?.ok_or_else(|| PageError::not_found("The entry was deleted."))?;
            let ask = format!("{of_thread}/entries/{entry}?take={}", take.id);
            let roles = reader.settings(thread).roles()?;
            Dialog { method: "PATCH", yes: "Change", ask, ..Dialog::default() }.draw(&html! {
                label { "Role" select name="role" {
                    @if !roles.contains(&known.role) { option value=(known.role) selected { (known.role) } }
                    @for role in &roles { option value=(role) selected[*role == known.role] { (role) } }
                } }
            })
        }
        other => return Err(PageError::not_found(format!("Unknown dialog {other:?}."))),
    })
}

/// The request that a dialog sends.
struct Dialog<'a> {
    method: &'a str,
    ask: String,
    /// Label of the confirm button.
    yes: &'a str,
    /// Message on success, or an address to open.
    then: &'a str,
}

impl Default for Dialog<'_> {
    fn default() -> Self {
        Self { method: "POST", ask: String::new(), yes: "OK", then: "" }
    }
}

impl Dialog<'_> {
    fn draw(&self, body: &Markup) -> Markup {
        html! {
            div class="asks" data-method=(self.method) data-ask=(self.ask) data-yes=(self.yes) data-then=(self.then) { (body) }
        }
    }
}

fn text(name: &str, question: &str, value: &str) -> Markup {
    html! { label { (question) input name=(name) value=(value) required; } }
}
