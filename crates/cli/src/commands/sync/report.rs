//! What a round did, as text and JSON.

use std::io::{self, Write};

use retake_model::id::{TakeId, ThreadId};
use retake_sync::remote::ProjectKey;
use retake_sync::session::{Elsewhere, Round, ThreadRound};
use retake_timeline::PauseReason;
use serde::Serialize;

use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) remotes: Vec<RemoteAnswer>,
}

/// What was exchanged with one remote.
#[derive(Serialize)]
pub(super) struct RemoteAnswer {
    remote: String,
    /// Operations sent, and taken over.
    pushed: u64,
    pulled: u64,
    threads: Vec<ThreadAnswer>,
    /// Threads of the remote whose project this machine does not know.
    elsewhere: Vec<ElsewhereAnswer>,
    /// Threads with content that was redacted on the remote, and still is here.
    redacted: Vec<ThreadId>,
}

#[derive(Serialize)]
struct ThreadAnswer {
    thread: ThreadId,
    title: String,
    new: bool,
    pushed: u64,
    pulled: u64,
    merges: Vec<MergeAnswer>,
    paused: Option<PauseReason>,
    remote_went_back: bool,
    purged: bool,
    error: Option<String>,
}

/// What a person should look at after a merge.
#[derive(Serialize)]
struct MergeAnswer {
    takes: Vec<TakeAnswer>,
    fields: Vec<String>,
}

#[derive(Serialize)]
struct TakeAnswer {
    theirs: TakeId,
    theirs_name: Option<String>,
    ours: TakeId,
    ours_name: String,
    /// The command that compares both.
    compare: Option<String>,
}

#[derive(Serialize)]
struct ElsewhereAnswer {
    thread: ThreadId,
    title: String,
    project: ProjectKey,
    /// Several projects of this machine match.
    ambiguous: bool,
}

impl RemoteAnswer {
    pub(super) fn new(remote: String, round: Round) -> Self {
        let threads: Vec<ThreadAnswer> = round.threads.into_iter().map(ThreadAnswer::from).collect();
        Self {
            remote,
            pushed: threads.iter().map(|thread| thread.pushed).sum(),
            pulled: threads.iter().map(|thread| thread.pulled).sum(),
            threads,
            elsewhere: round.elsewhere.into_iter().map(ElsewhereAnswer::from).collect(),
            redacted: round.redacted,
        }
    }
}

impl From<ThreadRound> for ThreadAnswer {
    fn from(round: ThreadRound) -> Self {
        let thread = round.thread;
        let merges = round.merges.into_iter().map(|merge| {
            let takes = merge.takes.into_iter().map(|kept| TakeAnswer {
                compare: kept.name.as_deref().map(|name| {
                    format!(
                        "retake compare {} {} --thread {}",
                        shell_words::quote(name),
                        shell_words::quote(&kept.copy),
                        thread.short()
                    )
                }),
                theirs: kept.theirs,
                theirs_name: kept.name,
                ours: kept.ours,
                ours_name: kept.copy,
            });
            MergeAnswer { takes: takes.collect(), fields: merge.fields }
        });
        Self {
            thread,
            merges: merges.collect(),
            title: round.title,
            new: round.is_new,
            pushed: round.pushed,
            pulled: round.pulled,
            paused: round.paused,
            remote_went_back: round.remote_went_back,
            purged: round.purged,
            error: round.error.map(|pending| pending.error),
        }
    }
}

impl From<Elsewhere> for ElsewhereAnswer {
    fn from(found: Elsewhere) -> Self {
        Self {
            thread: found.thread,
            title: found.head.summary.title,
            project: found.head.summary.project,
            ambiguous: !found.projects.is_empty(),
        }
    }
}

/// Why a thread waits, to a person.
pub(crate) fn reason(paused: PauseReason) -> &'static str {
    match paused {
        PauseReason::Running => "a turn or command runs in it, or has not ended",
        PauseReason::PendingMove => "a move of its files is not finished",
        PauseReason::Worktree => "one of its takes has a worktree",
    }
}

impl Answer {
    pub(super) fn write(&self, out: &mut dyn Write, styles: &Styles) -> io::Result<()> {
        self.remotes.iter().try_for_each(|remote| remote.write(out, styles))
    }
}

impl RemoteAnswer {
    fn write(&self, out: &mut dyn Write, styles: &Styles) -> io::Result<()> {
        let (muted, warning, error) = (styles.muted, styles.warning, styles.error);
        let name = sanitize(&self.remote, LineBreaks::Fold);
        let operations = |count| counted(count, "operation", "operations");
        if self.pushed == 0 && self.pulled == 0 {
            writeln!(out, "{name}: up to date.")?;
        } else {
            let merged = self.threads.iter().any(|thread| !thread.merges.is_empty());
            let done = [
                (self.pushed > 0).then(|| format!("sent {}", operations(self.pushed))),
                (self.pulled > 0).then(|| format!("received {}", operations(self.pulled))),
                merged.then(|| "merged".to_owned()),
            ];
            writeln!(out, "{name}: {}.", done.into_iter().flatten().collect::<Vec<_>>().join(", "))?;
        }
        for thread in &self.threads {
            let title = sanitize(&thread.title, LineBreaks::Fold);
            if thread.new {
                writeln!(out, "  New here: {title} ({})", thread.thread.short())?;
            }
            for merge in &thread.merges {
                writeln!(out, "  Both machines changed {title}; nothing is lost.")?;
                for take in &merge.takes {
                    let (theirs, ours) =
                        (take.theirs_name.as_deref().unwrap_or("a deleted take"), &take.ours_name);
                    let (theirs, ours) =
                        (sanitize(theirs, LineBreaks::Fold), sanitize(ours, LineBreaks::Fold));
                    writeln!(out, "    {theirs} has the other machine's work, {ours} has this machine's.")?;
                    if let Some(command) = &take.compare {
                        writeln!(out, "    {muted}{}{muted:#}", sanitize(command, LineBreaks::Fold))?;
                    }
                }
                for field in &merge.fields {
                    writeln!(
                        out,
                        "    {} has the other machine's value.",
                        sanitize(field, LineBreaks::Fold)
                    )?;
                }
            }
            if let Some(paused) = thread.paused {
                writeln!(out, "  {warning}paused{warning:#}: {title}: {}", reason(paused))?;
            }
            if thread.remote_went_back {
                writeln!(
                    out,
                    "  {warning}note:{warning:#} the remote had lost changes of {title}; they were sent again"
                )?;
            }
            if thread.purged {
                let id = thread.thread.short();
                writeln!(
                    out,
                    "  {warning}purged{warning:#}: {title} was purged on the remote and stays here; `retake purge {id}` destroys it here too"
                )?;
            } else if let Some(message) = &thread.error {
                writeln!(out, "  {error}✗{error:#} {title}: {}", sanitize(message, LineBreaks::Fold))?;
            }
        }
        let (several, unknown): (Vec<_>, Vec<_>) = self.elsewhere.iter().partition(|thread| thread.ambiguous);
        if !unknown.is_empty() {
            let count = counted(unknown.len() as u64, "thread belongs", "threads belong");
            writeln!(
                out,
                "{muted}{count} to projects without a folder on this machine; `retake thread list --remote` shows them.{muted:#}"
            )?;
        }
        for thread in several {
            let (id, title) = (thread.thread.short(), sanitize(&thread.title, LineBreaks::Fold));
            writeln!(
                out,
                "{warning}note:{warning:#} several projects here can be that of {title}; run `retake thread pull {id}` in the folder of the right one"
            )?;
        }
        for thread in &self.redacted {
            let id = thread.short();
            writeln!(
                out,
                "{warning}note:{warning:#} content of thread {id} was redacted on the remote and still is here; `retake redact` destroys it"
            )?;
        }
        Ok(())
    }
}
