//! `retake export`

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use retake_timeline::{Front, Looking, Piece};
use serde::Serialize;

use crate::arguments::Target;
use crate::context::{Context, Meant};
use crate::failure::{Code, Failure};
use crate::files::{Existing, write_whole};
use crate::ui::bytes::{count, counted, size};
use crate::ui::json;
use crate::ui::progress::Progress;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::time::exact;

/// Write a thread to a file: whole, or as a text to read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake export                                  the current thread, whole, to <title>.retake
  retake export \"Fix the login\" -o - | ssh host retake import -
  retake export --without-files                  the conversation alone, to be shared
  retake export --format markdown -o login.md    the active take, to read
  retake export --format json -o - | jq '.entries[].entry.role'

The format `retake` holds all takes, all history, every byte, the files of the project too: `retake import` brings it
back. With --without-files it tells of changes to files and holds none of them; where the thread is known already,
such a file can only be imported as a copy.")]
pub(crate) struct Arguments {
    /// The thread: a title, or the beginning of an id; THREAD/TAKE for a take [default: the current one].
    thread: Option<String>,
    /// The take, for a text to read [default: the active one].
    #[arg(short = 'k', long, value_name = "TAKE")]
    take: Option<String>,
    /// Where to write it; `-` is standard output [default: a file named after the title].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Leave out the files of the project that the thread holds, and their names.
    #[arg(long)]
    without_files: bool,
    /// Replace a file that is there already.
    #[arg(long)]
    force: bool,
}

/// How a thread is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// Everything, to be imported again.
    #[default]
    Retake,
    /// One take as a text to read.
    Markdown,
    /// One take as JSON, for programs.
    Json,
}

/// What was written.
#[derive(Default)]
struct Counts {
    operations: Option<u64>,
    objects: Option<u64>,
    entries: Option<u64>,
    sealed_left_out: u64,
}

#[derive(Serialize)]
struct Answer {
    file: String,
    format: Format,
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
    sealed_left_out: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.take.is_some() && self.format == Format::Retake {
            let message = "an export holds all takes; --take is for --format markdown and json";
            return Err(Failure::new(Code::Usage, message));
        }
        let looking = context.timeline()?.look()?;
        let target = Target { thread: self.thread.clone(), take: self.take.clone(), expect: None };
        let meant = context.meant(&looking, &target)?;
        if self.output.as_deref() == Some(Path::new("-")) {
            return self.to_stdout(context, &looking, &meant);
        }
        let path = match &self.output {
            Some(path) => context.directory().join(path),
            None => context.directory().join(file_name(&meant.state.title, self.format)),
        };
        let existing = if self.force { Existing::Replaced } else { Existing::Stays };
        let (counts, bytes) = write_whole(&path, existing, |out| {
            let mut counting = Counting { out, bytes: 0 };
            let counts = self.write(context, &looking, &meant, &mut counting)?;
            Ok((counts, counting.bytes))
        })?;
        let answer = Answer {
            file: path.to_string_lossy().into_owned(),
            format: self.format,
            thread: meant.thread.summary.id,
            title: meant.state.title.clone(),
            bytes,
            operations: counts.operations,
            objects: counts.objects,
            entries: counts.entries,
            sealed_left_out: Some(counts.sealed_left_out).filter(|count| *count > 0),
        };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (title, file) = (sanitize(&answer.title, Lines::Fold), sanitize(&answer.file, Lines::Fold));
            let what = match (answer.operations, answer.entries) {
                (Some(operations), _) => counted(operations, "operation", "operations"),
                (None, entries) => counted(entries.unwrap_or_default(), "entry", "entries"),
            };
            writeln!(out, "Wrote {title} to {file}. {muted}{what}, {}{muted:#}", size(bytes))?;
            if answer.sealed_left_out.is_some() {
                let note =
                    "Left out: the sealed content of ignored or secret files; only this machine can open it.";
                writeln!(out, "{muted}{note}{muted:#}")?;
            }
            Ok(())
        })
    }

    fn to_stdout(&self, context: &Context, looking: &Looking<'_>, meant: &Meant) -> Result<(), Failure> {
        if context.general.json {
            let message = "standard output cannot hold both the export and an answer in JSON";
            return Err(Failure::new(Code::Usage, message));
        }
        let written = match (self.format, io::stdout().is_terminal()) {
            (Format::Retake, true) => {
                let message = "an export is not for reading; send it to a file or a pipe";
                return Err(Failure::new(Code::Refused, message));
            }
            (_, true) => {
                // Stored text could take a terminal over, so it is made safe for one.
                let mut text = Vec::new();
                self.write(context, looking, meant, &mut text)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                return context.answer(&(), |out, _| out.write_all(sanitize(&text, Lines::Keep).as_bytes()));
            }
            (_, false) => self.write(context, looking, meant, &mut io::stdout().lock()),
        };
        match written {
            // Whoever read it has read enough.
            Err(failure) if failure.is_closed_pipe() => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Ok(()),
        }
    }

    fn write(
        &self,
        context: &Context,
        looking: &Looking<'_>,
        meant: &Meant,
        out: &mut dyn Write,
    ) -> Result<Counts, Failure> {
        let mut progress = Progress::begin("Exporting", context.audience());
        let mut on = |done, total| progress.reach(done, total);
        match self.format {
            Format::Retake => {
                let thread = meant.thread.summary.id;
                let exported = if self.without_files {
                    looking.export_without_files(thread, out, &mut on)?
                } else {
                    looking.export(thread, out, &mut on)?
                };
                let (operations, objects) = (Some(exported.operations), Some(exported.objects));
                let sealed_left_out = exported.sealed_left_out;
                Ok(Counts { operations, objects, entries: None, sealed_left_out })
            }
            Format::Markdown => {
                let entries =
                    looking.export_markdown(&meant.thread, &meant.take, &Here(context), out, &mut on)?;
                Ok(Counts { entries: Some(entries), ..Counts::default() })
            }
            Format::Json => {
                let entries =
                    looking.export_json(&meant.thread, &meant.take, &Here(context), out, &mut on)?;
                Ok(Counts { entries: Some(entries), ..Counts::default() })
            }
        }
    }
}

/// Texts as the command line writes them: in local time, and harmless to look at.
struct Here<'context>(&'context Context);

impl Front for Here<'_> {
    fn time(&self, moment: Timestamp) -> String {
        exact(moment, &self.0.zone)
    }

    fn count(&self, number: u64) -> String {
        count(number)
    }

    fn json(&self, out: &mut dyn Write, piece: &Piece<'_>) -> io::Result<()> {
        json::write(out, piece)
    }
}

/// A file name that says which thread it is.
fn file_name(title: &str, format: Format) -> String {
    let ending = match format {
        Format::Retake => "retake",
        Format::Markdown => "md",
        Format::Json => "json",
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

/// Counts what passes through.
struct Counting<'out> {
    out: &'out mut dyn Write,
    bytes: u64,
}

impl Write for Counting<'_> {
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
        let check = |title: &str, expected: &str| assert_eq!(file_name(title, Format::Retake), expected);
        check("Fix the login", "fix-the-login.retake");
        check("  ../../etc/passwd ", "etc-passwd.retake");
        check("Größe: 5 µm!", "größe-5-µm.retake");
        check("修正する", "修正する.retake");
        check("…\u{1b}[31m?", "31m.retake");
        check("???", "thread.retake");
        assert!(file_name(&"long ".repeat(100), Format::Json).len() < 60);
    }
}
