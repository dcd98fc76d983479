//! `retake redact`

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use retake_model::content::ContentId;
use retake_model::id::{EntryId, ThreadId};
use retake_store::{DeletedFilter, RedactionReport, SecretLocation, ThreadFilter};
use retake_timeline::{Reader, RedactedEntry, RedactionPlan, RedactionRequest, SHORTEST_SECRET};
use serde::Serialize;

use super::purge::write_copies;
use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::files::open_regular;
use crate::ui::bytes::counted;
use crate::ui::confirm::{Answer as Confirmation, Consent, confirm};
use crate::ui::input::MAX_CONTENT_BYTES;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

const MAX_LISTED: usize = 20;

/// Destroy an entry, or every entry that contains a text, in all takes and all history. For leaked secrets.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake redact 4
  retake redact last -t \"Fix the login\" --yes
  retake redact --text sk-live-123456 --dry-run
  pass show api-key | retake redact --text-file - --yes      keeps the secret out of the shell history

Without --text, every version of the entry is destroyed in every thread that has it, and replaced by \"[redacted]\". A \
deleted entry can be named by its full id.

With --text, every version of any entry that contains the text is destroyed, in all threads, including answers and tool \
calls. The text is also removed from titles, drafts, names, file lists, shared settings, sent requests, remembered \
approvals and the trace; affected operations are rewritten. Captured and sealed files and the paths of folders are not \
changed. The answer lists every place in the store that still contains the text, including compressed content and backups.

This cannot be undone, and is refused while a turn runs in the thread. If it is interrupted, run the command again.")]
pub(crate) struct Arguments {
    /// Entry: number, `last` or id prefix.
    #[arg(required_unless_present_any = ["text", "text_file"])]
    entry: Option<String>,
    /// Destroy every entry that contains this text; can be repeated.
    #[arg(long, value_name = "TEXT")]
    text: Vec<String>,
    /// Read the text from a file, or from standard input if `-`; can be repeated.
    #[arg(long, value_name = "FILE")]
    text_file: Vec<PathBuf>,
    #[command(flatten)]
    target: TakeTarget,
    /// Fail unless the thread is at this version.
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
    /// Only list the entries that would be destroyed.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    /// The named entry.
    entry: Option<EntryId>,
    /// All destroyed entries.
    entries: Vec<RedactedEntry>,
    versions: BTreeSet<ContentId>,
    redacted: RedactionReport,
    /// Places that still contain the text.
    remaining: Vec<SecretLocation>,
    /// Images that remain because a captured file or another entry has the same content.
    retained_pictures: BTreeSet<ContentId>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let texts = self.texts()?;
        let reader = timeline.read()?;
        let entry = self.resolve(context, &reader)?;
        let all =
            reader.threads(&ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() })?;
        drop(reader);
        let plan = timeline.plan_redaction(&RedactionRequest { entry, texts: texts.clone() })?;
        let Some(plan) = plan else {
            return Err(Failure::new(Code::NotFound, "no thread has or had this entry"));
        };
        let mut redacted = RedactionReport::default();
        if !self.dry_run {
            // Any running turn may be about to write the text.
            let threads: Vec<ThreadId> = if texts.is_empty() {
                plan.threads.clone()
            } else {
                all.iter().map(|row| row.summary.id).collect()
            };
            context.check_no_turn(&threads)?;
            // No confirmation is needed to finish an interrupted redaction.
            let is_finishing = texts.is_empty() && plan.versions().is_empty();
            let consent = Consent::from_flag(self.yes || is_finishing);
            if confirm(&question(&plan), consent)? == Confirmation::No {
                return Err(Failure::new(Code::Refused, "nothing was destroyed"));
            }
            redacted = timeline.redact(&plan)?;
        }
        let answer = Answer {
            dry_run: self.dry_run,
            entry,
            versions: plan.versions(),
            remaining: std::mem::take(&mut redacted.remaining),
            redacted,
            retained_pictures: plan.retained_pictures,
            entries: plan.entries,
        };
        context.report(&answer, |out, styles| answer.write(out, styles))
    }

    fn resolve(&self, context: &Context, reader: &Reader<'_>) -> Result<Option<EntryId>, Failure> {
        if let Some(expected) = self.expect {
            let current = context.resolve(reader, &(&self.target).into())?.thread.summary.version;
            if expected != current {
                return Err(retake_timeline::ChangeError::Conflict { expected, current }.into());
            }
        }
        let Some(text) = &self.entry else { return Ok(None) };
        if let Ok(whole) = text.parse::<EntryId>() {
            return Ok(Some(whole));
        }
        let resolved = context.resolve(reader, &(&self.target).into())?;
        Ok(Some(reader.find().entry(&resolved.take, text)?.1))
    }

    fn texts(&self) -> Result<Vec<String>, Failure> {
        let mut texts = self.text.clone();
        for path in &self.text_file {
            let fail = |error: &dyn std::fmt::Display| {
                Failure::new(Code::Usage, format!("{}: {error}", path.display()))
            };
            let source: Box<dyn Read> = if path == Path::new("-") {
                Box::new(io::stdin())
            } else {
                Box::new(open_regular(path).map_err(|error| fail(&error))?)
            };
            let mut bytes = Vec::new();
            source.take(MAX_CONTENT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(&error))?;
            if bytes.len() as u64 > MAX_CONTENT_BYTES {
                return Err(fail(&"larger than 64 MiB"));
            }
            texts.push(String::from_utf8(bytes).map_err(|_| fail(&"is not text"))?);
        }
        if texts.iter().any(|text| text.trim().len() < SHORTEST_SECRET) {
            let message = format!(
                "a text to redact needs at least {SHORTEST_SECRET} bytes; a shorter one would match nearly everything"
            );
            return Err(Failure::new(Code::Usage, message));
        }
        Ok(texts)
    }
}

fn question(plan: &RedactionPlan) -> String {
    let mut text = String::new();
    for entry in plan.entries.iter().take(MAX_LISTED) {
        text.push_str(&sanitize(&entry.preview, LineBreaks::Fold));
        text.push('\n');
    }
    if plan.entries.len() > MAX_LISTED {
        let more = plan.entries.len() - MAX_LISTED;
        text.push_str(&["and ", &more.to_string(), " more\n"].concat());
    }
    let what = match plan.entries.len() {
        0 => "No entry contains the text. Destroy it in titles, drafts, names and the trace?".to_owned(),
        1 => format!("Destroy this entry: {}?", sum(plan)),
        entries => format!("Destroy these {entries} entries: {}?", sum(plan)),
    };
    text + &what + " This cannot be undone."
}

fn sum(plan: &RedactionPlan) -> String {
    let versions = counted(plan.versions().len() as u64, "version", "versions");
    let threads = counted(plan.threads.len() as u64, "thread", "threads");
    format!("{versions} in {threads}")
}

impl Answer {
    fn write(&self, out: &mut dyn Write, styles: &Styles) -> io::Result<()> {
        let warning = styles.warning;
        if self.dry_run {
            for entry in &self.entries {
                let (id, preview) = (entry.entry.short(), sanitize(&entry.preview, LineBreaks::Fold));
                writeln!(out, "{}{id}{:#} {preview}", styles.id, styles.id)?;
            }
            let versions = counted(self.versions.len() as u64, "version", "versions");
            return writeln!(out, "Would destroy {versions} of entries. Nothing was changed.");
        }
        if self.versions.is_empty() && self.redacted.objects == 0 && self.redacted.operations == 0 {
            writeln!(out, "No content left to destroy; freed space and logs were overwritten.")?;
        } else {
            let pieces = counted(self.redacted.objects, "piece", "pieces");
            writeln!(out, "Destroyed {pieces} of content. Replaced by \"[redacted]\".")?;
        }
        if self.redacted.operations > 0 {
            let operations = counted(self.redacted.operations, "operation was", "operations were");
            writeln!(out, "It was also in titles, drafts or names: {operations} rewritten without it.")?;
        }
        if !self.retained_pictures.is_empty() {
            let pictures = counted(self.retained_pictures.len() as u64, "picture remains", "pictures remain");
            writeln!(
                out,
                "{warning}note:{warning:#} {pictures}: a captured file or another entry has the same content."
            )?;
        }
        if !self.remaining.is_empty() {
            let places = counted(self.remaining.len() as u64, "place still contains", "places still contain");
            writeln!(out, "{warning}note:{warning:#} {places} the same text:")?;
            for place in self.remaining.iter().take(MAX_LISTED) {
                let SecretLocation { file, table, kind, id } = place;
                let id = id.map(|id| id.short()).unwrap_or_default();
                let parts = [kind.as_deref().unwrap_or_default(), &id, table.as_deref().unwrap_or_default()];
                let what: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                writeln!(
                    out,
                    "  {} {}",
                    sanitize(file, LineBreaks::Fold),
                    sanitize(&what.join(" "), LineBreaks::Fold)
                )?;
            }
            if self.remaining.len() > MAX_LISTED {
                writeln!(out, "  and {} more; --json lists all", self.remaining.len() - MAX_LISTED)?;
            }
            if self.remaining.iter().any(|place| place.kind.as_deref() == Some("entry")) {
                writeln!(out, "`retake redact --text TEXT` destroys the entries that contain it.")?;
            }
        }
        write_copies(out, styles, Some(self.redacted.log), self.redacted.backups)
    }
}
