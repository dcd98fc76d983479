//! Differences between two versions: the effect of a move or of an operation.

use std::collections::HashSet;

use maud::{Markup, html};
use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::operation::{OperationKind, Version};
use retake_model::path::RootPath;
use retake_render::number::counted;
use retake_timeline::{
    DEFAULT_CONTEXT, Detail, DiffOptions, EntryDifference, FieldDifference, Reader, Stat, VersionComparison,
};

use crate::diff;
use crate::draw::with_visible_controls;
use crate::entry::class_of;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// Maximum entries to list; the others are counted.
const MAX_ENTRIES: usize = 12;
/// Maximum operations with file changes to read between two versions.
const MAX_OPERATIONS: usize = 1_000;

/// The differences from version `before` to version `at`.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let (Some(from), Some(to)) = (query.before, query.at) else {
        return Err(PageError::not_found("The parameters `before` and `at` are required."));
    };
    let reader = studio.timeline.read()?;
    let comparison = reader.history(thread).compare([from, to], MAX_ENTRIES)?;
    let files = match (files_at(&reader, thread, from)?, files_at(&reader, thread, to)?) {
        (Some(before), Some(after)) if before != after => {
            let question = DiffOptions::all(Detail::Hunks(DEFAULT_CONTEXT));
            let mut changes = reader.snapshot(before).changes(after, &question)?;
            if query.about.as_deref() == Some("move") {
                let by_hand = changed_by_user(&reader, thread, [from, to])?;
                changes.files.retain(|file| !by_hand.contains(&file.path));
                changes.stat = Stat::of(&changes.files);
            }
            Some(changes).filter(|changes| !changes.files.is_empty())
        }
        _ => None,
    };
    Ok(html! {
        div class="between" {
            (entries(&comparison))
            (takes(&comparison))
            @if !comparison.fields.is_empty() {
                dl class="fields" { @for field in &comparison.fields { (draw_field(field)) } }
            }
            @if let Some(files) = &files { (diff::draw(thread, files)) }
        }
    })
}

/// The paths that the user edited between two versions. A move keeps these edits, so that the preview lists these paths
/// separately and not as differences of the versions.
fn changed_by_user(
    reader: &Reader<'_>,
    thread: ThreadId,
    moments: [Version; 2],
) -> Result<HashSet<RootPath>, PageError> {
    let (first, last) = (moments[0].min(moments[1]), moments[0].max(moments[1]));
    let question = DiffOptions::all(Detail::Paths);
    let mut found = HashSet::new();
    for at in reader.files(thread).list(last.checked_add(1), MAX_OPERATIONS)? {
        if at.version <= first {
            break;
        }
        if matches!(at.kind, OperationKind::ExternalEdits { .. }) {
            let changes = reader.snapshot(at.files.before).changes(at.files.after, &question)?;
            found.extend(changes.files.into_iter().map(|file| file.path));
        }
    }
    Ok(found)
}

/// The files of a version, or the first recorded files if it is older.
fn files_at(reader: &Reader<'_>, thread: ThreadId, version: Version) -> Result<Option<ContentId>, PageError> {
    if let Some(at) = reader.files(thread).at(version)? {
        return Ok(Some(at.files.after));
    }
    let first = reader.files(thread).list(None, usize::MAX)?.pop();
    Ok(first.map(|first| first.files.before))
}

fn entries(comparison: &VersionComparison) -> Markup {
    let all = comparison.entries_added + comparison.entries_removed + comparison.entries_changed;
    let more = all.saturating_sub(comparison.entries.len() as u64);
    let summarize = |count: u64, change: &str| {
        (count > 0).then(|| format!("{} {change}", counted(count, "entry", "entries")))
    };
    let sum = [
        summarize(comparison.entries_removed, "removed"),
        summarize(comparison.entries_added, "added"),
        summarize(comparison.entries_changed, "changed"),
    ];
    let sum: Vec<String> = sum.into_iter().flatten().collect();
    html! {
        p { @if sum.is_empty() { "No entries change." } @else { (sum.join(", ")) "." } }
        @if all > 0 {
            ul class="differs" { @for entry in &comparison.entries { (draw_entry(entry)) } }
        }
        @if more > 0 { p class="quiet" { "and " (counted(more, "entry", "entries")) " more" } }
    }
}

fn draw_entry(differs: &EntryDifference) -> Markup {
    let (class, sign, word) = match (&differs.before, &differs.after) {
        (Some(_), None) => ("removed", "−", "removed"),
        (None, _) => ("added", "+", "added"),
        _ => ("changed", "±", "changed"),
    };
    let line = |entry: &EntryVersion| {
        html! { span class=(format!("role {}", class_of(&entry.role))) { (entry.role) } " " span class="preview" { (with_visible_controls(&entry.preview())) } }
    };
    html! {
        li class=(class) {
            span class="sign" aria-hidden="true" { (sign) }
            span class="hidden" { (word) " " } span class="number" { (differs.number) } " "
            @match (&differs.before, &differs.after) {
                (Some(before), Some(after)) if before.preview() != after.preview() => {
                    (line(before)) " → " span class="preview" { (with_visible_controls(&after.preview())) }
                }
                (_, Some(entry)) | (Some(entry), None) => (line(entry)),
                (None, None) => {}
            }
        }
    }
}

fn takes(comparison: &VersionComparison) -> Markup {
    let list = |names: &[String], class: &str, sign: &str| {
        html! {
            @for name in names { li class=(class) { span class="sign" aria-hidden="true" { (sign) } "take " span class="name" { (name) } } }
        }
    };
    html! {
        @if !(comparison.takes_added.is_empty() && comparison.takes_removed.is_empty()) {
            ul class="differs" { (list(&comparison.takes_added, "added", "+")) (list(&comparison.takes_removed, "removed", "−")) }
        }
    }
}

fn draw_field(field: &FieldDifference) -> Markup {
    let value = |text: &str| html! { @if text.is_empty() { i { "nothing" } } @else { (with_visible_controls(&shortened(text))) } };
    // Content ids of pictures mean nothing to users.
    let label = |text: &str| match field.name.as_str() {
        "draft_pictures" if !text.is_empty() => {
            counted(text.split(", ").count() as u64, "picture", "pictures")
        }
        _ => text.to_owned(),
    };
    html! {
        dt { (field.name.replace('_', " ")) }
        dd { del { (value(&label(&field.before))) } " → " ins { (value(&label(&field.after))) } }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
