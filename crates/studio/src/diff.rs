//! File diffs.

use maud::{Markup, html};
use retake_model::diff::LineSide;
use retake_model::id::ThreadId;
use retake_model::tree::PathChangeKind;
use retake_render::number::counted;
use retake_timeline::{Changes, ContentComparison, FileDiff, HunkView, LineView, Stat};

use crate::draw::{address, with_visible_controls};

/// Maximum lines per file.
const MAX_LINES: usize = 1_000;
/// Maximum files.
const MAX_FILES: usize = 50;
/// Maximum lines of all files; further files are shown by name only.
const MAX_TOTAL_LINES: usize = 3_000;

/// All changed files with links to blame.
pub(crate) fn draw(thread: ThreadId, changes: &Changes) -> Markup {
    draw_with(changes, |file| {
        html! {
            @if file.change != PathChangeKind::Removed {
                @let to = blame_of(thread, file);
                a class="blame-of" href=(to) data-act="show" data-src=(to) title="Which turn wrote each line" { "Blame" }
            }
        }
    })
}

/// Address of the blame page of a file.
pub(crate) fn blame_of(thread: ThreadId, file: &FileDiff) -> String {
    let path = file.path.path.to_string();
    address(&format!("/studio/threads/{thread}/blame"), &[("path", &path), ("root", &file.path.root)])
}

/// All changed files with their actions.
pub(crate) fn draw_with(changes: &Changes, acts: impl Fn(&FileDiff) -> Markup) -> Markup {
    let left = changes.files.len().saturating_sub(MAX_FILES) as u64;
    let mut room = MAX_TOTAL_LINES;
    let mut files = Vec::new();
    for file in changes.files.iter().take(MAX_FILES) {
        files.push(draw_file(file, &acts(file), room.min(MAX_LINES)));
        room = room.saturating_sub(lines_of(file).min(MAX_LINES));
    }
    html! {
        // A single file shows its own statistics.
        @if changes.files.len() != 1 { p { (stat(&changes.stat)) } }
        @for file in &files { (file) }
        @if left > 0 { p class="quiet" { "And " (counted(left, "file", "files")) " more." } }
    }
}

fn lines_of(file: &FileDiff) -> usize {
    file.hunks.iter().map(|hunk| hunk.lines.len()).sum()
}

pub(crate) fn stat(stat: &Stat) -> Markup {
    html! {
        span class="stat" {
            (counted(stat.files, "file", "files")) " "
            span class="added" { "+" (stat.lines.added) } " " span class="removed" { "−" (stat.lines.removed) }
        }
    }
}

/// The kind of change of a file, its path and line counts.
pub(crate) fn headline(file: &FileDiff) -> Markup {
    html! {
        span class=(format!("badge {}", class_of(file.change))) { (word(file.change)) } " "
        code { (with_visible_controls(&path_of(file))) }
        @if let Some(from) = &file.from { span class="quiet" { " from " (with_visible_controls(&from.to_string())) } }
        @if let Some(lines) = &file.lines {
            " " span class="added" { "+" (lines.added) } " " span class="removed" { "−" (lines.removed) }
        }
    }
}

fn draw_file(file: &FileDiff, acts: &Markup, most: usize) -> Markup {
    html! {
        details class="file" open[lines_of(file) <= most.min(200)] data-path=(path_of(file)) {
            summary { (headline(file)) }
            // Outside of the summary, where a click would toggle it.
            span class="of-file" { (acts) }
            @match file.content {
                ContentComparison::Binary => p class="quiet" { "Binary file." },
                ContentComparison::TooLarge => p class="quiet" { "Too large for a line diff." },
                _ => (hunks(file, most)),
            }
        }
    }
}

fn hunks(file: &FileDiff, most: usize) -> Markup {
    let mut left = most;
    let mut shown = Vec::new();
    for hunk in &file.hunks {
        if left == 0 {
            break;
        }
        let few = left.min(hunk.lines.len());
        left -= few;
        shown.push((hunk, numbered(hunk, few)));
    }
    html! {
        @if !shown.is_empty() {
            table class="diff" role="presentation" {
                @for (hunk, lines) in &shown {
                    tbody {
                        tr class="hunk" {
                            td {} td {}
                            td { "@@ −" (hunk.before_start) "," (hunk.before_lines) " +" (hunk.after_start) "," (hunk.after_lines) " @@" }
                        }
                        @for (before, after, line) in lines { (draw_line(*before, *after, line)) }
                    }
                }
            }
        }
        @if lines_of(file) > most { p class="quiet" { "Further lines are not shown." } }
    }
}

/// The first lines of a hunk with their old and new line numbers.
fn numbered(hunk: &HunkView, few: usize) -> Vec<(Option<u64>, Option<u64>, &LineView)> {
    let (mut before, mut after) = (hunk.before_start, hunk.after_start);
    let number = |line| {
        let line: &LineView = line;
        let numbers = (
            (line.side != LineSide::Added).then_some(before),
            (line.side != LineSide::Removed).then_some(after),
            line,
        );
        before += u64::from(numbers.0.is_some());
        after += u64::from(numbers.1.is_some());
        numbers
    };
    hunk.lines.iter().take(few).map(number).collect()
}

fn draw_line(before: Option<u64>, after: Option<u64>, line: &LineView) -> Markup {
    let (class, sign) = match line.side {
        LineSide::Both => ("both", " "),
        LineSide::Removed => ("removed", "−"),
        LineSide::Added => ("added", "+"),
    };
    html! {
        tr class=(class) {
            td class="number" { @if let Some(before) = before { (before) } }
            td class="number" { @if let Some(after) = after { (after) } }
            td {
                span class="sign" aria-hidden="true" { (sign) }
                @for part in &line.parts {
                    @if part.changed { mark { (with_visible_controls(&part.text)) } } @else { (with_visible_controls(&part.text)) }
                }
            }
        }
    }
}

pub(crate) fn path_of(file: &FileDiff) -> String {
    match file.path.root.as_str() {
        "" => file.path.path.to_string(),
        root => format!("{root}:{}", file.path.path),
    }
}

fn word(change: PathChangeKind) -> &'static str {
    match change {
        PathChangeKind::Added => "new",
        PathChangeKind::Changed => "changed",
        PathChangeKind::Removed => "deleted",
        PathChangeKind::Renamed => "renamed",
        PathChangeKind::ModeChanged => "mode",
        PathChangeKind::TypeChanged => "type",
    }
}

fn class_of(change: PathChangeKind) -> &'static str {
    match change {
        PathChangeKind::Added => "added",
        PathChangeKind::Removed => "removed",
        _ => "changed",
    }
}
