//! `retake export`

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use retake_surface::ExportFormat;
use retake_timeline::{ExportFormatter, ExportItem, Exporter, Reader};
use serde::Serialize;

use crate::arguments::{Target, choice};
use crate::context::{Context, ResolvedTarget};
use crate::failure::{Code, Failure};
use crate::files::{IfExists, write_whole};
use crate::ui::bytes::{count, counted, size};
use crate::ui::json;
use crate::ui::progress::Progress;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::time::exact;

/// Export a thread, losslessly or as Markdown or JSON.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake export                                  the current thread, losslessly, to <title>.retake
  retake export \"Fix the login\" -o - | ssh host retake import -
  retake export --without-files                  only the conversation, for sharing
  retake export --format markdown -o login.md    the active take as Markdown
  retake export --format json -o - | jq '.entries[].entry.role'

The format `retake` contains all takes, all history and the project's files; `retake import` restores it. With \
--without-files, it lists file changes but contains no file content; such an export can only be imported as a copy if \
the thread already exists.")]
pub(crate) struct Arguments {
    /// Thread (title or id prefix), or THREAD/TAKE [default: the current thread].
    thread: Option<String>,
    /// Take to export as Markdown or JSON [default: the active take].
    #[arg(short = 'k', long, value_name = "TAKE")]
    take: Option<String>,
    /// Output file; `-` is standard output [default: a file named after the title].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the export.
    #[arg(long, value_parser = choice::<ExportFormat>(), default_value = "retake")]
    format: ExportFormat,
    /// Omit the project's files and their names.
    #[arg(long)]
    without_files: bool,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
}

#[derive(Default)]
struct Counts {
    operations: Option<u64>,
    objects: Option<u64>,
    entries: Option<u64>,
    sealed_excluded: u64,
}

#[derive(Serialize)]
struct Answer {
    file: String,
    format: ExportFormat,
    thread: ThreadId,
    title: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    operations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed_excluded: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.take.is_some() && self.format == ExportFormat::Retake {
            let message = "the format `retake` contains all takes; use --take with --format markdown or json";
            return Err(Failure::new(Code::Usage, message));
        }
        let reader = context.timeline()?.read()?;
        let target = Target { thread: self.thread.clone(), take: self.take.clone(), expect: None };
        let resolved = context.resolve(&reader, &target)?;
        if self.output.as_deref() == Some(Path::new("-")) {
            return self.to_stdout(context, &reader, &resolved);
        }
        let path = match &self.output {
            Some(path) => context.directory().join(path),
            None => context.directory().join(file_name(&resolved.state.title, self.format)),
        };
        let existing = if self.force { IfExists::Replaced } else { IfExists::Stays };
        let (counts, bytes) = write_whole(&path, existing, |out| {
            let mut counting = CountingWriter { out, bytes: 0 };
            let counts = self.write(context, &reader, &resolved, &mut counting)?;
            Ok((counts, counting.bytes))
        })?;
        let answer = Answer {
            file: path.to_string_lossy().into_owned(),
            format: self.format,
            thread: resolved.thread.summary.id,
            title: resolved.state.title.clone(),
            bytes,
            operations: counts.operations,
            objects: counts.objects,
            entries: counts.entries,
            sealed_excluded: Some(counts.sealed_excluded).filter(|count| *count > 0),
        };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (title, file) = (sanitize(&answer.title, LineBreaks::Fold), sanitize(&answer.file, LineBreaks::Fold));
            let what = match (answer.operations, answer.entries) {
                (Some(operations), _) => counted(operations, "operation", "operations"),
                (None, entries) => counted(entries.unwrap_or_default(), "entry", "entries"),
            };
            writeln!(out, "Wrote {title} to {file}. {muted}{what}, {}{muted:#}", size(bytes))?;
            if answer.sealed_excluded.is_some() {
                let note =
                    "Not included: sealed content of ignored or secret files; only this machine can decrypt it.";
                writeln!(out, "{muted}{note}{muted:#}")?;
            }
            Ok(())
        })
    }

    fn to_stdout(
        &self,
        context: &Context,
        reader: &Reader<'_>,
        resolved: &ResolvedTarget,
    ) -> Result<(), Failure> {
        if context.general.json {
            let message = "--json and `-o -` both write to standard output; choose one";
            return Err(Failure::new(Code::Usage, message));
        }
        let written = match (self.format, io::stdout().is_terminal()) {
            (ExportFormat::Retake, true) => {
                let message = "an export is binary; redirect it to a file or a pipe";
                return Err(Failure::new(Code::Refused, message));
            }
            (_, true) => {
                // Stored text may contain control sequences, so it is escaped for a terminal.
                let mut text = Vec::new();
                self.write(context, reader, resolved, &mut text)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                return context
                    .answer(&(), |out, _| out.write_all(sanitize(&text, LineBreaks::Keep).as_bytes()));
            }
            (_, false) => self.write(context, reader, resolved, &mut io::stdout().lock()),
        };
        match written {
            // The reader closed the pipe.
            Err(failure) if failure.is_closed_pipe() => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Ok(()),
        }
    }

    fn write(
        &self,
        context: &Context,
        reader: &Reader<'_>,
        resolved: &ResolvedTarget,
        out: &mut dyn Write,
    ) -> Result<Counts, Failure> {
        let mut progress = Progress::begin("Exporting", context.observer());
        let mut on = |done, total| progress.set_progress(done, total);
        match self.format {
            ExportFormat::Retake => {
                let thread = resolved.thread.summary.id;
                let exported = if self.without_files {
                    Exporter::new(reader).thread_without_files(thread, out, &mut on)?
                } else {
                    Exporter::new(reader).thread(thread, out, &mut on)?
                };
                let (operations, objects) = (Some(exported.operations), Some(exported.objects));
                let sealed_excluded = exported.sealed_excluded;
                Ok(Counts { operations, objects, entries: None, sealed_excluded })
            }
            ExportFormat::Markdown => {
                let entries = Exporter::new(reader).markdown(
                    &resolved.thread,
                    &resolved.take,
                    &TerminalFormat(context),
                    out,
                    &mut on,
                )?;
                Ok(Counts { entries: Some(entries), ..Counts::default() })
            }
            ExportFormat::Json => {
                let entries = Exporter::new(reader).json(
                    &resolved.thread,
                    &resolved.take,
                    &TerminalFormat(context),
                    out,
                    &mut on,
                )?;
                Ok(Counts { entries: Some(entries), ..Counts::default() })
            }
        }
    }
}

/// Formatting for the command line: local time, escaped text.
struct TerminalFormat<'context>(&'context Context);

impl ExportFormatter for TerminalFormat<'_> {
    fn time(&self, moment: Timestamp) -> String {
        exact(moment, &self.0.zone)
    }

    fn count(&self, number: u64) -> String {
        count(number)
    }

    fn json(&self, out: &mut dyn Write, piece: &ExportItem<'_>) -> io::Result<()> {
        json::write(out, piece)
    }
}

/// A file name derived from the thread's title.
fn file_name(title: &str, format: ExportFormat) -> String {
    let ending = match format {
        ExportFormat::Retake => "retake",
        ExportFormat::Markdown => "md",
        ExportFormat::Json => "json",
    };
    let mut slug = String::new();
    for character in title.chars() {
        if character.is_alphanumeric() {
            slug.extend(character.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.chars().count() >= 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    format!("{}.{ending}", if slug.is_empty() { "thread" } else { slug })
}

/// Counts the bytes that pass through.
struct CountingWriter<'out> {
    out: &'out mut dyn Write,
    bytes: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_come_from_titles() {
        let check =
            |title: &str, expected: &str| assert_eq!(file_name(title, ExportFormat::Retake), expected);
        check("Fix the login", "fix-the-login.retake");
        check("  ../../etc/passwd ", "etc-passwd.retake");
        check("Größe: 5 µm!", "größe-5-µm.retake");
        check("修正する", "修正する.retake");
        check("…\u{1b}[31m?", "31m.retake");
        check("???", "thread.retake");
        assert!(file_name(&"long ".repeat(100), ExportFormat::Json).len() < 60);
    }
}
