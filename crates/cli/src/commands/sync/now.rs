//! `retake sync now`

use std::time::Duration;

use clap::Args;
use retake_sync::config::{RemoteConfig, Remotes, SyncLock};
use retake_sync::session::{Retry, Round};

use super::report::{Answer, RemoteAnswer};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::progress::Progress;

/// Exchange threads with remotes now: fetch, merge and send.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake sync now
  retake sync now home --json")]
pub(crate) struct Arguments {
    /// Name of the remote [default: all].
    remote: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        exchange(context, self.remote.as_deref())
    }
}

/// Exchanges with one remote or all. A remote that fails does not stop the others.
pub(super) fn exchange(context: &Context, named: Option<&str>) -> Result<(), Failure> {
    let mut answer = Answer { remotes: Vec::new() };
    let mut failed = None;
    for config in context.chosen_remotes(named)? {
        let name = config.name.clone();
        let done = round(context, config);
        match done {
            Ok(round) => answer.remotes.push(RemoteAnswer::new(name, round)),
            Err(failure) => failed = Some(failed.unwrap_or(failure)),
        }
    }
    if !answer.remotes.is_empty() {
        context.report(&answer, |out, styles| answer.write(out, styles))?;
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

fn round(context: &Context, config: RemoteConfig) -> Result<Round, Failure> {
    let name = config.name.clone();
    // Another process may be at work: the exchange is done when it is done too.
    let _lock = lock(context, &context.remotes()?, &name)?;
    let open = context.open_remote(config)?;
    let mut progress = Progress::begin(&format!("Syncing with {name}"), context.observer());
    let now = context.timeline()?.now().millis();
    let mut observe = |done, all| progress.set_progress(done, all);
    Ok(open.session(context)?.round(Retry::Now, now, &mut observe)?)
}

fn lock(context: &Context, remotes: &Remotes, name: &str) -> Result<SyncLock, Failure> {
    for _ in 0..20 {
        if let Some(lock) = remotes.try_lock(name)? {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    context.note(&format!("Waiting for another process that syncs with {name}."))?;
    Ok(remotes.lock(name)?)
}
