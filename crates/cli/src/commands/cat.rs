//! `retake cat`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use data_encoding::BASE64;
use retake_timeline::{CapturedFile, FOLDER, FileFacts, FilePiece, NamedFiles};
use serde::Serialize;

use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::revisions::{revisions_of, suggest_paths};
use crate::ui::pager::ignore_closed_pipe;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Bytes to read at a time.
const CHUNK: u64 = 1024 * 1024;

/// Print a file as it was at a revision, without changing anything.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake cat src/main.rs --at turn:3      as it was after turn 3
  retake cat src/main.rs --at take:retry  in another take
  retake cat logo.png --at 12 > old.png   byte for byte

On a terminal, control characters are escaped, and binary files are refused. `retake restore` brings a file back.")]
pub(crate) struct Arguments {
    /// The file.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Version, saved name, turn:NUMBER, take:NAME, folder or snapshot id.
    #[arg(long, value_name = "REVISION", default_value = FOLDER)]
    at: String,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    /// The revision.
    at: NamedFiles,
    #[serde(flatten)]
    file: CapturedFile,
    /// Size in bytes.
    bytes: u64,
    /// The text; `None` if the file is binary. For a symbolic link, its target.
    text: Option<String>,
    /// The bytes in base64, if it is binary.
    base64: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let revisions = revisions_of(context, &self.target)?;
        let path = context.root_path_of(revisions.thread.summary.id, &self.path)?;
        let at = revisions.find(&self.at).map_err(suggest_paths)?;
        let reader = context.timeline()?.read()?;
        let piece = |from: u64, most: u64| -> Result<FilePiece, Failure> {
            let found = reader.snapshot(at.snapshot).read(&path, from, most)?;
            found
                .ok_or_else(|| Failure::new(Code::NotFound, format!("{path} is not captured at {}", at.name)))
        };
        let first = piece(0, CHUNK)?;
        if matches!(first.file.facts, FileFacts::Folder { .. }) {
            let message = format!("{path} is a folder; `retake ls-files` lists it");
            return Err(Failure::new(Code::Usage, message));
        }
        if context.general.json {
            let FilePiece { file, size, bytes } = piece(0, u64::MAX)?;
            let (text, base64) = match String::from_utf8(bytes) {
                Ok(text) => (Some(text), None),
                Err(error) => (None, Some(BASE64.encode(error.as_bytes()))),
            };
            let answer = Answer { at: at.clone(), file, bytes: size, text, base64 };
            return context.answer(&answer, |_, _| Ok(()));
        }
        if io::stdout().is_terminal() {
            let FilePiece { bytes, .. } = piece(0, u64::MAX)?;
            let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| {
                Failure::new(
                    Code::Refused,
                    "a binary file is not written to a terminal; redirect it to a file",
                )
            })?;
            return context.answer(&(), |out, _| write!(out, "{}", sanitize(&text, LineBreaks::Keep)));
        }
        let mut out = io::stdout().lock();
        let mut from = 0;
        let mut next = Some(first);
        while let Some(FilePiece { size, bytes, .. }) = next {
            from += bytes.len() as u64;
            ignore_closed_pipe(out.write_all(&bytes))?;
            next = if from < size && !bytes.is_empty() { Some(piece(from, CHUNK)?) } else { None };
        }
        Ok(ignore_closed_pipe(out.flush())?)
    }
}
