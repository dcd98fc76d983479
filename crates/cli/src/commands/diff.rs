//! `retake diff`

mod draw;
mod stat;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use retake_model::id::ThreadId;
use retake_timeline::{Changes, Detail, NamedFiles, Question, USUAL_CONTEXT};
use serde::Serialize;

pub(super) use self::draw::Words;
pub(super) use self::stat::happened;
use crate::context::Context;
use crate::failure::Failure;
use crate::moments::{Moments, moments};
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::style::Styles;

/// Show how files differ between two moments.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake diff                             what was changed by hand since the agent was last at work
  retake diff 12                          from version 12 to the folder
  retake diff 12 15 -- src                between two versions, below src only
  retake diff --of 15                     what version 15 did
  retake diff take:main take:main_take_1  between two takes
  retake diff \"before the rewrite\" --stat

A moment is a version (`retake history`), the name of a saved moment, take:NAME, folder, or the beginning of a
snapshot's id. Without any, the folder is compared with how this thread's agent, or an undo, redo, jump or
restore, last left it. Looking at the folder records what was changed by hand as yours.

Files under another name are recognised. Files of more than 16 MiB or 400,000 lines are not compared by lines.
Control characters are shown, never sent to the terminal.")]
pub(crate) struct Arguments {
    /// From which moment, and to which [default: what was changed by hand; the folder].
    #[arg(value_name = "MOMENT", num_args = 0..=2)]
    moments: Vec<String>,
    /// Only these files and folders.
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What that version did.
    #[arg(long, value_name = "VERSION", conflicts_with = "moments")]
    of: Option<u64>,
    /// Only how many lines came and went.
    #[arg(long, conflicts_with_all = ["name_only", "word"])]
    stat: bool,
    /// Only the paths.
    #[arg(long, conflicts_with = "word")]
    name_only: bool,
    /// Mark words that changed within the lines, not whole lines.
    #[arg(long)]
    word: bool,
    /// How many lines to show around a change.
    #[arg(short = 'U', long, value_name = "N", default_value_t = USUAL_CONTEXT)]
    context: usize,
    /// The thread: a title, or the beginning of an id [default: the current one].
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
        let paths = self.paths.iter().map(|path| context.root_path(path)).collect::<Result<Vec<_>, _>>()?;
        let moments = moments(context, self.thread.as_deref())?;
        let (from, to) = self.moments(&moments)?;
        let detail = match () {
            () if self.name_only => Detail::Paths,
            () if self.stat => Detail::Counts,
            () => Detail::Hunks(self.context),
        };
        let looking = context.timeline()?.look()?;
        let changes = looking.changes(from.snapshot, to.snapshot, &Question { paths, detail })?;
        if changes.files.is_empty() {
            context.remark(&format!("Nothing differs between {} and {}.", from.name, to.name))?;
        }
        let answer = Answer { thread: moments.thread.summary.id, from, to, changes };
        context.answer(&answer, |out, styles| {
            if self.name_only {
                for file in &answer.changes.files {
                    writeln!(out, "{}", sanitize(&file.path.to_string(), Lines::Fold))?;
                }
                return Ok(());
            }
            let words = if self.word { Words::Marked } else { Words::Highlighted };
            write_changes(out, context, &answer.changes, (!self.stat).then_some(words), styles)
        })
    }

    fn moments(&self, moments: &Moments<'_>) -> Result<(NamedFiles, NamedFiles), Failure> {
        if let Some(version) = self.of {
            return Ok(moments.around(version)?);
        }
        let mut named = self.moments.iter().map(String::as_str);
        moments.between(named.next(), named.next())
    }
}

/// What differs, line by line, or by counts where no words are asked for.
pub(super) fn write_changes(
    out: &mut dyn Write,
    context: &Context,
    changes: &Changes,
    words: Option<Words>,
    styles: &Styles,
) -> io::Result<()> {
    let Some(words) = words else { return stat::write(out, context, changes) };
    for file in &changes.files {
        draw::write(out, styles, file, words)?;
    }
    Ok(())
}
