//! `retake gc`

use std::time::Duration;

use clap::Args;
use retake_store::{CollectMode, CollectReport};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::{counted, size};
use crate::ui::confirm::{Answer as Confirmation, Consent, confirm};

/// Delete content that nothing refers to. History keeps its content referenced.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake gc --dry-run          show what would be deleted, and its size
  retake gc --yes
  retake gc --grace 0 --yes    include content that was just written")]
pub(crate) struct Arguments {
    /// Only show what would be deleted.
    #[arg(long)]
    dry_run: bool,
    /// Keep content younger than this many days [default: `storage.gc_grace_days`].
    #[arg(long, value_name = "DAYS")]
    grace: Option<u64>,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    #[serde(flatten)]
    collected: CollectReport,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let (store, now) = (timeline.store(), timeline.now());
        let grace = self.grace.map_or_else(
            || context.config.grace(),
            |days| Duration::from_secs(days.saturating_mul(24 * 60 * 60)),
        );
        let mut collected = store.collect(grace, now, CollectMode::DryRun)?;
        let nothing = collected.unreachable == 0;
        if !self.dry_run {
            // Bytes left by an interrupted purge are no objects, and their deletion was confirmed then.
            let consent = Consent::from_flag(self.yes || nothing);
            if confirm(&format!("Delete {}?", what(&collected)), consent)? == Confirmation::No {
                return Err(Failure::new(Code::Refused, "nothing was deleted"));
            }
            collected = store.collect(grace, now, CollectMode::Collect)?;
        }
        let answer = Answer { dry_run: self.dry_run, collected };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            if nothing && collected.bytes > 0 {
                writeln!(out, "No objects to delete; an interrupted purge left {}.", size(collected.bytes))?;
            } else if nothing {
                writeln!(out, "Nothing to delete.")?;
            } else if self.dry_run {
                writeln!(out, "Would delete {}.", what(&collected))?;
            } else {
                let freed = size(collected.freed_file_bytes);
                writeln!(out, "Deleted {}; the database shrank by {freed}.", what(&collected))?;
            }
            if collected.young > 0 {
                let young = counted(collected.young, "younger object is", "younger objects are");
                writeln!(out, "{muted}{young} kept for now (--grace).{muted:#}")?;
            }
            Ok(())
        })
    }
}

fn what(collected: &CollectReport) -> String {
    let objects = counted(collected.unreachable, "object", "objects");
    format!("{objects} that nothing refers to, {}", size(collected.bytes))
}
