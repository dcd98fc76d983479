//! `retake status`

use clap::Args;
use retake_model::object::load;
use retake_model::operation::OperationKind;
use retake_model::tree::{Reason, Snapshot};
use retake_timeline::{FileReport, LookError, NotHeld};
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::{write_recovered, write_report};
use crate::failure::Failure;
use crate::ui::bytes::{counted, size};
use crate::ui::sanitize::{Lines, sanitize};

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
    files_held: u64,
    bytes_held: u64,
    /// Changes since the last snapshot.
    changed: FileReport,
    left_out: Vec<NotHeld>,
}

const YOURS: &str = "Your changes, now recorded:";
const THEIRS: &str = "Changed by a running or crashed tool, now recorded:";

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.look()?, self.target.thread.as_deref())?.summary.id;
        let desk = context.desk_of(thread)?;
        let seen = desk.look(thread, context.caller(thread, self.target.expect)?)?;
        let looking = context.timeline()?.look()?;
        let snapshot: Snapshot = load(&looking.queries(), seen.snapshot).map_err(LookError::from)?;
        let answer = Answer {
            snapshot: seen.snapshot,
            version: seen.version,
            files_held: snapshot.files(),
            bytes_held: snapshot.bytes(),
            left_out: looking.left_out(&snapshot)?,
            changed: seen.files,
        };
        // Otherwise a running or crashed tool made the changes.
        let by_hand = seen
            .operation
            .as_ref()
            .is_some_and(|done| matches!(done.kind, Some(OperationKind::FilesSeen { .. })));
        context.answer(&answer, |out, styles| {
            if let Some(recovered) =
                answer.changed.recovered.as_ref().filter(|_| answer.changed.paths.is_empty())
            {
                write_recovered(out, context, recovered)?;
            }
            if answer.changed.paths.is_empty() {
                writeln!(out, "No changes since the last snapshot.")?;
            } else {
                writeln!(out, "{}", if by_hand { YOURS } else { THEIRS })?;
                write_report(out, context, &answer.changed)?;
            }
            let (files, bytes) = (counted(answer.files_held, "file", "files"), size(answer.bytes_held));
            writeln!(out, "Captured: {files}, {bytes}.")?;
            write_left_out(out, styles, &answer.left_out, self.excluded)
        })
    }
}

pub(crate) fn write_left_out(
    out: &mut dyn std::io::Write,
    styles: &crate::ui::style::Styles,
    left: &[NotHeld],
    all: bool,
) -> std::io::Result<()> {
    let muted = styles.muted;
    // Ignored files are excluded on purpose; the others are worth listing.
    let (ignored, other): (Vec<&NotHeld>, Vec<&NotHeld>) =
        left.iter().partition(|left| matches!(left.reason, Reason::Ignored | Reason::Repository));
    for left in other.iter().chain(ignored.iter().filter(|_| all)) {
        let name =
            if left.root.is_empty() { left.path.clone() } else { format!("{}:{}", left.root, left.path) };
        writeln!(
            out,
            "  {muted}excluded{muted:#} {}  {muted}{}{muted:#}",
            sanitize(&name, Lines::Fold),
            words(left.reason)
        )?;
    }
    if !ignored.is_empty() && !all {
        let count = counted(ignored.len() as u64, "path is", "paths are");
        writeln!(out, "{muted}{count} ignored; --excluded lists them.{muted:#}")?;
    }
    Ok(())
}

pub(crate) fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Ignored => "ignored",
        Reason::Secret => "likely a secret; `files.include` captures it anyway",
        Reason::TooLarge => "larger than `files.largest`",
        Reason::Special => "pipe, socket or device",
        Reason::Unreadable => "not readable",
        Reason::Changing => "kept changing while it was read",
        Reason::Repository => "belongs to version control",
        Reason::BadName => "the name cannot be restored",
        Reason::Mounted => "another file system",
        Reason::OtherProject => "another project, or the worktree of a take",
        Reason::NotSealed => "not sealed on this machine",
        Reason::ModeBits => "captured without its setuid, setgid or sticky bit",
    }
}
