//! Unified diff output.

use std::io::{self, Write};

use anstyle::Style;
use retake_model::diff::{LineSide, WordRun, words};
use retake_timeline::{ContentComparison, FileDiff, FileFacts, HunkView, LineView};

use crate::ui::bytes::size;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// How changed words are marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum WordStyle {
    /// By colour, within removed and added lines.
    Highlighted,
    /// As `[-removed-]{+added+}`, within the text.
    Marked,
}

/// Writes the differences of one path.
pub(super) fn write(
    out: &mut dyn Write,
    styles: &Styles,
    file: &FileDiff,
    words: WordStyle,
) -> io::Result<()> {
    write_head(out, styles, file)?;
    for hunk in &file.hunks {
        write_hunk(out, styles, hunk, words)?;
    }
    Ok(())
}

fn write_head(out: &mut dyn Write, styles: &Styles, file: &FileDiff) -> io::Result<()> {
    let title = styles.title;
    let new = file.path.to_string();
    let old = file.from.as_ref().map_or_else(
        || new.clone(),
        |from| retake_model::path::RootPath { root: file.path.root.clone(), path: from.clone() }.to_string(),
    );
    let (old, new) = (sanitize(&old, LineBreaks::Fold), sanitize(&new, LineBreaks::Fold));
    let mut line = |text: String| writeln!(out, "{title}{text}{title:#}");
    line(format!("diff --git a/{old} b/{new}"))?;
    match (file.before.as_ref().map(mode), file.after.as_ref().map(mode)) {
        (None, Some(mode)) => line(format!("new file mode {mode}"))?,
        (Some(mode), None) => line(format!("deleted file mode {mode}"))?,
        (Some(before), Some(after)) if before != after => {
            line(format!("old mode {before}"))?;
            line(format!("new mode {after}"))?;
        }
        _ => {}
    }
    if file.from.is_some() {
        line(format!("rename from {old}"))?;
        line(format!("rename to {new}"))?;
    }
    let bytes = |facts: &Option<FileFacts>| match facts {
        Some(FileFacts::File { size, .. }) => *size,
        _ => 0,
    };
    let sizes = || format!("{} → {}", size(bytes(&file.before)), size(bytes(&file.after)));
    match file.content {
        ContentComparison::Text if !file.hunks.is_empty() => {
            let before = if file.before.is_some() { format!("a/{old}") } else { "/dev/null".to_owned() };
            let after = if file.after.is_some() { format!("b/{new}") } else { "/dev/null".to_owned() };
            line(format!("--- {before}"))?;
            line(format!("+++ {after}"))
        }
        ContentComparison::Binary => writeln!(out, "Not text: {}", sizes()),
        ContentComparison::TooLarge => writeln!(out, "Too large to compare: {}", sizes()),
        ContentComparison::Text | ContentComparison::Same | ContentComparison::Different => Ok(()),
    }
}

/// File type and permissions in git's notation.
fn mode(facts: &FileFacts) -> String {
    match facts {
        FileFacts::File { mode, .. } => format!("100{mode}"),
        FileFacts::Link { .. } => "120000".to_owned(),
        FileFacts::Folder { mode } => format!("040{mode}"),
    }
}

fn write_hunk(out: &mut dyn Write, styles: &Styles, hunk: &HunkView, words: WordStyle) -> io::Result<()> {
    let HunkView { before_start, before_lines, after_start, after_lines, .. } = hunk;
    let range = |start: &u64, lines: &u64| match lines {
        1 => start.to_string(),
        _ => format!("{start},{lines}"),
    };
    let count = styles.count;
    let (before, after) = (range(before_start, before_lines), range(after_start, after_lines));
    writeln!(out, "{count}@@ -{before} +{after} @@{count:#}")?;
    // If every line ends in a carriage return, that is the file's style; if only some do, it is a change.
    let returns = hunk.lines.iter().all(|line| line.no_newline || line.text().ends_with('\r'));
    let ends = if returns { LineEndings::Hidden } else { LineEndings::Shown };
    if words == WordStyle::Marked {
        return write_marked(out, styles, &hunk.lines, ends);
    }
    for line in &hunk.lines {
        write_line(out, styles, line, ends)?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEndings {
    Shown,
    Hidden,
}

impl LineEndings {
    fn of(self, text: &str) -> &str {
        match self {
            Self::Shown => text,
            Self::Hidden => text.strip_suffix('\r').unwrap_or(text),
        }
    }
}

fn look(styles: &Styles, side: LineSide) -> (char, Style) {
    match side {
        LineSide::Both => (' ', Style::new()),
        LineSide::Removed => ('-', styles.removed),
        LineSide::Added => ('+', styles.added),
    }
}

fn write_line(out: &mut dyn Write, styles: &Styles, line: &LineView, ends: LineEndings) -> io::Result<()> {
    let (sign, style) = look(styles, line.side);
    write!(out, "{style}{sign}{style:#}")?;
    let last = line.parts.len().saturating_sub(1);
    for (index, part) in line.parts.iter().enumerate() {
        let style = if part.changed { style.invert() } else { style };
        let text = if index == last { ends.of(&part.text) } else { &part.text };
        write!(out, "{style}{}{style:#}", sanitize(text, LineBreaks::Keep))?;
    }
    writeln!(out)?;
    if line.no_newline {
        writeln!(out, "{0}\\ No newline at end of file{0:#}", styles.muted)?;
    }
    Ok(())
}

/// Writes removed lines and their replacement as one text with marks.
fn write_marked(
    out: &mut dyn Write,
    styles: &Styles,
    lines: &[LineView],
    ends: LineEndings,
) -> io::Result<()> {
    for group in lines.chunk_by(|left, right| (left.side == LineSide::Both) == (right.side == LineSide::Both))
    {
        if group[0].side == LineSide::Both {
            for line in group {
                writeln!(out, "{}", sanitize(ends.of(&line.text()), LineBreaks::Keep))?;
            }
            continue;
        }
        let text = |side: LineSide| -> String {
            let lines = group.iter().filter(|line| line.side == side);
            lines.flat_map(|line| [ends.of(&line.text()).to_owned(), "\n".to_owned()]).collect()
        };
        let (went, came) = (text(LineSide::Removed), text(LineSide::Added));
        let whole = || {
            let both = [WordRun::Removed(went.as_bytes()), WordRun::Added(came.as_bytes())];
            both.into_iter().collect::<Vec<_>>()
        };
        let runs = words(went.as_bytes(), came.as_bytes()).unwrap_or_else(whole);
        let mut at_start = true;
        for run in runs {
            let (text, open, close, style) = match run {
                WordRun::Same(text) => (text, "", "", Style::new()),
                WordRun::Removed(text) => (text, "[-", "-]", styles.removed),
                WordRun::Added(text) => (text, "{+", "+}", styles.added),
            };
            for piece in String::from_utf8_lossy(text).split_inclusive('\n') {
                let shown = piece.strip_suffix('\n').unwrap_or(piece);
                if !shown.is_empty() {
                    let shown = sanitize(shown, LineBreaks::Keep);
                    write!(out, "{style}{open}{shown}{close}{style:#}")?;
                    at_start = false;
                }
                // A removed line break does not break the line.
                if piece.ends_with('\n') && !(at_start && matches!(run, WordRun::Removed(_))) {
                    writeln!(out)?;
                    at_start = true;
                }
            }
        }
        if !at_start {
            writeln!(out)?;
        }
    }
    Ok(())
}
