//! `retake status`

use clap::Args;
use retake_model::object::load;
use retake_model::operation::OperationKind;
use retake_model::tree::{ExclusionReason, Snapshot};
use retake_timeline::{ExcludedFile, FileReport, ReadError};
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::{write_recovered, write_report};
use crate::failure::Failure;
use crate::ui::bytes::{counted, size};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Show your changes since the last snapshot, and excluded files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake status
  retake status --excluded                every excluded path, and why

Your changes are recorded as yours, so that undoing the agent's work keeps them.")]
pub(crate) struct Arguments {
    /// List every excluded path.
    #[arg(long)]
    excluded: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    snapshot: retake_model::content::ContentId,
    version: u64,
    /// Number and size of captured files and links.
    captured_files: u64,
    captured_bytes: u64,
    /// Changes since the last snapshot.
    changed: FileReport,
    excluded: Vec<ExcludedFile>,
}

const YOUR_CHANGES: &str = "Your changes, now recorded:";
const TOOL_CHANGES: &str = "Changed by a running or crashed tool, now recorded:";

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?.summary.id;
        let working_copy = context.working_copy_of(thread)?;
        let seen = working_copy.record_changes(thread, context.caller(thread, self.target.expect)?)?;
        let reader = context.timeline()?.read()?;
        let snapshot: Snapshot = load(&reader.queries(), seen.snapshot).map_err(ReadError::from)?;
        let answer = Answer {
            snapshot: seen.snapshot,
            version: seen.version,
            captured_files: snapshot.files(),
            captured_bytes: snapshot.bytes(),
            excluded: reader.snapshot(seen.snapshot).excluded()?,
            changed: seen.files,
        };
        // Otherwise a running or crashed tool made the changes.
        let by_hand = seen
            .operation
            .as_ref()
            .is_some_and(|done| matches!(done.kind, Some(OperationKind::ExternalEdits { .. })));
        context.answer(&answer, |out, styles| {
            if let Some(recovered) =
                answer.changed.recovered.as_ref().filter(|_| answer.changed.paths.is_empty())
            {
                write_recovered(out, context, recovered)?;
            }
            if answer.changed.paths.is_empty() {
                writeln!(out, "No changes since the last snapshot.")?;
            } else {
                writeln!(out, "{}", if by_hand { YOUR_CHANGES } else { TOOL_CHANGES })?;
                write_report(out, context, &answer.changed)?;
            }
            let (files, bytes) =
                (counted(answer.captured_files, "file", "files"), size(answer.captured_bytes));
            writeln!(out, "Captured: {files}, {bytes}.")?;
            write_excluded(out, styles, &answer.excluded, self.excluded)
        })
    }
}

pub(crate) fn write_excluded(
    out: &mut dyn std::io::Write,
    styles: &crate::ui::style::Styles,
    left: &[ExcludedFile],
    all: bool,
) -> std::io::Result<()> {
    let muted = styles.muted;
    // Ignored files are excluded on purpose; the others are worth listing.
    let (ignored, other): (Vec<&ExcludedFile>, Vec<&ExcludedFile>) = left
        .iter()
        .partition(|left| matches!(left.reason, ExclusionReason::Ignored | ExclusionReason::Repository));
    for left in other.iter().chain(ignored.iter().filter(|_| all)) {
        let name =
            if left.root.is_empty() { left.path.clone() } else { format!("{}:{}", left.root, left.path) };
        writeln!(
            out,
            "  {muted}excluded{muted:#} {}  {muted}{}{muted:#}",
            sanitize(&name, LineBreaks::Fold),
            words(left.reason)
        )?;
    }
    if !ignored.is_empty() && !all {
        let count = counted(ignored.len() as u64, "path is", "paths are");
        writeln!(out, "{muted}{count} ignored; --excluded lists them.{muted:#}")?;
    }
    Ok(())
}

pub(crate) fn words(reason: ExclusionReason) -> &'static str {
    match reason {
        ExclusionReason::Ignored => "ignored",
        ExclusionReason::Secret => "likely a secret; `files.include` captures it anyway",
        ExclusionReason::TooLarge => "larger than `files.largest`",
        ExclusionReason::Special => "pipe, socket or device",
        ExclusionReason::Unreadable => "not readable",
        ExclusionReason::Changing => "kept changing while it was read",
        ExclusionReason::Repository => "belongs to version control or to Retake",
        ExclusionReason::InvalidName => "the name cannot be restored",
        ExclusionReason::Mounted => "another file system",
        ExclusionReason::OtherProject => "another project, or the worktree of a take",
        ExclusionReason::NotSealed => "not sealed on this machine",
        ExclusionReason::ModeBits => "captured without its setuid, setgid or sticky bit",
    }
}
