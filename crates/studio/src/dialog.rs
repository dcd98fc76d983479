//! What is asked of a person before something is done, with fields for what only they know.
//!
//! A dialog says itself which request it becomes: the module sends what its fields hold, by their names.
//!
//! ```text
//!   button data-act="dialog" data-src ──► this part ──► Do it ──► data-method data-ask { fields } ──► data-then
//! ```

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_timeline::Cleared;
use retake_words::cleared;
use retake_words::number::counted;

use crate::conversation::take_of;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};

/// What is said where nothing was to do.
const NOTHING: &str = "There was nothing to clear.";

/// The dialog about something.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let row = looking.thread(thread)?;
    let take = take_of(&looking, thread, asked)?;
    let of_thread = format!("/v1/threads/{thread}");
    let of_take = format!("{of_thread}/takes/{}", take.id);
    let here = format!("/studio/threads/{thread}");
    Ok(match asked.about.as_deref().unwrap_or_default() {
        "save" => Dialog { yes: "Save", ask: format!("{of_thread}/save"), then: "Saved.", ..Dialog::default() }
            .draw(&text("name", "What is this moment called?", "")),
        "save-preset" => {
            let ask = format!("{of_thread}/presets?take={}", take.id);
            Dialog { yes: "Save", ask, then: "Saved.", ..Dialog::default() }.draw(&text("name", "What is this preset called?", ""))
        }
        "truncate" => {
            let ask = format!("{of_thread}/truncate?take={}", take.id);
            Dialog { yes: "Cut the others", ask, ..Dialog::default() }.draw(&html! {
                label { "How many of the last pairs of question and answer stay?" input type="number" name="pairs" value="3" min="0" required; }
            })
        }
        "clear" => {
            let ask = format!("{of_thread}/clear?take={}", take.id);
            let entries = counted(take.entries.len(), "entry", "entries");
            let then = if take.entries.is_empty() { NOTHING } else { "Done." };
            Dialog { yes: "Clear", ask, then, ..Dialog::default() }.draw(&html! {
                h2 { "Take all entries out?" }
                p { "This takes " (entries) " out of the take “" (take.name) "”; the draft and the files stay, and an undo brings them back." }
            })
        }
        "reset" => {
            let takes_away = looking.cleared_by_reset(&looking.state(thread)?)?;
            let then = if takes_away == Cleared::default() { NOTHING } else { "Done." };
            Dialog { yes: "Reset", ask: format!("{of_thread}/reset"), then, ..Dialog::default() }.draw(&html! {
                h2 { "Reset the thread?" }
                p { "This clears " (cleared(&takes_away)) ". Takes, title, tags, roles and history stay, and an undo brings all back." }
            })
        }
        "put-away" => Dialog { method: "DELETE", yes: "Put it away", ask: of_thread, then: "/studio" }
            .draw(&html! { h2 { "Put “" (row.summary.title) "” away?" } p { "It leaves the list. Nothing is deleted: the filter “Put away” finds it, and brings it back." } }),
        "rename-take" => Dialog { yes: "Rename", ask: format!("{of_take}/rename"), ..Dialog::default() }
            .draw(&text("name", "What is this take called?", &take.name)),
        "delete-take" => Dialog { method: "DELETE", yes: "Delete it", ask: of_take, then: &here }
            .draw(&html! { h2 { "Delete the take “" (take.name) "”?" } p { "An undo brings it back, with its entries." } }),
        "role" => {
            let entry = asked.entry.ok_or_else(|| Failed::not_found("No entry is named."))?;
            let (_, known) = looking.entry(&take, entry)?.ok_or_else(|| Failed::not_found("The entry is gone."))?;
            let ask = format!("{of_thread}/entries/{entry}?take={}", take.id);
            let roles = looking.effective_roles(thread)?;
            Dialog { method: "PATCH", yes: "Change", ask, ..Dialog::default() }.draw(&html! {
                label { "Role" select name="role" {
                    @if !roles.contains(&known.role) { option value=(known.role) selected { (known.role) } }
                    @for role in &roles { option value=(role) selected[*role == known.role] { (role) } }
                } }
            })
        }
        other => return Err(Failed::not_found(format!("There is nothing to ask about {other:?}."))),
    })
}

/// The request that a dialog becomes.
struct Dialog<'a> {
    method: &'a str,
    ask: String,
    /// What the button says that sends it.
    yes: &'a str,
    /// What is said when it is done; an address is gone to.
    then: &'a str,
}

impl Default for Dialog<'_> {
    fn default() -> Self {
        Self { method: "POST", ask: String::new(), yes: "Do it", then: "" }
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
