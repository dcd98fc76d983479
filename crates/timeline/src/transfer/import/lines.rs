//! Reads an export line by line, and hashes it.

use std::io::{BufRead, Read};

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::operation::Version;
use serde::Deserialize;

use super::ImportError;
use crate::transfer::export::FORMAT;

/// Maximum length of a line: the largest entry in base64, with a margin.
const LONGEST_LINE: u64 = 128 * 1024 * 1024;

#[derive(Deserialize)]
pub(super) struct Header {
    retake: String,
    format: u64,
    pub(super) thread: ThreadId,
    pub(super) version: Version,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Object { object: String, data: String },
    Operation { operation: Version, data: String },
    Redacted { redacted: ContentId, kind: String },
    End { end: bool, lines: u64, digest: String },
}

/// The lines of an export.
pub(super) struct ExportLines<R> {
    from: R,
    hasher: blake3::Hasher,
    line: u64,
}

impl<R: BufRead> ExportLines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, hasher: blake3::Hasher::new(), line: 0 }
    }

    /// The hash and the number of the lines so far.
    pub(super) fn position(&self) -> (blake3::Hash, u64) {
        (self.hasher.finalize(), self.line)
    }

    pub(super) fn header(&mut self) -> Result<Header, ImportError> {
        let text = self.next()?.ok_or_else(|| self.not_an_export("it is empty"))?;
        let header: Header =
            serde_json::from_str(&text).map_err(|error| self.not_an_export(&error.to_string()))?;
        if header.retake != "thread" {
            return Err(self.not_an_export("it does not contain a thread"));
        }
        if header.format > FORMAT {
            return Err(ImportError::Newer { found: header.format });
        }
        Ok(header)
    }

    /// The next line after the header.
    pub(super) fn line(&mut self) -> Result<Line, ImportError> {
        let text = self.next()?.ok_or(ImportError::CutOff(self.line))?;
        serde_json::from_str(&text).map_err(|error| self.not_an_export(&error.to_string()))
    }

    /// The next line; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<String>, ImportError> {
        let mut bytes = Vec::new();
        self.from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if bytes.last() != Some(&b'\n') {
            return Err(ImportError::CutOff(self.line));
        }
        self.hasher.update(&bytes);
        String::from_utf8(bytes).map(Some).map_err(|_| self.not_an_export("it is not UTF-8"))
    }

    pub(super) fn not_an_export(&self, reason: &str) -> ImportError {
        ImportError::NotAnExport { line: self.line, reason: reason.chars().take(120).collect() }
    }

    pub(super) fn damaged(&self, reason: &str) -> ImportError {
        ImportError::Damaged { line: self.line, reason: reason.to_owned() }
    }
}
