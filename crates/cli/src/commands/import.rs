//! `retake import`

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use clap::Args;
use retake_store::ThreadRow;
use retake_timeline::{Imported, Importing};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::files::open_regular;
use crate::ui::bytes::counted;
use crate::ui::progress::Progress;
use crate::ui::sanitize::{Lines, sanitize};

/// Take in a thread that was exported: all of it, or nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake import fix-the-login.retake --switch
  ssh host retake export -o - | retake import -
  retake import fix-the-login.retake --copy      as a thread of its own

Everything in the file is checked before any of it is kept. A thread that is here already is brought
forward if the file continues it; if the two went different ways, only --copy takes it in.")]
pub(crate) struct Arguments {
    /// The file; `-` is standard input.
    file: PathBuf,
    /// As a new thread with the same history, even if the thread is here already.
    #[arg(long)]
    copy: bool,
    /// Work on it from now on.
    #[arg(long)]
    switch: bool,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    imported: Imported,
    current: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = open(context, &self.file)?;
        let timeline = context.timeline()?;
        let importing = if self.copy { Importing::Copy } else { Importing::Same };
        let mut progress = Progress::begin("Importing", context.audience());
        let on = move |done, total| progress.reach(done, total);
        let imported = timeline.import_into(BufReader::new(file), context.project()?, importing, on)?;
        // A folder that was new is a project now.
        context.own_project()?;
        let row = timeline.look()?.thread(imported.thread)?;
        // A thread that was put away is not worked on; the remark below says so.
        let current = self.switch && row.summary.deleted.is_none();
        if current {
            timeline.work_on(imported.thread, context.caller(imported.thread, None)?)?;
        }
        let answer = Answer { imported, current };
        context.report(&answer, |out, styles| {
            let (id, muted) = (styles.id, styles.muted);
            let imported = &answer.imported;
            let title = sanitize(&imported.title, Lines::Fold);
            let operations = counted(imported.new_operations, "operation", "operations");
            match imported.new_operations {
                0 => write!(out, "Nothing new: {title}")?,
                all if all == imported.version => write!(out, "Imported {title}")?,
                _ => write!(out, "Brought {title} forward by {operations}")?,
            }
            write!(out, " {id}{}{id:#}", imported.thread.short())?;
            write!(out, "{muted}, version {}", imported.version)?;
            writeln!(out, "{}{muted:#}.", if answer.current { ", the current thread now" } else { "" })
        })?;
        if let Some(version) = answer.imported.jump_to {
            context.remark(&format!(
                "The new operations changed files, so that conversation and files stay where they were; \
                 `retake jump {version}` brings both."
            ))?;
        }
        remark(context, &row)?;
        context.warn_of_budget();
        Ok(())
    }
}

/// What a person would otherwise wonder about.
fn remark(context: &Context, row: &ThreadRow) -> Result<(), Failure> {
    if row.summary.deleted.is_some() {
        return context
            .remark("The thread was deleted where it came from; `retake thread restore` brings it back.");
    }
    let same = context.timeline()?.look()?.queries().threads_titled(&row.summary.title)?;
    if same.iter().any(|other| other.number != row.number && other.summary.deleted.is_none()) {
        let id = row.summary.id.short();
        return context.remark(&format!("Another thread has the same title; `-t {id}` means this one."));
    }
    Ok(())
}

/// The file, ready to be read without waiting: whoever else wants to write waits for the import.
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
        return held(&mut io::stdin().lock()).map_err(fail);
    }
    open_regular(&context.directory().join(path)).map_err(fail)
}

/// The most that is read from a pipe: one without an end must not fill the disk.
const MOST_PIPED: u64 = 16 << 30;

/// All that comes through a pipe, in a file without a name.
fn held(from: &mut dyn io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    if io::copy(&mut from.take(MOST_PIPED + 1), &mut file)? > MOST_PIPED {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 16 GiB; import it from a file"));
    }
    file.rewind()?;
    Ok(file)
}
