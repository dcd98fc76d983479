//! What differs between two moments of files.

use maud::{Markup, html};
use retake_model::diff::Side;
use retake_model::tree::Happened;
use retake_timeline::{Changes, Compared, FileDiff};
use retake_words::number::counted;

use crate::draw::exact;

/// More lines are not drawn at once.
const MOST_LINES: usize = 1_000;

/// All files that differ.
pub(crate) fn draw(changes: &Changes) -> Markup {
    let stat = &changes.stat;
    html! {
        p class="stat" {
            (counted(stat.files, "file", "files")) " "
            span class="added" { "+" (stat.lines.added) } " " span class="removed" { "−" (stat.lines.removed) }
        }
        @for file in &changes.files { (draw_file(file)) }
    }
}

fn draw_file(file: &FileDiff) -> Markup {
    let lines: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let path = path_of(file);
    html! {
        details class="file" open[lines <= 200] data-path=(path) {
            summary {
                span class=(format!("badge {}", class_of(file.happened))) { (word(file.happened)) } " "
                code { (exact(&path)) }
                @if let Some(from) = &file.from { span class="quiet" { " from " (exact(&from.to_string())) } }
                @if let Some(lines) = &file.lines {
                    " " span class="added" { "+" (lines.added) } " " span class="removed" { "−" (lines.removed) }
                }
                @if file.happened != Happened::Removed {
                    button type="button" class="blame-of" data-act="blame" data-file=(file.path.path.to_string()) data-root=(file.path.root)
                        title="Which turn wrote each line" { "Blame" }
                }
            }
            @match file.content {
                Compared::Binary => p class="quiet" { "Not text." },
                Compared::TooLarge => p class="quiet" { "Too large to be compared line by line." },
                _ => (hunks(file)),
            }
        }
    }
}

fn hunks(file: &FileDiff) -> Markup {
    let mut left = MOST_LINES;
    html! {
        @if !file.hunks.is_empty() {
            table class="diff" role="presentation" {
                @for hunk in &file.hunks {
                    tbody {
                        tr class="hunk" {
                            td {} td {}
                            td { "@@ −" (hunk.before_start) "," (hunk.before_lines) " +" (hunk.after_start) "," (hunk.after_lines) " @@" }
                        }
                        @let mut before = hunk.before_start;
                        @let mut after = hunk.after_start;
                        @for line in &hunk.lines {
                            @if left > 0 {
                                @let (class, sign) = match line.side {
                                    Side::Both => ("both", " "),
                                    Side::Removed => ("removed", "−"),
                                    Side::Added => ("added", "+"),
                                };
                                tr class=(class) {
                                    td class="number" { @if line.side != Side::Added { (before) } }
                                    td class="number" { @if line.side != Side::Removed { (after) } }
                                    td {
                                        span class="sign" aria-hidden="true" { (sign) }
                                        @for part in &line.parts {
                                            @if part.changed { mark { (exact(&part.text)) } } @else { (exact(&part.text)) }
                                        }
                                    }
                                }
                                @let _ = { if line.side != Side::Added { before += 1 } if line.side != Side::Removed { after += 1 } left -= 1; };
                            }
                        }
                    }
                }
            }
            @if left == 0 { p class="quiet" { "More lines differ than are shown." } }
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
