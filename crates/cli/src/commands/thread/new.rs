//! `retake thread new`

use clap::Args;
use retake_timeline::NewThread;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Create a thread and make it current.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread new \"Fix the login\"
  retake thread new --private --tag draft \"Notes to myself\"")]
pub(crate) struct Arguments {
    /// Title [default: `Thread N`, the next free one].
    title: Option<String>,
    /// Never send it to a hub.
    #[arg(long)]
    private: bool,
    /// Tag; can be repeated.
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
        context.use_in_terminal(done.thread)?;
        context.report(&done, |out, styles| {
            let (id, title) = (styles.id, sanitize(&done.summary.title, LineBreaks::Fold));
            writeln!(
                out,
                "Created thread {title} {id}{}{id:#}; it is now the current thread.",
                done.thread.short()
            )
        })
    }
}
