//! `retake thread new`

use clap::Args;
use retake_timeline::NewThread;

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
    /// What to call it [default: `Thread N`, the next one that is free].
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
        let project = context.project()?;
        let new = NewThread {
            project: project.id,
            title: self.title,
            private: self.private,
            tags: self.tag,
            current: true,
        };
        let done = context.timeline()?.create_thread_in(project, new, context.caller_here(None)?)?;
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
