//! Text output for file changes.

use std::io::{self, Write};

use anstyle::Style;
use retake_model::operation::OperationKind;
use retake_timeline::{FileReport, Outcome, PathReport, Preview, RecoveredMove, WorktreePreview};

use crate::context::Context;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// How many paths are listed.
const MAX_SHOWN: usize = 20;

/// Writes file changes, or a preview of them.
pub(crate) fn write_report(out: &mut dyn Write, context: &Context, report: &FileReport) -> io::Result<()> {
    let styles = &context.styles;
    if let Some(recovered) = &report.recovered {
        write_recovered(out, context, recovered)?;
    }
    write_aside(out, context, &report.aside, report.preview)?;
    if report.files_unknown {
        let (warning, begins) = (styles.warning, if report.preview { "would begin" } else { "begins" });
        writeln!(
            out,
            "{warning}note:{warning:#} the files of that entry are unknown; the new take {begins} with the last files \
             of its source. `retake restore` restores those of another version."
        )?;
    }
    let reported: Vec<&PathReport> = report
        .paths
        .iter()
        .filter(|path| path.outcome != Outcome::Unchanged)
        // A created or removed folder is implied by its files.
        .filter(|path| !is_plain_folder(path))
        .collect();
    if reported.is_empty() {
        return writeln!(
            out,
            "{0}No files {1}.{0:#}",
            styles.muted,
            if report.preview { "would change" } else { "changed" }
        );
    }
    // Files that were left alone come first: they need attention.
    let (left, moved): (Vec<&PathReport>, Vec<&PathReport>) =
        reported.into_iter().partition(|path| path.outcome.left());
    writeln!(out, "{}", summary(report.preview, &left, &moved))?;
    for path in left.iter().chain(&moved).take(MAX_SHOWN) {
        write_path(out, context, path)?;
    }
    let more = (left.len() + moved.len()).saturating_sub(MAX_SHOWN);
    if more > 0 {
        let muted = styles.muted;
        writeln!(out, "  {muted}… and {more} more; --json lists all{muted:#}")?;
    }
    if report.paths.iter().any(|path| matches!(path.outcome, Outcome::Conflicted { written: false, .. })) {
        let muted = styles.muted;
        writeln!(
            out,
            "{muted}Both versions of conflicting files are kept: pass `--conflicts take` or `--conflicts mark` to resolve \
             them, or restore one file with `retake restore`.{muted:#}"
        )?;
    }
    Ok(())
}

/// Writes a preview of the file changes, and the changes that would be recorded first.
pub(crate) fn write_preview(out: &mut dyn Write, context: &Context, preview: &Preview) -> io::Result<()> {
    let muted = context.styles.muted;
    let verb = match preview.kind {
        Some(OperationKind::Undone { .. }) => "Would undo",
        Some(OperationKind::Redone { .. }) => "Would redo",
        // A jump can both undo and redo.
        _ => "Would pass",
    };
    for turn in preview.turns.iter().take(MAX_SHOWN) {
        let (title, name) = (context.styles.title, turn.to_string());
        writeln!(out, "{verb} {title}{}{title:#}", sanitize(&name, LineBreaks::Fold))?;
    }
    if let more @ 1.. = preview.turns.len().saturating_sub(MAX_SHOWN) {
        writeln!(out, "{muted}… and {}{muted:#}", counted(more as u64, "more turn", "more turns"))?;
    }
    let changed: Vec<&PathReport> = preview.unrecorded.iter().filter(|path| !is_plain_folder(path)).collect();
    if !changed.is_empty() {
        let count = counted(changed.len() as u64, "change", "changes");
        writeln!(out, "{count} in the folder would be recorded first:")?;
        for path in changed.iter().take(MAX_SHOWN) {
            write_path(out, context, path)?;
        }
        match changed.len().saturating_sub(MAX_SHOWN) {
            0 => {}
            more => writeln!(out, "  {muted}… and {more} more; --json lists all{muted:#}")?,
        }
    }
    if !preview.shared.is_empty() {
        let warning = context.styles.warning;
        let files = counted(preview.shared.len() as u64, "file", "files");
        writeln!(
            out,
            "{warning}Author unknown:{warning:#} {files} changed while another command or tool was running:"
        )?;
        for path in preview.shared.iter().take(MAX_SHOWN) {
            writeln!(out, "  {}", sanitize(&path.to_string(), LineBreaks::Fold))?;
        }
    }
    match (&preview.worktree, &preview.files) {
        (Some(worktree), _) => write_worktree(out, worktree),
        (None, Some(report)) => write_report(out, context, report),
        (None, None) => writeln!(out, "{muted}No files would change.{muted:#}"),
    }
}

fn write_worktree(out: &mut dyn Write, worktree: &WorktreePreview) -> io::Result<()> {
    match worktree {
        WorktreePreview::Open(opened) => {
            let path = opened.path.display().to_string();
            let files = counted(opened.files, "file", "files");
            writeln!(out, "Would create a worktree in {}: {files}.", sanitize(&path, LineBreaks::Fold))
        }
        WorktreePreview::Close { path, gone, removed } => {
            let what = match (gone, removed) {
                (true, _) => "is missing or was replaced; it would be forgotten",
                (_, true) => "would no longer be a worktree, and its recorded files would be removed",
                (_, false) => "would no longer be a worktree; its files would be kept",
            };
            writeln!(out, "{} {what}.", sanitize(path, LineBreaks::Fold))
        }
    }
}

/// Writes the report only if any file changed or was left alone.
pub(crate) fn write_if_any(
    out: &mut dyn Write,
    context: &Context,
    report: Option<&FileReport>,
) -> io::Result<()> {
    match report {
        Some(report)
            if report.moves_files()
                || report.left_something()
                || report.files_unknown
                || report.recovered.is_some() =>
        {
            write_report(out, context, report)
        }
        _ => Ok(()),
    }
}

/// Reports files that a power cut had emptied.
pub(crate) fn write_emptied(
    out: &mut dyn Write,
    context: &Context,
    emptied: &[PathReport],
) -> io::Result<()> {
    let warning = context.styles.warning;
    let restored = emptied.iter().filter(|path| path.outcome.moved()).count() as u64;
    let files = counted(emptied.len() as u64, "file", "files");
    writeln!(out, "{warning}Recovered:{warning:#} a power cut had emptied {files}; {restored} restored.")?;
    for path in emptied.iter().take(MAX_SHOWN) {
        write_path(out, context, path)?;
    }
    Ok(())
}

/// Reports a file move that a crash had interrupted.
pub(crate) fn write_recovered(
    out: &mut dyn Write,
    context: &Context,
    recovered: &RecoveredMove,
) -> io::Result<()> {
    let warning = context.styles.warning;
    let what = super::operation(&recovered.kind);
    let what = sanitize(&what, LineBreaks::Fold);
    write_aside(out, context, &recovered.aside, false)?;
    if recovered.finished {
        let paths = counted(recovered.paths.len() as u64, "file was", "files were");
        writeln!(
            out,
            "{warning}Recovered:{warning:#} {what} was interrupted; {paths} moved to their place."
        )?;
        for path in recovered.paths.iter().take(MAX_SHOWN) {
            write_path(out, context, path)?;
        }
        match recovered.paths.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => writeln!(out, "  {0}… and {more} more{0:#}", context.styles.muted),
        }
    } else {
        writeln!(
            out,
            "{warning}Abandoned:{warning:#} {what} was interrupted, and its folder no longer exists."
        )
    }
}

fn write_aside(out: &mut dyn Write, context: &Context, aside: &[String], preview: bool) -> io::Result<()> {
    let warning = context.styles.warning;
    let (moved, contains, replaced) = if preview {
        ("To be moved aside:", "will contain", "replaces")
    } else {
        ("Moved aside:", "contains", "replaced")
    };
    for file in aside {
        let file = sanitize(file, LineBreaks::Fold);
        writeln!(
            out,
            "{warning}{moved}{warning:#} {file} {contains} an unrecorded version that another file {replaced}."
        )?;
    }
    Ok(())
}

fn is_plain_folder(path: &PathReport) -> bool {
    !path.outcome.left() && path.is_folder()
}

fn summary(preview: bool, left: &[&PathReport], moved: &[&PathReport]) -> String {
    let count = |of: &dyn Fn(&Outcome) -> bool| moved.iter().filter(|path| of(&path.outcome)).count() as u64;
    let written = count(&|outcome| !matches!(outcome, Outcome::Removed));
    let removed = count(&|outcome| matches!(outcome, Outcome::Removed));
    let merged = count(&|outcome| matches!(outcome, Outcome::Merged));
    let mut parts = Vec::new();
    let prefix = if preview { "to be " } else { "" };
    if written > 0 {
        parts.push(format!("{} {prefix}written", counted(written, "file", "files")));
    }
    if merged > 0 {
        parts.push(format!("{merged} of them merged with later changes"));
    }
    if removed > 0 {
        parts.push(format!("{} {prefix}removed", counted(removed, "file", "files")));
    }
    if !left.is_empty() {
        parts.push(format!("{} left unchanged", counted(left.len() as u64, "file", "files")));
    }
    format!("Files: {}.", parts.join(", "))
}

fn write_path(out: &mut dyn Write, context: &Context, path: &PathReport) -> io::Result<()> {
    let styles = &context.styles;
    let (mark, style, why): (&str, Style, String) = match &path.outcome {
        Outcome::Written if path.before.is_none() => ("+", styles.added, String::new()),
        Outcome::Written => ("~", styles.count, String::new()),
        Outcome::Merged => ("~", styles.count, "merged with later changes".to_owned()),
        Outcome::Removed => ("-", styles.removed, String::new()),
        Outcome::Unchanged => ("=", styles.muted, String::new()),
        Outcome::Conflicted { written: true, .. } => {
            ("!", styles.warning, "overwritten despite a conflict".to_owned())
        }
        Outcome::Conflicted { partly: true, .. } => {
            ("!", styles.warning, "changed since; written without the conflicting change".to_owned())
        }
        Outcome::Conflicted { .. } => ("!", styles.warning, "changed since; left unchanged".to_owned()),
        Outcome::Kept => ("!", styles.warning, "changed just now; left unchanged".to_owned()),
        Outcome::Skipped { reason } => ("!", styles.warning, format!("{reason}; left unchanged")),
    };
    let why = match path.note {
        Some(note) if why.is_empty() => note.to_owned(),
        Some(note) => format!("{why}; {note}"),
        None => why,
    };
    let name = path.path.to_string();
    let name = sanitize(&name, LineBreaks::Fold);
    let muted = styles.muted;
    if why.is_empty() {
        writeln!(out, "  {style}{mark}{style:#} {name}")
    } else {
        writeln!(out, "  {style}{mark}{style:#} {name}  {muted}{}{muted:#}", sanitize(&why, LineBreaks::Fold))
    }
}
