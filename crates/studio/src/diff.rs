//! What differs between two moments of files.

use maud::{Markup, html};
use retake_model::diff::Side;
use retake_model::id::ThreadId;
use retake_model::tree::Happened;
use retake_timeline::{Changes, Compared, FileDiff, HunkView, LineView, Stat};
use retake_words::number::counted;

use crate::draw::{address, exact};

/// More lines of a file are not drawn.
const MOST_LINES: usize = 1_000;
/// More files are not drawn.
const MOST_FILES: usize = 50;
/// When so many lines are drawn, of further files only the names are.
const MOST_IN_ALL: usize = 3_000;

/// All files that differ, each with a way to see who wrote its lines.
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

/// Where it is said who wrote the lines of a file.
pub(crate) fn blame_of(thread: ThreadId, file: &FileDiff) -> String {
    let path = file.path.path.to_string();
    address(&format!("/studio/threads/{thread}/blame"), &[("path", &path), ("root", &file.path.root)])
}

/// All files that differ, each with what can be done with it.
pub(crate) fn draw_with(changes: &Changes, acts: impl Fn(&FileDiff) -> Markup) -> Markup {
    let left = changes.files.len().saturating_sub(MOST_FILES) as u64;
    let mut room = MOST_IN_ALL;
    let mut files = Vec::new();
    for file in changes.files.iter().take(MOST_FILES) {
        files.push(draw_file(file, &acts(file), room.min(MOST_LINES)));
        room = room.saturating_sub(lines_of(file).min(MOST_LINES));
    }
    html! {
        // One file says itself how much of it differs.
        @if changes.files.len() != 1 { p { (stat(&changes.stat)) } }
        @for file in &files { (file) }
        @if left > 0 { p class="quiet" { "And " (counted(left, "file", "files")) " more." } }
    }
}

fn lines_of(file: &FileDiff) -> usize {
    file.hunks.iter().map(|hunk| hunk.lines.len()).sum()
}

/// How many files and lines differ.
pub(crate) fn stat(stat: &Stat) -> Markup {
    html! {
        span class="stat" {
            (counted(stat.files, "file", "files")) " "
            span class="added" { "+" (stat.lines.added) } " " span class="removed" { "−" (stat.lines.removed) }
        }
    }
}

/// What happened to a file, and to how many of its lines.
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
            // Beside the line that folds, not in it: what is pressed there folds.
            span class="of-file" { (acts) }
            @match file.content {
                Compared::Binary => p class="quiet" { "Not text." },
                Compared::TooLarge => p class="quiet" { "Too large to be compared line by line." },
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
        @if lines_of(file) > most { p class="quiet" { "More lines differ than are shown." } }
    }
}

/// The first lines of a hunk, each with its numbers before and after.
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
        Happened::Removed => "gone",
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
