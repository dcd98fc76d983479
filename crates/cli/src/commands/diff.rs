//! `retake diff`

mod draw;
mod stat;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use retake_model::id::ThreadId;
use retake_timeline::{Changes, Comparison, DEFAULT_CONTEXT, Detail, DiffOptions, NamedFiles};
use serde::Serialize;

pub(super) use self::draw::WordStyle;
pub(super) use self::stat::change_label;
use crate::context::Context;
use crate::failure::Failure;
use crate::revisions::{Revisions, revisions, suggest_paths};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// Show differences between two versions of the files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake diff                             your changes since the agent's last change
  retake diff 12                          from version 12 to the folder
  retake diff 12 15 -- src                between two versions, only below src
  retake diff --of 15                     changes made by version 15
  retake diff turn:3                      changes made by turn 3
  retake diff turn:3 folder               changes since turn 3
  retake diff take:main take:main_take_1  between two takes
  retake diff \"before the rewrite\" --stat

A revision is a version number (see `retake history`), the name of a saved version, turn:NUMBER, take:NAME, folder, or \
the prefix of a snapshot id. One turn alone is compared with the files before it, \
without the files that only you changed meanwhile. Without any, the folder is compared with its state after the last change by this thread's agent or by \
undo, redo, jump or restore. Comparing with the folder records your changes in it.

Renamed files are detected. Files above 16 MiB or 400,000 lines are not compared line by line. Control characters are \
escaped.")]
pub(crate) struct Arguments {
    /// Revisions to compare [default: the files after the agent's last change, and the folder].
    #[arg(value_name = "REVISION", num_args = 0..=2)]
    revisions: Vec<String>,
    /// Limit to these files and folders.
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show the changes made by this version or turn.
    #[arg(long, value_name = "VERSION", conflicts_with = "revisions")]
    of: Option<String>,
    /// Show only the number of added and removed lines.
    #[arg(long, conflicts_with_all = ["name_only", "word"])]
    stat: bool,
    /// Show only paths.
    #[arg(long, conflicts_with = "word")]
    name_only: bool,
    /// Mark changed words instead of whole lines.
    #[arg(long)]
    word: bool,
    /// Number of context lines.
    #[arg(short = 'U', long, value_name = "N", default_value_t = DEFAULT_CONTEXT)]
    context: usize,
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    from: NamedFiles,
    to: NamedFiles,
    #[serde(flatten)]
    changes: Changes,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let revisions = revisions(context, self.thread.as_deref())?;
        let thread = revisions.thread.summary.id;
        let paths = self.paths.iter().map(|path| context.root_path_of(thread, path));
        let paths = paths.collect::<Result<Vec<_>, _>>()?;
        let Comparison { from, to, changed } = self.revisions(&revisions)?;
        let detail = match () {
            () if self.name_only => Detail::Paths,
            () if self.stat => Detail::Counts,
            () => Detail::Hunks(self.context),
        };
        let reader = context.timeline()?.read()?;
        let options = DiffOptions { paths, changed, detail };
        let changes = reader.snapshot(from.snapshot).changes(to.snapshot, &options)?;
        if changes.files.is_empty() {
            let paths: Vec<_> = options.paths.iter().map(ToString::to_string).collect();
            let where_found =
                if paths.is_empty() { String::new() } else { format!(" in {}", paths.join(", ")) };
            context.note(&format!("No differences between {} and {}{where_found}.", from.name, to.name))?;
        }
        note_outside_turn(context, &changes)?;
        let answer = Answer { thread, from, to, changes };
        context.answer(&answer, |out, styles| {
            if self.name_only {
                for file in &answer.changes.files {
                    writeln!(out, "{}", sanitize(&file.path.to_string(), LineBreaks::Fold))?;
                }
                return Ok(());
            }
            let words = if self.word { WordStyle::Marked } else { WordStyle::Highlighted };
            write_changes(out, context, &answer.changes, (!self.stat).then_some(words), styles)
        })
    }

    fn revisions(&self, revisions: &Revisions<'_>) -> Result<Comparison, Failure> {
        if let Some(text) = &self.of {
            return Ok(revisions.of(text)?);
        }
        let mut named = self.revisions.iter().map(String::as_str);
        revisions.between(named.next(), named.next()).map_err(suggest_paths)
    }
}

/// Notes the paths that others changed during a turn.
pub(super) fn note_outside_turn(context: &Context, changes: &Changes) -> Result<(), Failure> {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = changes.outside_turn.iter().take(SHOWN).map(ToString::to_string).collect();
    if names.is_empty() {
        return Ok(());
    }
    match changes.outside_turn.len().saturating_sub(SHOWN) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    let text = format!(
        "Left out, because the turn did not change them (you or another program did): {}",
        names.join(", ")
    );
    context.note(&text)
}

/// Writes the differences line by line, or only the counts.
pub(super) fn write_changes(
    out: &mut dyn Write,
    context: &Context,
    changes: &Changes,
    words: Option<WordStyle>,
    styles: &Styles,
) -> io::Result<()> {
    let Some(words) = words else { return stat::write(out, context, changes) };
    for file in &changes.files {
        draw::write(out, styles, file, words)?;
    }
    Ok(())
}

/// Writes the number of changed lines per file.
pub(crate) fn write_stat(out: &mut dyn Write, context: &Context, changes: &Changes) -> io::Result<()> {
    stat::write(out, context, changes)
}
