//! `retake thread new`

use clap::Args;
use retake_timeline::{Command, NewThread};

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Make a thread and work on it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread new \"Fix the login\"
  retake thread new --private --tag draft \"Notes to myself\"")]
pub(crate) struct Arguments {
    /// What to call it [default: the next free \"Thread N\"].
    title: Option<String>,
    /// Never let it leave this machine.
    #[arg(long)]
    private: bool,
    /// A word to find it by; may be given several times.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let project = context.project()?.id;
        let new = NewThread { project, title: self.title, private: self.private };
        let mut done = timeline.create_thread(new, context.caller(None)?)?;
        if !self.tag.is_empty() {
            let tag = Command::Tag { add: self.tag, remove: Vec::new() };
            done = context.change(done.thread, tag, None)?;
        }
        timeline.set_current(project, Some(done.thread))?;
        context.report(&done, |out, styles| {
            let (id, title) = (styles.id, sanitize(&done.summary.title, Lines::Fold));
            writeln!(
                out,
                "Made thread {title} {id}{}{id:#}, and it is the current one now.",
                done.thread.short()
            )
        })
    }
}
