//! `retake sync watch`

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use retake_sync::watch::watch;

use super::report::{Answer, RemoteAnswer};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Exchange threads whenever something changes here or on the remote, until Ctrl-C.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake sync watch
  retake sync watch home")]
pub(crate) struct Arguments {
    /// Name of the remote; needed if there are several.
    remote: Option<String>,
}

static STOPPED: AtomicBool = AtomicBool::new(false);

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut chosen = context.chosen_remotes(self.remote.as_deref())?;
        let (Some(config), true) = (chosen.pop(), chosen.is_empty()) else {
            return Err(Failure::new(Code::Usage, "there are several remotes; name one of them"));
        };
        let name = config.name.clone();
        let open = context.open_remote(config)?;
        let session = open.session(context)?;
        context.note(&format!("Watching {name}; Ctrl-C ends."))?;
        let is_stopped = || STOPPED.load(Ordering::Relaxed);
        watch(&session, Duration::MAX, &is_stopped, &mut |round| match round {
            Ok(round) if round.threads.is_empty() => {}
            Ok(round) => {
                let answer = Answer { remotes: vec![RemoteAnswer::new(name.clone(), round)] };
                let answer = context.report(&answer, |out, styles| answer.write(out, styles));
                if answer.is_err() {
                    STOPPED.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => drop(context.note(&error.to_string())),
        })?;
        Ok(())
    }
}
