//! Counts of added and removed lines per file.

use std::io::{self, Write};

use retake_model::tree::PathChangeKind;
use retake_timeline::{Changes, ContentComparison, FileDiff, FileFacts};

use crate::context::Context;
use crate::ui::bytes::{count, counted, size};
use crate::ui::label::Label;
use crate::ui::style::Styles;
use crate::ui::table::{Column, Table};

/// Maximum width of the graph of one file.
const MAX_SIGNS: u64 = 24;

pub(super) fn write(out: &mut dyn Write, context: &Context, changes: &Changes) -> io::Result<()> {
    if changes.files.is_empty() {
        return Ok(());
    }
    let lines = |file: &FileDiff| file.lines.map_or(0, |lines| lines.added + lines.removed);
    let most = changes.files.iter().map(lines).max().unwrap_or(0);
    let mut table = Table::new([Column::left("").flexible(), Column::right(""), Column::left("")]);
    for file in &changes.files {
        let total = file.lines.map(|_| Label::from(count(lines(file)).as_str())).unwrap_or_default();
        table.row([name(&context.styles, file), total, graph(&context.styles, file, most)]);
    }
    write!(out, "{}", table.render(context.screen.columns(), context.styles.heading))?;
    let stat = changes.stat;
    let files = counted(stat.files, "file differs", "files differ");
    let added = counted(stat.lines.added, "line added", "lines added");
    writeln!(out, "{files}, {added}, {} removed", count(stat.lines.removed))
}

fn name(styles: &Styles, file: &FileDiff) -> Label {
    let label = match &file.from {
        Some(from) => Label::new().with(styles.muted, &format!("{from} → ")),
        None => Label::new(),
    };
    label.plain(&file.path.to_string())
}

fn graph(styles: &Styles, file: &FileDiff, most: u64) -> Label {
    let Some(lines) = file.lines else {
        let bytes = |facts: &Option<FileFacts>| match facts {
            Some(FileFacts::File { size, .. }) => *size,
            _ => 0,
        };
        let sizes = format!("{} → {}", size(bytes(&file.before)), size(bytes(&file.after)));
        return match file.content {
            ContentComparison::Binary => Label::from(format!("not text, {sizes}").as_str()),
            ContentComparison::TooLarge => Label::from(format!("too large to compare, {sizes}").as_str()),
            _ => Label::new().with(styles.muted, change_label(file.change)),
        };
    };
    // Any change shows at least one sign.
    let signs = |lines: u64| match most {
        0..=MAX_SIGNS => lines,
        _ => (lines * MAX_SIGNS).div_ceil(most),
    };
    Label::new()
        .with(styles.added, &"+".repeat(signs(lines.added) as usize))
        .with(styles.removed, &"-".repeat(signs(lines.removed) as usize))
}

pub(in crate::commands) fn change_label(change: PathChangeKind) -> &'static str {
    match change {
        PathChangeKind::Added => "added",
        PathChangeKind::Changed => "changed",
        PathChangeKind::Removed => "removed",
        PathChangeKind::Renamed => "renamed",
        PathChangeKind::ModeChanged => "permissions changed",
        PathChangeKind::TypeChanged => "type changed",
    }
}
