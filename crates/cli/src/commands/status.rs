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

/// Show what was changed by hand since Retake last looked, and what is not held.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake status
  retake status --left-out                every path that is not held, and why

Looking records what was changed by hand as yours, so that an undo of the agent's work keeps it.")]
pub(crate) struct Arguments {
    /// Name every path that is not held.
    #[arg(long)]
    left_out: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    snapshot: retake_model::content::ContentId,
    version: u64,
    /// Files and links that are held, and their bytes.
    files_held: u64,
    bytes_held: u64,
    /// What was changed by hand since the last look.
    changed: FileReport,
    /// What is not held.
    left_out: Vec<NotHeld>,
}

const YOURS: &str = "Changed by hand, and recorded as yours:";
const THEIRS: &str = "Changed by what is at work here, or was when it died, and recorded as its doing:";

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
        // A tool or a program that is at work, or that did not live to say what it did.
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
                writeln!(out, "Nothing was changed by hand since the last look.")?;
            } else {
                writeln!(out, "{}", if by_hand { YOURS } else { THEIRS })?;
                write_report(out, context, &answer.changed)?;
            }
            let (files, bytes) = (counted(answer.files_held, "file", "files"), size(answer.bytes_held));
            writeln!(out, "Held: {files}, {bytes}.")?;
            write_left_out(out, styles, &answer.left_out, self.left_out)
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
    // What is ignored was left out on purpose; the rest a person may want to know of.
    let (ignored, other): (Vec<&NotHeld>, Vec<&NotHeld>) =
        left.iter().partition(|left| matches!(left.reason, Reason::Ignored | Reason::Repository));
    for left in other.iter().chain(ignored.iter().filter(|_| all)) {
        let name =
            if left.root.is_empty() { left.path.clone() } else { format!("{}:{}", left.root, left.path) };
        writeln!(
            out,
            "  {muted}not held{muted:#} {}  {muted}{}{muted:#}",
            sanitize(&name, Lines::Fold),
            words(left.reason)
        )?;
    }
    if !ignored.is_empty() && !all {
        let count = counted(ignored.len() as u64, "path is", "paths are");
        writeln!(out, "{muted}{count} ignored; --left-out names them.{muted:#}")?;
    }
    Ok(())
}

/// Why a path is not held, in words.
pub(crate) fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Ignored => "ignored",
        Reason::Secret => "likely a secret; `files.include` holds it all the same",
        Reason::TooLarge => "larger than files.largest",
        Reason::Special => "a pipe, a socket or a device",
        Reason::Unreadable => "it cannot be read",
        Reason::Changing => "it kept changing while it was read",
        Reason::Repository => "belongs to version control",
        Reason::BadName => "its name cannot be restored",
        Reason::Mounted => "another file system",
        Reason::OtherProject => "another project, or the worktree of a take",
        Reason::NotSealed => "its bytes were not sealed here",
        Reason::ModeBits => "held, but without its setuid, setgid or sticky bit",
    }
}
