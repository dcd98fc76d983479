//! `retake remote purge`

use clap::Args;
use retake_model::id::ThreadId;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::confirm::{Answer as Confirmation, Consent, confirm};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Destroy a thread on a remote, after confirmation. It stays on this machine, and is not sent again.
///
/// Other machines keep their copy, are told that the thread was purged, and do not send it again either.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake remote purge \"Fix the login\"
  retake remote purge 7f3kq2p9 --remote home --yes")]
pub(crate) struct Arguments {
    /// Thread: title or id prefix.
    thread: String,
    /// The remote [default: all].
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    remotes: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let chosen = context.chosen_remotes(self.remote.as_deref())?;
        let thread = context.thread(&context.timeline()?.read()?, Some(&self.thread))?.summary;
        let names: Vec<String> = chosen.iter().map(|remote| remote.name.clone()).collect();
        let title = sanitize(&thread.title, LineBreaks::Fold).into_owned();
        let question = format!("Destroy {title} on {}, for all machines?", names.join(", "));
        if confirm(&question, Consent::from_flag(self.yes))? == Confirmation::No {
            return Err(Failure::new(Code::Refused, "nothing was purged"));
        }
        for config in chosen {
            context.open_remote(config)?.session(context)?.purge(thread.id)?;
        }
        let answer = Answer { thread: thread.id, remotes: names };
        context.report(&answer, |out, _| {
            writeln!(out, "Purged {title} on {}. It stays on this machine.", answer.remotes.join(", "))
        })
    }
}
