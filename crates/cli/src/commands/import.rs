//! `retake import`

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use clap::Args;
use retake_store::ThreadRow;
use retake_timeline::{ImportMode, ImportSummary};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::files::open_regular;
use crate::ui::bytes::counted;
use crate::ui::progress::Progress;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Import an exported thread, completely or not at all.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake import fix-the-login.retake --switch
  ssh host retake export -o - | retake import -
  retake import fix-the-login.retake --copy      as a separate thread

The whole file is checked before anything is stored. If the thread already exists, the import adds its newer operations; \
if the two have diverged, only --copy can import it.")]
pub(crate) struct Arguments {
    /// File to import; `-` is standard input.
    file: PathBuf,
    /// Import as a new thread, even if the thread already exists.
    #[arg(long)]
    copy: bool,
    /// Make it the current thread.
    #[arg(long)]
    switch: bool,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    imported: ImportSummary,
    current: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = open(context, &self.file)?;
        let timeline = context.timeline()?;
        let importing = if self.copy { ImportMode::Copy } else { ImportMode::Same };
        let mut progress = Progress::begin("Importing", context.observer());
        let on = move |done, total| progress.set_progress(done, total);
        let imported = timeline.import_into(BufReader::new(file), context.project()?, importing, on)?;
        // A new folder becomes a project.
        context.project_or_create()?;
        let row = timeline.read()?.thread(imported.thread)?;
        // A deleted thread cannot be the current one; the note below reports this.
        let current = self.switch && row.summary.deleted.is_none();
        if current {
            context.switch_thread(imported.thread, context.caller(imported.thread, None)?)?;
        }
        let answer = Answer { imported, current };
        context.report(&answer, |out, styles| {
            let (id, muted) = (styles.id, styles.muted);
            let imported = &answer.imported;
            let title = sanitize(&imported.title, LineBreaks::Fold);
            let operations = counted(imported.new_operations, "operation", "operations");
            match imported.new_operations {
                0 => write!(out, "Nothing new: {title}")?,
                all if all == imported.version => write!(out, "Imported {title}")?,
                _ => write!(out, "Added {operations} to {title}")?,
            }
            write!(out, " {id}{}{id:#}", imported.thread.short())?;
            write!(out, "{muted}, version {}", imported.version)?;
            writeln!(out, "{}{muted:#}.", if answer.current { ", now the current thread" } else { "" })
        })?;
        if let Some(version) = answer.imported.jump_to {
            context.note(&format!(
                "The new operations changed files, so the conversation and the files were not moved; \
                 `retake jump {version}` moves both."
            ))?;
        }
        if let Some(version) = answer.imported.restore {
            let id = row.summary.id.short();
            context.note(&format!(
                "No file was written. `retake restore {version} -t {id}` replaces the files in the project folder by those of the thread, and records the current ones first."
            ))?;
        }
        note(context, &row)?;
        context.warn_of_budget();
        Ok(())
    }
}

/// Notes about the state of the imported thread.
fn note(context: &Context, row: &ThreadRow) -> Result<(), Failure> {
    if row.summary.deleted.is_some() {
        return context
            .note("The thread was deleted before the export; `retake thread restore` restores it.");
    }
    let same = context.timeline()?.read()?.queries().threads_with_title(&row.summary.title)?;
    if same.iter().any(|other| other.number != row.number && other.summary.deleted.is_none()) {
        let id = row.summary.id.short();
        return context.note(&format!("Another thread has the same title; use `-t {id}` for this one."));
    }
    Ok(())
}

/// Opens the file so that reading never blocks: other writers wait during the import.
fn open(context: &Context, path: &Path) -> Result<File, Failure> {
    let fail = |error: io::Error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => Code::Usage,
            _ => Code::Failed,
        };
        Failure::new(code, format!("{}: {error}", path.display()))
    };
    if path == Path::new("-") {
        return spool(&mut io::stdin().lock()).map_err(fail);
    }
    open_regular(&context.directory().join(path)).map_err(fail)
}

/// Limit for piped input, so that an endless pipe cannot fill the disk.
const MAX_PIPED_BYTES: u64 = 16 << 30;

/// Copies piped input to an unnamed temporary file.
fn spool(from: &mut dyn io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    if io::copy(&mut from.take(MAX_PIPED_BYTES + 1), &mut file)? > MAX_PIPED_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 16 GiB; import it from a file"));
    }
    file.rewind()?;
    Ok(file)
}
