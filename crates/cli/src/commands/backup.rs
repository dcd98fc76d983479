//! `retake backup`

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use retake_store::{BackupCheck, BackupKeyState, Store};
use retake_timeline::{Clock, SystemClock};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::{counted, size};
use crate::ui::progress::Progress;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;
use crate::ui::time::relative;

/// Back up the store while other programs use it, or check a backup.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake backup /media/disk/retake-today
  retake backup --verify /media/disk/retake-today
  RETAKE_HOME=/media/disk/retake-today retake thread list    open a backup as a store

A backup is a store of its own: all threads, recorded files, shared settings and the trace, as they were at one moment. To \
restore it, copy it to the place of the store, or open it with RETAKE_HOME. The folder must be new, and it is complete as \
soon as it exists. The key for encrypted files is written beside it, as TO.key; whoever has both can read those files. \
The configuration, the keys of providers and the search index are not part of a backup.

--verify compares every file with its hash and checks everything in the database, and writes nothing. The exit code is 6 \
if anything is missing or damaged.")]
pub(crate) struct Arguments {
    /// The folder of the backup. It must not exist yet, except with --verify.
    #[arg(value_name = "TO", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Check the backup in this folder. Changes nothing.
    #[arg(long)]
    verify: bool,
}

#[derive(Serialize)]
struct Checked {
    clean: bool,
    #[serde(flatten)]
    backup: BackupCheck,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let folder = context.directory().join(&self.folder);
        if self.verify { check(&folder, context) } else { make(&folder, context) }
    }
}

fn make(folder: &std::path::Path, context: &Context) -> Result<ExitCode, Failure> {
    let home = context.config.folder()?;
    if !home.join("retake.db").exists() {
        return Err(Failure::not_found(format!("there is no store in {}", home.display())));
    }
    let store = context.timeline()?.store();
    let mut progress = Progress::begin("Copying", context.observer());
    let written = store.back_up(folder, env!("RETAKE_VERSION"), SystemClock.now(), &mut |at| {
        progress.set_progress(at.done, at.total);
    })?;
    drop(progress);
    context.report(&written, |out, styles| {
        let (muted, error) = (styles.muted, styles.error);
        let path = written.path.to_string_lossy();
        let what = format!(
            "{}, {}",
            counted(written.threads, "thread", "threads"),
            counted(written.operations, "operation", "operations")
        );
        writeln!(out, "Backed up {what} ({}) to {}", size(written.bytes), sanitize(&path, LineBreaks::Fold))?;
        if let Some(key) = &written.key {
            let key = key.to_string_lossy();
            writeln!(
                out,
                "{muted}The key for encrypted files: {}{muted:#}",
                sanitize(&key, LineBreaks::Fold)
            )?;
        }
        for file in &written.missing {
            writeln!(
                out,
                "{error}✗{error:#} the store has lost {file}; `retake verify` shows what is affected"
            )?;
        }
        Ok(())
    })?;
    Ok(if written.missing.is_empty() { ExitCode::SUCCESS } else { Code::Damaged.into() })
}

fn check(folder: &std::path::Path, context: &Context) -> Result<ExitCode, Failure> {
    // Both stages report to the same bar.
    let progress = std::cell::RefCell::new(Progress::begin("Checking files", context.observer()));
    let mut stage = None;
    let backup = Store::verify_backup(
        folder,
        &mut |at| progress.borrow_mut().set_progress(at.done, at.total),
        &mut |at| {
            let mut progress = progress.borrow_mut();
            if stage.replace(at.stage) != Some(at.stage) {
                progress.set_stage(&format!("Checking {}", at.stage));
            }
            progress.set_progress(at.done, at.total);
        },
    )?;
    drop(progress);
    let checked = Checked { clean: backup.is_clean(), backup };
    context.answer(&checked, |out, styles| checked.write(out, styles, context))?;
    Ok(if checked.clean { ExitCode::SUCCESS } else { Code::Damaged.into() })
}

impl Checked {
    fn write(&self, out: &mut dyn Write, styles: &Styles, context: &Context) -> io::Result<()> {
        let (success, error, muted, warning) = (styles.success, styles.error, styles.muted, styles.warning);
        let backup = &self.backup;
        let files = backup.file_problems.iter().map(ToString::to_string);
        let content = backup.store.iter().flat_map(|store| store.problems.iter().map(ToString::to_string));
        let runtime =
            backup.runtime_database_problem.iter().map(|text| format!("the runtime database: {text}"));
        let key = (backup.key == BackupKeyState::Different)
            .then(|| "the key beside it is not the key of this backup".to_owned());
        let problems: Vec<String> = files.chain(content).chain(runtime).chain(key).collect();
        for problem in &problems {
            writeln!(out, "{error}✗{error:#} {}", sanitize(problem, LineBreaks::Fold))?;
        }
        let made = relative(SystemClock.now(), backup.created, &context.zone);
        let mut counts = format!("{}, {}", counted(backup.files, "file", "files"), size(backup.bytes));
        if let Some(store) = &backup.store {
            let operations = counted(store.operations, "operation", "operations");
            counts = format!("{counts}, {operations}, {}", counted(store.threads, "thread", "threads"));
        }
        if self.clean {
            writeln!(out, "{success}clean{success:#}: {counts}; made {made}")?;
        } else {
            let count = counted(problems.len() as u64, "problem", "problems");
            writeln!(out, "\n{error}{count}{error:#} in {counts}; made {made}")?;
            writeln!(
                out,
                "{muted}Keep it, and make another backup: `retake repair` works on a copy of it.{muted:#}"
            )?;
        }
        if backup.key == BackupKeyState::Missing {
            writeln!(
                out,
                "{warning}note:{warning:#} the key is not beside the backup; without it, encrypted files cannot be restored"
            )?;
        }
        Ok(())
    }
}
