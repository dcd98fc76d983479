//! Imports a thread from an export, completely or not at all.
//!
//! An export is untrusted. Every object is hashed, decoded and checked against the limits of commands. Every
//! reference must be to an earlier object of the right kind, every state must be reachable by commands (see
//! [`retake_model::check`]), and every operation must follow its predecessor by the rules of history.
//!
//! If the thread already exists, an export that continues it adds its operations, and one without new
//! operations changes nothing. If the two have diverged, the import is rejected; the export can still be
//! imported as a copy.

mod lines;
mod objects;
pub(super) mod operations;

use std::collections::HashSet;
use std::convert::Infallible;
use std::io::BufRead;

use retake_model::check::{FileChecker, InvalidContentError, StateChecker};
use retake_model::content::ContentId;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::operation::Version;
use retake_model::reference::Reference;
use retake_store::{StoreError, WriteError, WriteTransaction};
use serde::Serialize;

use self::lines::{ExportLines, Line};
use self::objects::ObjectBuffer;
pub(super) use self::objects::can_be_redacted;
use crate::clock::ClockIds;
use crate::transfer::export::FORMAT;
use crate::working_copy::move_back_to_files;
use crate::write::project::UnrecordedProject;
use crate::{ChangeError, Clock, Project, ProjectError, Timeline};

/// The identity of the imported thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportMode {
    /// The same thread.
    Same,
    /// A new thread with the same history.
    Copy,
    /// A copy with an id chosen by the caller, so that a repeated import finds the same copy.
    CopyAs(ThreadId),
}

/// What was imported. It is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportSummary {
    /// The thread.
    pub thread: ThreadId,
    /// Its title.
    pub title: String,
    /// Its version now.
    pub version: Version,
    /// How many operations were new.
    pub new_operations: u64,
    /// Set where the new operations changed files of a thread whose files are in a folder here: conversation and files stay
    /// where they were, and a jump to this version brings both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump_to: Option<Version>,
    /// Set where the thread is new here and has files: none of them was written, and a restore of this version brings
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<Version>,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be read.
    #[error("the import could not be read: {0}")]
    Read(#[from] std::io::Error),
    /// The file is not an export.
    #[error("line {line}: this is not a Retake export ({reason})")]
    NotAnExport {
        /// Number of the line.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// A newer version of the program wrote the export.
    #[error("the export has format {found}, but this program supports only {FORMAT}; update this program")]
    Newer {
        /// The format of the file.
        found: u64,
    },
    /// The export is damaged.
    #[error("line {line}: the export is damaged: {reason}; nothing was imported")]
    Damaged {
        /// Number of the line.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The export is incomplete.
    #[error("the export is incomplete: it ends after line {0}; nothing was imported")]
    CutOff(u64),
    /// The thread exists and has diverged from the export.
    #[error(
        "thread {} already exists here and differs after version {common}; import it with --copy",
        .thread.short()
    )]
    Diverged {
        /// The thread.
        thread: ThreadId,
        /// The last common version.
        common: Version,
    },
    /// The existing thread cannot be continued with the export.
    #[error("{0}; nothing was imported")]
    Refused(Box<ChangeError>),
    /// The folder cannot be a project.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteError<ImportError>> for ImportError {
    fn from(error: WriteError<ImportError>) -> Self {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Store(error) => Self::Store(error),
        }
    }
}

impl Timeline {
    /// Imports a thread into a project. `progress` receives the number of imported operations and their
    /// total.
    ///
    /// Reads `from` inside a write transaction, so that an import is atomic, and blocks all other changes
    /// until it ends. `from` should therefore be a file, and not a slow source such as a network connection.
    pub fn import(
        &self,
        from: impl BufRead + Send + 'static,
        project: ProjectId,
        importing: ImportMode,
        mut progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<ImportSummary, ImportError> {
        let clock = self.clock.clone();
        Ok(self
            .store
            .write(move |writing| import_thread(writing, from, project, importing, &*clock, &mut progress))?)
    }

    /// Imports a thread into the project of a folder. A new folder becomes a project in the same transaction,
    /// so that a rejected import leaves no project behind.
    pub fn import_into(
        &self,
        from: impl BufRead + Send + 'static,
        project: &Project,
        importing: ImportMode,
        mut progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<ImportSummary, ImportError> {
        if project.recorded {
            return self.import(from, project.id, importing, progress);
        }
        let (clock, unrecorded) = (self.clock.clone(), UnrecordedProject::of(project)?);
        let (project, imported) =
            self.store.write(move |writing| -> Result<(Project, ImportSummary), ImportError> {
                let project = unrecorded.record(writing, &*clock)?;
                let imported = import_thread(writing, from, project.id, importing, &*clock, &mut progress)?;
                Ok((project, imported))
            })?;
        project.mark();
        Ok(imported)
    }

    /// Previews an import, with the same checks. Changes nothing.
    pub fn preview_import(
        &self,
        from: impl BufRead + Send + 'static,
        project: ProjectId,
        importing: ImportMode,
    ) -> Result<ImportSummary, ImportError> {
        let clock = self.clock.clone();
        let refused = self.store.write(move |writing| -> Result<Infallible, Box<PreviewResult>> {
            // Always an error, so that the transaction is rolled back.
            Err(Box::new(import_thread(writing, from, project, importing, &*clock, &mut |_, _| ())))
        });
        match refused {
            Ok(never) => match never {},
            Err(WriteError::Refused(preview)) => *preview,
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}

/// The result of an import or of its preview.
type PreviewResult = Result<ImportSummary, ImportError>;

fn import_thread(
    writing: &WriteTransaction<'_>,
    from: impl BufRead,
    project: ProjectId,
    importing: ImportMode,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64),
) -> PreviewResult {
    let copy = match importing {
        ImportMode::Same => None,
        ImportMode::Copy => Some(ThreadId::generate(&mut ClockIds(clock))),
        ImportMode::CopyAs(thread) => Some(thread),
    };
    let mut import = Import {
        writing,
        lines: ExportLines::new(from),
        project,
        copy,
        has_original: false,
        present: HashSet::new(),
        redacted: HashSet::new(),
        waiting: ObjectBuffer::default(),
        accepted: StateChecker::default(),
        measures: FileChecker::default(),
        now: clock.now(),
        previous: None,
        new_operations: 0,
    };
    let arrived = import.run(progress)?;
    import.finish(arrived, clock)
}

/// An imported thread, and its version before the import.
struct ImportedThread {
    thread: ThreadId,
    before: Option<Version>,
}

struct Import<'writing, 'transaction, R> {
    writing: &'writing WriteTransaction<'transaction>,
    lines: ExportLines<R>,
    project: ProjectId,
    copy: Option<ThreadId>,
    /// Whether the original of a copy is in the same project.
    has_original: bool,
    /// Objects that the export has brought so far.
    present: HashSet<Reference>,
    /// Objects that the export declares as redacted, until something refers to them.
    redacted: HashSet<Reference>,
    waiting: ObjectBuffer,
    accepted: StateChecker,
    measures: FileChecker,
    now: retake_model::time::Timestamp,
    previous: Option<ContentId>,
    new_operations: u64,
}

impl<R: BufRead> Import<'_, '_, R> {
    fn run(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportedThread, ImportError> {
        let header = self.lines.header()?;
        let thread = self.copy.unwrap_or(header.thread);
        let original = self.writing.thread(header.thread)?;
        self.has_original = original.is_some_and(|row| row.home == self.project);
        let known = self.writing.thread(thread)?;
        let before = known.as_ref().map(|row| row.summary.version);
        let here = known.map(|row| row.summary.sharing());
        let mut next: Version = 1;
        loop {
            let (digest_before, lines_before) = self.lines.position();
            match self.lines.line()? {
                Line::Object { object, data } => self.object(&object, &data)?,
                Line::Redacted { redacted, kind } => self.redacted(redacted, &kind)?,
                Line::Operation { operation, data } => {
                    if operation != next {
                        return Err(self.damaged("an operation is missing"));
                    }
                    self.operation(thread, next, &data)?;
                    progress(next, header.version);
                    next += 1;
                }
                Line::End { end, lines, digest } => {
                    if !end || lines != lines_before || digest != digest_before.to_hex().as_str() {
                        return Err(self.damaged("its checksum does not match"));
                    }
                    break;
                }
            }
        }
        if self.lines.next()?.is_some() {
            return Err(self.damaged("there is content after its end"));
        }
        let row = self.writing.thread(thread)?.ok_or_else(|| self.damaged("it contains no operation"))?;
        if header.version != next - 1 {
            return Err(self.damaged("it contains fewer operations than its header says"));
        }
        // The sharing of an existing thread is a local decision, which an import does not change.
        if let Some(sharing) = here.filter(|here| *here != row.summary.sharing()) {
            self.writing.put_sharing(&row, sharing)?;
        }
        Ok(ImportedThread { thread, before })
    }

    /// Keeps conversation and files together, and summarizes the import.
    fn finish(&self, arrived: ImportedThread, clock: &dyn Clock) -> Result<ImportSummary, ImportError> {
        let ImportedThread { thread, before } = arrived;
        let continued = before.filter(|_| self.new_operations > 0);
        let jump_to = match continued.map(|before| move_back_to_files(self.writing, thread, before, clock)) {
            Some(Err(ChangeError::Store(error))) => return Err(error.into()),
            Some(Err(error)) => return Err(ImportError::Refused(Box::new(error))),
            Some(Ok(jump_to)) => jump_to,
            None => None,
        };
        let row = self.writing.thread(thread)?.ok_or_else(|| self.damaged("it contains no operation"))?;
        let head = self.writing.last_operation(&row)?.operation;
        let has_files = self.new_operations == head.version && head.last_file_operation.is_some();
        let restore = has_files.then_some(head.version);
        Ok(ImportSummary {
            thread,
            title: row.summary.title.clone(),
            version: row.summary.version,
            new_operations: self.new_operations,
            jump_to,
            restore,
        })
    }

    fn damaged(&self, reason: &str) -> ImportError {
        self.lines.damaged(reason)
    }

    fn bad(&self, error: &InvalidContentError) -> ImportError {
        self.damaged(&error.to_string())
    }
}
