//! Comparable operations of other programs, on the same messages and interleaved.
//!
//! - Loom saves a thread by writing all of it as JSON to a temporary file, syncing, renaming, and syncing the folder,
//!   on every change.
//! - zot forks by copying the lines up to the fork to a new file, without sync. A variant with sync is measured too,
//!   since Retake's fork is durable.
//! - Manual Slop stores a deep copy of the list for every undo step, in memory only.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use retake_timeline::{Caller, Unit};
use serde::Serialize;

use crate::Outcome;
use crate::baseline::RawInsert;
use crate::measure::{Samples, format_duration, ratio, timed};
use crate::messages::Messages;
use crate::operations::{Operation, progress};
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::MeasuredThread;
use crate::{edits, moves};

/// A message in the format of other programs.
#[derive(Clone, Serialize)]
struct Message {
    role: &'static str,
    content: String,
    timestamp: u64,
}

/// The same conversation in the formats of other programs.
struct PeerFiles {
    messages: Vec<Message>,
    json: PathBuf,
    lines: PathBuf,
    fork: PathBuf,
}

/// The samples at one size.
#[derive(Default)]
struct PeerSamples {
    baseline: Samples,
    append: Samples,
    rewrite: Samples,
    fork: Samples,
    copy: Samples,
    copy_synced: Samples,
    undo: Samples,
    deep_copy: Samples,
}

pub(crate) fn measure(
    subjects: &mut [MeasuredThread],
    baseline: &mut RawInsert,
    folder: &Path,
    scale: &Scale,
    report: &mut Report,
) -> Outcome<()> {
    let header = ["entries", "ours", "theirs", "theirs : ours"];
    let mut tables = [
        Table::new("Peers: append, durable, beside a whole-file JSON rewrite (Loom)", header),
        Table::new("Peers: fork, durable, beside a JSONL prefix copy without sync (zot)", header),
        Table::new("Peers: fork, durable, beside the same copy with sync", header),
        Table::new("Peers: undo, durable, beside a deep copy of the list in memory (Manual Slop)", header),
    ];
    for subject in subjects {
        let size = subject.size;
        let others = PeerFiles::write(folder, size)?;
        let repetitions = scale.repetitions.min(if size < 10_000 { 30 } else { 7 });
        let mut seen = PeerSamples::default();
        for repetition in 0..repetitions {
            progress(&format!("peers at {size} entries"), repetition, repetitions);
            one_round(subject, baseline, &others, &mut seen)?;
        }
        let pairs = [
            ("whole-file rewrite", &seen.append, &seen.rewrite),
            ("prefix copy", &seen.fork, &seen.copy),
            ("prefix copy, synced", &seen.fork, &seen.copy_synced),
            ("deep copy", &seen.undo, &seen.deep_copy),
        ];
        for ((name, ours, theirs), table) in pairs.into_iter().zip(&mut tables) {
            report.figure(Figure::time(name, size, theirs, Some(&seen.baseline)));
            let (ours, theirs) = (ours.median(), theirs.median());
            let ratio = format!("{:.2}×", ratio(theirs, ours));
            table.row([size.to_string(), format_duration(ours), format_duration(theirs), ratio]);
        }
    }
    for table in tables {
        report.table(table);
    }
    Ok(())
}

/// Measures every program once, interleaved.
fn one_round(
    subject: &mut MeasuredThread,
    baseline: &mut RawInsert,
    others: &PeerFiles,
    seen: &mut PeerSamples,
) -> Outcome<()> {
    seen.baseline.push(baseline.insert()?);
    seen.append.push(ours(subject, edits::OPERATIONS, "append")?);
    seen.rewrite.push(timed(|| others.rewrite())?.1);
    seen.fork.push(ours(subject, moves::OPERATIONS, "fork, end")?);
    seen.copy.push(timed(|| others.copy_prefix(false))?.1);
    seen.copy_synced.push(timed(|| others.copy_prefix(true))?.1);
    seen.undo.push(ours(subject, moves::OPERATIONS, "undo")?);
    let (copy, took) = timed(|| Ok(others.messages.clone()))?;
    drop(copy);
    seen.deep_copy.push(took);
    subject.timeline.redo(subject.thread, Unit::Turn, 1, Caller::human())?;
    moves::tidy(subject)
}

/// Measures one of our operations.
fn ours(subject: &mut MeasuredThread, operations: &[Operation], name: &str) -> Outcome<std::time::Duration> {
    let found = operations.iter().find(|operation| operation.name == name);
    let ready = (found.ok_or("there is no such operation")?.prepare)(subject)?;
    Ok(timed(ready)?.1)
}

impl PeerFiles {
    fn write(folder: &Path, size: u64) -> Outcome<Self> {
        let mut texts = Messages::new(size);
        let role = |number: u64| if number.is_multiple_of(2) { "user" } else { "assistant" };
        let messages = (0..size)
            .map(|number| Message {
                role: role(number),
                content: texts.text(),
                timestamp: 1_750_000_000 + number,
            })
            .collect();
        let others = Self {
            messages,
            json: folder.join(format!("peer-{size}.json")),
            lines: folder.join(format!("peer-{size}.jsonl")),
            fork: folder.join(format!("peer-{size}-fork.jsonl")),
        };
        let mut lines = BufWriter::new(File::create(&others.lines)?);
        for message in &others.messages {
            serde_json::to_writer(&mut lines, message)?;
            lines.write_all(b"\n")?;
        }
        lines.into_inner()?.sync_all()?;
        Ok(others)
    }

    /// Writes the whole thread: temporary file, sync, rename, sync of the folder.
    fn rewrite(&self) -> Outcome<()> {
        let temporary = self.json.with_extension("tmp");
        let file = File::create(&temporary)?;
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        serde_json::to_writer(&mut writer, &self.messages)?;
        writer.into_inner()?.sync_all()?;
        std::fs::rename(&temporary, &self.json)?;
        Ok(File::open(self.json.parent().unwrap_or(Path::new(".")))?.sync_all()?)
    }

    /// Copies all lines but the last to a new file.
    fn copy_prefix(&self, sync: bool) -> Outcome<()> {
        let mut reader = BufReader::with_capacity(1 << 20, File::open(&self.lines)?);
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(&self.fork)?);
        let mut line = Vec::new();
        for _ in 1..self.messages.len() {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            writer.write_all(&line)?;
        }
        let file = writer.into_inner()?;
        if sync {
            file.sync_all()?;
            File::open(self.fork.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for PeerFiles {
    fn drop(&mut self) {
        // Frees space early: at the largest sizes these files have hundreds of megabytes.
        for path in [&self.json, &self.lines, &self.fork] {
            let _ = std::fs::remove_file(path);
        }
    }
}
