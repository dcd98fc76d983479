//! File diffs.

use maud::{Markup, html};
use retake_model::diff::Side;
use retake_model::id::ThreadId;
use retake_model::tree::Happened;
use retake_timeline::{Changes, Compared, FileDiff, HunkView, LineView, Stat};
use retake_words::number::counted;

use crate::draw::{address, exact};

/// Maximum lines per file.
const MOST_LINES: usize = 1_000;
/// Maximum files.
const MOST_FILES: usize = 50;
/// Maximum lines of all files; further files are shown by name only.
const MOST_IN_ALL: usize = 3_000;

/// All changed files with links to blame.
pub(crate) fn draw(thread: ThreadId, changes: &Changes) -> Markup {
    draw_with(changes, |file| {
        html! {
            @if file.happened != Happened::Removed {
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
    let left = changes.files.len().saturating_sub(MOST_FILES) as u64;
    let mut room = MOST_IN_ALL;
    let mut files = Vec::new();
    for file in changes.files.iter().take(MOST_FILES) {
        files.push(draw_file(file, &acts(file), room.min(MOST_LINES)));
        room = room.saturating_sub(lines_of(file).min(MOST_LINES));
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
        span class=(format!("badge {}", class_of(file.happened))) { (word(file.happened)) } " "
        code { (exact(&path_of(file))) }
        @if let Some(from) = &file.from { span class="quiet" { " from " (exact(&from.to_string())) } }
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
                Compared::Binary => p class="quiet" { "Binary file." },
                Compared::TooLarge => p class="quiet" { "Too large for a line diff." },
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
            (line.side != Side::Added).then_some(before),
            (line.side != Side::Removed).then_some(after),
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
        Side::Both => ("both", " "),
        Side::Removed => ("removed", "−"),
        Side::Added => ("added", "+"),
    };
    html! {
        tr class=(class) {
            td class="number" { @if let Some(before) = before { (before) } }
            td class="number" { @if let Some(after) = after { (after) } }
            td {
                span class="sign" aria-hidden="true" { (sign) }
                @for part in &line.parts {
                    @if part.changed { mark { (exact(&part.text)) } } @else { (exact(&part.text)) }
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

fn word(happened: Happened) -> &'static str {
    match happened {
        Happened::Added => "new",
        Happened::Changed => "changed",
        Happened::Removed => "deleted",
        Happened::Renamed => "renamed",
        Happened::ModeChanged => "mode",
        Happened::TypeChanged => "type",
    }
}

fn class_of(happened: Happened) -> &'static str {
    match happened {
        Happened::Added => "added",
        Happened::Removed => "removed",
        _ => "changed",
    }
}
