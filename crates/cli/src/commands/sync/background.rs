//! The background process that a command starts after a change.
//!
//! It is detached and short-lived: it exchanges what there is, waits a few seconds for more, and ends. Nothing is lost if
//! it is killed, because what has to be sent follows from the log. A command starts it only if none runs, so that a burst
//! of changes costs one check of a lock each.

use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use clap::Args;
use retake_sync::config::Remotes;
use retake_sync::session::open_failed;
use retake_sync::watch::watch;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::command::environment;

/// How long the process waits for more changes.
const LINGER: Duration = Duration::from_secs(15);

/// Exchange threads with a remote, and wait for more for a few seconds.
#[derive(Args)]
#[command(after_help = "\
Example:
  retake sync background home")]
pub(crate) struct Arguments {
    /// Name of the remote.
    remote: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let (remotes, now) = (context.remotes()?, context.timeline()?.now().millis());
        let config = remotes.get(&self.remote)?;
        let lock = remotes.lock(&self.remote)?;
        // Another process may just have found that the remote is away.
        if remotes.state(&self.remote).pending.is_some_and(|pending| now < pending.not_before) {
            return Ok(());
        }
        let opened = context.open_remote(config);
        if let Err(failure) = &opened {
            open_failed(&remotes, &self.remote, &failure.message, now)?;
        }
        let open = opened?;
        drop(lock);
        let session = open.session(context)?;
        // Failures are stored, and shown by `sync status`.
        watch(&session, LINGER, &|| false, &mut |_| {})?;
        Ok(())
    }
}

/// Starts the process for each remote that is due. Failures are not those of the command, and are ignored.
pub(crate) fn start_in_background(context: &Context) {
    if environment("RETAKE_SYNC").is_some_and(|value| value == "off") || !context.config.sync.automatic {
        return;
    }
    let Some(timeline) = context.opened_timeline() else { return };
    let remotes = Remotes::of_store(timeline.store().folder());
    let now = timeline.now().millis();
    for remote in remotes.list().unwrap_or_default().into_iter().filter(|remote| remote.automatic) {
        let waits = remotes.state(&remote.name).pending.is_some_and(|pending| now < pending.not_before);
        let is_free = || remotes.try_watch(&remote.name).is_ok_and(|lock| lock.is_some());
        if waits || !is_free() {
            continue;
        }
        let Ok(program) = std::env::current_exe() else { return };
        let mut process = Process::new(program);
        process.args(["--quiet", "sync", "background", &remote.name]);
        process.current_dir("/").env("RETAKE_HOME", timeline.store().folder());
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: Ctrl-C in the terminal does not end it.
        let _ = process.process_group(0).spawn();
    }
}
