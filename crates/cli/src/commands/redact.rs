//! `retake redact`

use std::collections::BTreeSet;

use clap::Args;
use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::{EntryId, ThreadId};
use retake_model::object::load;
use retake_store::{Deleted, Redacted, SearchIndex, Secrets, ThreadFilter};
use retake_timeline::{LookError, Looking, Past};
use serde::Serialize;

use super::purge::write_copies;
use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::confirm::{Answer as Said, Consent, confirm};
use crate::ui::progress::Progress;
use crate::ui::sanitize::{Lines, sanitize};

/// Destroy the content of an entry, in all takes and all history. For secrets that got into a conversation.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake redact 4
  retake redact last -t \"Fix the login\" --yes

Every version that the entry ever had is destroyed, in every thread that has it; \"[redacted]\" stands in its
place. Titles, drafts, names, what was sent to models, and the trace are rid of its text too: the log is written anew
from where it held it. Other entries and files (captured or sealed) that hold the same text are not changed; the answer counts such entries.
Refused while a turn runs there. This cannot be undone. An entry that was deleted can be named by its whole id.")]
pub(crate) struct Arguments {
    /// Which entry: its number, `last`, or the beginning of its id.
    entry: String,
    #[command(flatten)]
    target: TakeTarget,
    /// Destroy nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    entry: EntryId,
    versions: Vec<ContentId>,
    redacted: Redacted,
    /// Where the same text still is.
    remaining: Vec<Remaining>,
}

/// A version of another entry that holds the same text.
#[derive(Serialize)]
struct Remaining {
    version: ContentId,
}

/// What is to be destroyed.
#[derive(Default)]
struct Found {
    versions: BTreeSet<ContentId>,
    blobs: BTreeSet<ContentId>,
    texts: BTreeSet<String>,
    threads: Vec<ThreadId>,
    preview: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let looking = timeline.look()?;
        let entry = self.meant(context, &looking)?;
        let found = Found::over_all_history(context, &looking, entry)?;
        drop(looking);
        if found.versions.is_empty() {
            return Err(Failure::new(Code::NotFound, "no thread ever had that entry"));
        }
        let versions = counted(found.versions.len() as u64, "version", "versions");
        let threads = counted(found.threads.len() as u64, "thread", "threads");
        let question = format!(
            "{}\nDestroy this entry: {versions} in {threads}? This cannot be undone.",
            sanitize(&found.preview, Lines::Fold)
        );
        context.check_no_turn(&found.threads)?;
        if confirm(&question, Consent::from_flag(self.yes))? == Said::No {
            return Err(Failure::new(Code::Refused, "nothing was destroyed"));
        }
        let contents: Vec<(Kind, ContentId)> = found
            .versions
            .iter()
            .map(|id| (Kind::Entry, *id))
            .chain(found.blobs.iter().map(|id| (Kind::Blob, *id)))
            .collect();
        let secrets = Secrets::new(found.texts.iter().cloned());
        let redacted = timeline.store().redact_with(&contents, &secrets, &found.threads, timeline.now())?;
        let versions: Vec<ContentId> = found.versions.into_iter().collect();
        if timeline.store().folder().join("search.db").exists() {
            SearchIndex::open(timeline.store().folder())?.forget(&versions)?;
        }
        // What was said to models holds the same words. Which of it does is not looked for: all of it goes.
        if let Some(ledger) = timeline.store().existing_ledger()? {
            ledger.forget_secrets(&found.threads, &secrets)?;
        }
        let remaining = redacted.entries_left.iter().map(|version| Remaining { version: *version }).collect();
        let answer = Answer { entry, versions, redacted, remaining };
        context.report(&answer, |out, styles| {
            let pieces = counted(answer.redacted.objects, "piece", "pieces");
            writeln!(out, "Destroyed {pieces} of content. \"[redacted]\" stands in their place.")?;
            let warning = styles.warning;
            if answer.redacted.operations > 0 {
                let operations = counted(answer.redacted.operations, "operation was", "operations were");
                writeln!(
                    out,
                    "It was in titles, drafts or names as well: {operations} written anew without it."
                )?;
            }
            if !answer.remaining.is_empty() {
                let others = counted(answer.remaining.len() as u64, "version", "versions");
                let text = format!("{others} of other entries hold the same text");
                writeln!(
                    out,
                    "{warning}note:{warning:#} {text}; `retake search --history` finds them, redact them too"
                )?;
            }
            write_copies(out, styles, answer.redacted.log, answer.redacted.backups)
        })
    }

    fn meant(&self, context: &Context, looking: &Looking<'_>) -> Result<EntryId, Failure> {
        if let Some(expected) = self.expect {
            let current = context.thread(looking, self.target.thread.as_deref())?.summary.version;
            if expected != current {
                return Err(retake_timeline::ChangeError::Conflict { expected, current }.into());
            }
        }
        if let Ok(whole) = self.entry.parse::<EntryId>() {
            return Ok(whole);
        }
        let meant = context.meant(looking, &(&self.target).into())?;
        Ok(looking.find_entry(&meant.take, &self.entry)?.1)
    }
}

impl Found {
    /// Every version of an entry, in every thread there is: a take that became a thread of its own took its
    /// entries along.
    fn over_all_history(context: &Context, looking: &Looking<'_>, entry: EntryId) -> Result<Self, Failure> {
        let filter = ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() };
        let rows = looking.threads(&filter)?;
        let queries = looking.queries();
        let mut found = Self::default();
        let mut progress = Progress::begin("Looking through history", context.audience());
        for (done, row) in rows.iter().enumerate() {
            progress.reach(done as u64, rows.len() as u64);
            let past = Past::of(looking, row, &BTreeSet::from([entry]), &mut |_, _| ())?;
            if !past.versions.is_empty() {
                found.threads.push(row.summary.id);
            }
            for (_, version) in past.versions.keys() {
                if queries.is_redacted(*version)? {
                    continue;
                }
                let content: EntryVersion = load(&queries, *version).map_err(LookError::from)?;
                found.preview = format!("{}: {}", content.role, content.preview());
                found.texts.extend(Secrets::of_entry(&content));
                found.blobs.extend(content.blocks.iter().filter_map(|block| match block {
                    Block::Image { blob, .. } => Some(*blob),
                    _ => None,
                }));
                found.versions.insert(*version);
            }
        }
        Ok(found)
    }
}
