//! `retake sync status`

use std::io::{self, Write};

use clap::Args;
use retake_model::time::Timestamp;
use retake_sync::remote::Remedy;
use retake_sync::status::{RemoteStatus, StateName, ThreadStatus};
use serde::Serialize;

use super::report::reason;
use crate::context::Context;
use crate::failure::Failure;
use crate::remotes::OpenRemote;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;
use crate::ui::table::{Column, Table};

/// Show the state of each thread towards the remotes, and what waits. Changes nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake sync status
  retake sync status home --json")]
pub(crate) struct Arguments {
    /// Name of the remote [default: all].
    remote: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    remotes: Vec<RemoteStatus>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut remotes = Vec::new();
        for config in context.chosen_remotes(self.remote.as_deref())? {
            let (timeline, known) = (context.timeline()?, context.remotes()?);
            let opened = context.open_remote(config.clone()).map_err(|failure| failure.message);
            let remote = opened.as_ref().map(OpenRemote::remote).map_err(Clone::clone);
            remotes.push(RemoteStatus::read(timeline, &known, &config, remote)?);
        }
        let answer = Answer { remotes };
        context.answer(&answer, |out, styles| {
            answer.remotes.iter().try_for_each(|status| write(status, out, styles, context))
        })
    }
}

fn write(status: &RemoteStatus, out: &mut dyn Write, styles: &Styles, context: &Context) -> io::Result<()> {
    let (error, muted) = (styles.error, styles.muted);
    let (name, url) = (sanitize(&status.remote, LineBreaks::Fold), sanitize(&status.url, LineBreaks::Fold));
    let when = match status.synced_at {
        Some(at) => format!("last sync {}", context.ago(Timestamp::from_millis(at))),
        None => "never synced".to_owned(),
    };
    writeln!(out, "{name} {muted}{url}, {when}{muted:#}")?;
    if let Some(message) = &status.error {
        writeln!(out, "{error}✗{error:#} {}", sanitize(message, LineBreaks::Fold))?;
    }
    let clean = status.threads.iter().filter(|thread| thread.state == StateName::Clean).count() as u64;
    if clean > 0 {
        writeln!(out, "{}", counted(clean, "thread is clean", "threads are clean"))?;
    }
    let mut table = Table::new([Column::left("ID"), Column::left("TITLE").flexible(), Column::left("STATE")]);
    let mut others = 0;
    for thread in status.threads.iter().filter(|thread| thread.state != StateName::Clean) {
        table.row([
            Label::new().with(styles.id, &thread.thread.short()),
            Label::new().plain(&thread.title),
            Label::new().plain(&describe(thread)),
        ]);
        others += 1;
    }
    if others > 0 {
        write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
    }
    for pending in &status.pending {
        let what = match pending.thread {
            Some(thread) => format!("thread {}", thread.short()),
            None => "the remote".to_owned(),
        };
        let next = match pending.remedy {
            Remedy::Wait => {
                format!("tried again {}", context.ago(Timestamp::from_millis(pending.not_before)))
            }
            Remedy::Login => format!("run `retake remote login {name}`"),
            Remedy::Permission => "ask the remote's owner for access".to_owned(),
            Remedy::Quota => "free space on the remote".to_owned(),
            Remedy::Purged => "it was purged there".to_owned(),
            Remedy::Update => "update retake".to_owned(),
            Remedy::Look => "`retake sync retry` tries again".to_owned(),
        };
        writeln!(
            out,
            "{error}✗{error:#} {what}: {} {muted}({}, failed {}; {next}){muted:#}",
            sanitize(&pending.last_error, LineBreaks::Fold),
            counted(u64::from(pending.retries), "try", "tries"),
            context.ago(Timestamp::from_millis(pending.failed_at)),
        )?;
    }
    Ok(())
}

fn describe(thread: &ThreadStatus) -> String {
    let (ahead, behind) = (thread.ahead, thread.behind);
    match thread.state {
        StateName::Clean => "clean".to_owned(),
        StateName::Ahead => format!("ahead by {ahead}"),
        StateName::Behind => format!("behind by {behind}"),
        StateName::Diverged => format!("diverged: {ahead} here, {behind} there"),
        StateName::Paused => format!("paused: {}", thread.paused.map_or("", reason)),
        StateName::Blocked => "blocked".to_owned(),
        StateName::Purged => "purged on the remote".to_owned(),
    }
}
