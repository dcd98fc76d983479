//! `retake repair`

use std::process::ExitCode;

use clap::Args;
use retake_store::{RepairReport, SearchIndex, Store};
use retake_timeline::{Clock, SystemClock};
use serde::Serialize;

use super::verify::Report;
use crate::context::Context;
use crate::describe::files::write_recovered;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::progress::Progress;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Repair the store and report what was lost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake verify            check first
  retake repair
  retake repair --json

Nothing is deleted: damaged content is moved aside in the store, and a damaged file is kept in `backups`. The store is \
checked again afterwards; the exit code is 6 if problems remain.

The next command finishes a file move that a crash interrupted. If its folder no longer exists, \
`retake repair --forget-folder FOLDER` abandons the move: the thread stays where it was.")]
pub(crate) struct Arguments {
    /// Abandon the interrupted file move in this folder, which no longer exists. Does nothing else.
    #[arg(long, value_name = "FOLDER")]
    forget_folder: Option<std::path::PathBuf>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    repaired: RepairReport,
    search_rebuilt: bool,
    /// The backup of a damaged runtime database; the next turn creates a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger_kept_as: Option<String>,
    /// The result of the check afterwards.
    after: Report,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        if let Some(folder) = &self.forget_folder {
            let given_up = context.timeline()?.forget_folder(&context.directory().join(folder))?;
            context.report(&given_up, |out, _| write_recovered(out, context, &given_up))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut progress = Progress::begin("Repairing", context.observer());
        let mut stage = None;
        let folder = context.config.folder()?;
        // Before anything opens the store, which may be impossible.
        let repaired = Store::salvage(
            &folder,
            &mut |at| {
                if stage.replace(at.stage) != Some(at.stage) {
                    progress.set_stage(&format!("Repairing {}", at.stage));
                }
                progress.set_progress(at.done, at.total);
            },
            SystemClock.now(),
        )?;
        progress.set_stage("Indexing");
        let search_rebuilt = rebuild_search(context, &repaired, &mut progress)?;
        drop(progress);
        let kept = context.timeline()?.store().quarantine_runtime_database()?;
        let ledger_kept_as = kept.map(|kept| kept.to_string_lossy().into_owned());
        let answer = Answer { repaired, search_rebuilt, ledger_kept_as, after: Report::make(context)? };
        context.answer(&answer, |out, styles| {
            let (muted, added) = (styles.muted, styles.added);
            if let Some(salvaged) = &answer.repaired.salvaged {
                let kept = salvaged.kept_as.to_string_lossy();
                let rows = counted(salvaged.rows, "row was", "rows were");
                writeln!(out, "The database was damaged; {rows} copied to a new one.")?;
                writeln!(out, "{muted}The damaged file is kept as {}{muted:#}", sanitize(&kept, LineBreaks::Fold))?;
            }
            for change in &answer.repaired.changes {
                writeln!(out, "{added}•{added:#} {}", sanitize(&change.to_string(), LineBreaks::Fold))?;
            }
            if answer.search_rebuilt {
                writeln!(out, "{added}•{added:#} the search index was rebuilt")?;
            }
            if let Some(kept) = &answer.ledger_kept_as {
                let kept = sanitize(kept, LineBreaks::Fold);
                writeln!(
                    out,
                    "{added}•{added:#} the runtime database was damaged and is kept as {kept}; no thread is affected"
                )?;
            }
            let mended = answer.search_rebuilt || answer.ledger_kept_as.is_some();
            if answer.repaired.is_unchanged() && !mended {
                writeln!(out, "No repairs were needed.")?;
            }
            let losses = answer.repaired.losses().count() as u64;
            if losses > 0 {
                let error = styles.error;
                writeln!(out, "{error}{}{error:#}", counted(losses, "loss", "losses"))?;
            }
            answer.after.write(out, styles)
        })?;
        Ok(if answer.after.is_clean() { ExitCode::SUCCESS } else { Code::Damaged.into() })
    }
}

/// Rebuilds the search index if it is wrong, and updates it after a changed log.
fn rebuild_search(
    context: &Context,
    repaired: &RepairReport,
    progress: &mut Progress,
) -> Result<bool, Failure> {
    let timeline = context.timeline()?;
    let folder = timeline.store().folder();
    if !folder.join("search.db").exists() {
        return Ok(false);
    }
    let reader = timeline.read()?;
    let index = SearchIndex::open(folder)?;
    if repaired.is_unchanged() && index.check(&reader.queries())?.is_empty() {
        return Ok(false);
    }
    index.rebuild(&reader.queries(), &mut |at| progress.set_progress(at.reached as u64, at.goal as u64))?;
    Ok(true)
}
