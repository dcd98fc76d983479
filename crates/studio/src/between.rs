//! What differs between two moments: what a move would bring and take away, and what an operation did.

use std::collections::HashSet;

use maud::{Markup, html};
use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::operation::{OperationKind, Version};
use retake_model::path::RootPath;
use retake_timeline::{
    Detail, Differing, EntryDiffers, FieldDiffers, Looking, Question, Stat, USUAL_CONTEXT,
};
use retake_words::number::counted;

use crate::diff;
use crate::draw::exact;
use crate::entry::class_of;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};

/// So many entries are named; of the others only the number.
const NAMED: usize = 12;
/// So many of the operations between two moments that changed files are looked at.
const LOOKED_BACK: usize = 1_000;

/// From the moment `before` to the moment `at`.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let (Some(from), Some(to)) = (asked.before, asked.at) else {
        return Err(Failed::not_found("Two moments are needed: before and at."));
    };
    let looking = studio.timeline.look()?;
    let differing = looking.differing(thread, [from, to], NAMED)?;
    let files = match (files_at(&looking, thread, from)?, files_at(&looking, thread, to)?) {
        (Some(before), Some(after)) if before != after => {
            let question = Question::all(Detail::Hunks(USUAL_CONTEXT));
            let mut changes = looking.changes(before, after, &question)?;
            if asked.about.as_deref() == Some("move") {
                let by_hand = changed_by_hand(&looking, thread, [from, to])?;
                changes.files.retain(|file| !by_hand.contains(&file.path));
                changes.stat = Stat::of(&changes.files);
            }
            Some(changes).filter(|changes| !changes.files.is_empty())
        }
        _ => None,
    };
    Ok(html! {
        div class="between" {
            (entries(&differing))
            (takes(&differing))
            @if !differing.fields.is_empty() {
                dl class="fields" { @for field in &differing.fields { (draw_field(field)) } }
            }
            @if let Some(files) = &files { (diff::draw(thread, files)) }
        }
    })
}

/// The paths that somebody changed by hand between two moments. A move leaves their changes where they are, so that what
/// becomes of these is told path by path, and not by how the moments differ.
fn changed_by_hand(
    looking: &Looking<'_>,
    thread: ThreadId,
    moments: [Version; 2],
) -> Result<HashSet<RootPath>, Failed> {
    let (first, last) = (moments[0].min(moments[1]), moments[0].max(moments[1]));
    let question = Question::all(Detail::Paths);
    let mut found = HashSet::new();
    for at in looking.files(thread, last.checked_add(1), LOOKED_BACK)? {
        if at.version <= first {
            break;
        }
        if matches!(at.kind, OperationKind::FilesSeen { .. }) {
            let changes = looking.changes(at.files.before, at.files.after, &question)?;
            found.extend(changes.files.into_iter().map(|file| file.path));
        }
    }
    Ok(found)
}

/// The files of a moment; those that were first known, if it was before that.
fn files_at(looking: &Looking<'_>, thread: ThreadId, version: Version) -> Result<Option<ContentId>, Failed> {
    if let Some(at) = looking.files_at(thread, version)? {
        return Ok(Some(at.files.after));
    }
    let first = looking.files(thread, None, usize::MAX)?.pop();
    Ok(first.map(|first| first.files.before))
}

fn entries(differing: &Differing) -> Markup {
    let all = differing.entries_came + differing.entries_went + differing.entries_changed;
    let more = all.saturating_sub(differing.entries.len() as u64);
    let several = |many: u64, one: &str, more: &str| {
        (many > 0)
            .then(|| format!("{} {}", counted(many, "entry", "entries"), if many == 1 { one } else { more }))
    };
    let sum = [
        several(differing.entries_went, "goes", "go"),
        several(differing.entries_came, "comes", "come"),
        several(differing.entries_changed, "changes", "change"),
    ];
    let sum: Vec<String> = sum.into_iter().flatten().collect();
    html! {
        p { @if sum.is_empty() { "No entries come or go." } @else { (sum.join(", ")) "." } }
        @if all > 0 {
            ul class="differs" { @for entry in &differing.entries { (draw_entry(entry)) } }
        }
        @if more > 0 { p class="quiet" { "and " (counted(more, "entry", "entries")) " more" } }
    }
}

fn draw_entry(differs: &EntryDiffers) -> Markup {
    let (class, sign, word) = match (&differs.before, &differs.after) {
        (Some(_), None) => ("removed", "−", "goes"),
        (None, _) => ("added", "+", "comes"),
        _ => ("changed", "±", "changes"),
    };
    let line = |entry: &EntryVersion| {
        html! { span class=(format!("role {}", class_of(&entry.role))) { (entry.role) } " " span class="preview" { (exact(&entry.preview())) } }
    };
    html! {
        li class=(class) {
            span class="sign" aria-hidden="true" { (sign) }
            span class="hidden" { (word) " " } span class="number" { (differs.number) } " "
            @match (&differs.before, &differs.after) {
                (Some(before), Some(after)) if before.preview() != after.preview() => {
                    (line(before)) " → " span class="preview" { (exact(&after.preview())) }
                }
                (_, Some(entry)) | (Some(entry), None) => (line(entry)),
                (None, None) => {}
            }
        }
    }
}

fn takes(differing: &Differing) -> Markup {
    let list = |names: &[String], class: &str, sign: &str| {
        html! {
            @for name in names { li class=(class) { span class="sign" aria-hidden="true" { (sign) } "take " span class="name" { (name) } } }
        }
    };
    html! {
        @if !(differing.takes_came.is_empty() && differing.takes_went.is_empty()) {
            ul class="differs" { (list(&differing.takes_came, "added", "+")) (list(&differing.takes_went, "removed", "−")) }
        }
    }
}

fn draw_field(field: &FieldDiffers) -> Markup {
    let value =
        |text: &str| html! { @if text.is_empty() { i { "nothing" } } @else { (exact(&shortened(text))) } };
    // Pictures have names that nobody reads.
    let told = |text: &str| match field.name.as_str() {
        "draft_pictures" if !text.is_empty() => {
            counted(text.split(", ").count() as u64, "picture", "pictures")
        }
        _ => text.to_owned(),
    };
    html! {
        dt { (field.name.replace('_', " ")) }
        dd { del { (value(&told(&field.before))) } " → " ins { (value(&told(&field.after))) } }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
