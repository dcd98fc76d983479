//! Differences between two versions: the effect of a move or of an operation.

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

/// Maximum entries to list; the others are counted.
const NAMED: usize = 12;
/// Maximum operations with file changes to read between two versions.
const LOOKED_BACK: usize = 1_000;

/// The differences from version `before` to version `at`.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let (Some(from), Some(to)) = (asked.before, asked.at) else {
        return Err(Failed::not_found("The parameters `before` and `at` are required."));
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

/// The paths that the user edited between two versions. A move keeps these edits, so that the preview lists these paths
/// separately and not as differences of the versions.
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

/// The files of a version, or the first recorded files if it is older.
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
        several(differing.entries_went, "removed", "removed"),
        several(differing.entries_came, "added", "added"),
        several(differing.entries_changed, "changed", "changed"),
    ];
    let sum: Vec<String> = sum.into_iter().flatten().collect();
    html! {
        p { @if sum.is_empty() { "No entries change." } @else { (sum.join(", ")) "." } }
        @if all > 0 {
            ul class="differs" { @for entry in &differing.entries { (draw_entry(entry)) } }
        }
        @if more > 0 { p class="quiet" { "and " (counted(more, "entry", "entries")) " more" } }
    }
}

fn draw_entry(differs: &EntryDiffers) -> Markup {
    let (class, sign, word) = match (&differs.before, &differs.after) {
        (Some(_), None) => ("removed", "−", "removed"),
        (None, _) => ("added", "+", "added"),
        _ => ("changed", "±", "changed"),
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
    // Content ids of pictures mean nothing to users.
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
