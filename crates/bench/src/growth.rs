//! The disk space of a thousand forks of a long thread.
//!
//! Four cases, each in its own store: forks at the last user message, as repeated retries make them, forks at a
//! thousand different messages, and branches at the same positions. A fork stores its message as a 2 KB draft; a branch
//! does not.

use std::path::Path;

use retake_timeline::{Caller, Command, Rules, Timeline};
use rusqlite::Connection;

use crate::Outcome;
use crate::messages::Messages;
use crate::operations::kilobytes;
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::{empty_log, fill, new_thread};

/// Maximum growth of the database.
const MAX_GROWTH_BYTES: u64 = 2 * 1024 * 1024;

/// Tables and their counted bytes, without the overhead of pages.
const TABLE_SIZES: [(&str, &str); 3] = [
    ("new objects", "SELECT coalesce(sum(length(bundle)), 0) FROM operation"),
    ("operations", "SELECT sum(length(body) + length(id)) FROM operation"),
    ("index of takes", "SELECT sum(length(key) + length(name) * 2 + length(record) + 24) FROM take"),
];

#[derive(Clone, Copy)]
enum ForkKind {
    Fork,
    Branch,
}

#[derive(Clone, Copy)]
enum ForkPosition {
    End,
    Everywhere,
}

const CASES: [(&str, ForkKind, ForkPosition); 4] = [
    ("forks at the last user message", ForkKind::Fork, ForkPosition::End),
    ("forks at as many user messages", ForkKind::Fork, ForkPosition::Everywhere),
    ("branches at the last entry", ForkKind::Branch, ForkPosition::End),
    ("branches at as many entries", ForkKind::Branch, ForkPosition::Everywhere),
];

pub(crate) fn measure(folder: &Path, scale: &Scale, report: &mut Report) -> Outcome<()> {
    let forks = scale.forks;
    let title = format!("Growth: {forks} forks of a thread of {} entries", scale.forked);
    let header = ["what", "database grew by", "per fork", "new content per fork", "goal", ""];
    let mut table = Table::new(&title, header);
    for (name, how, place) in CASES {
        eprintln!("growth: {name}");
        let folder = folder.join(format!("growth-{}", name.replace(' ', "-")));
        let seen = grow(&folder, how, place, scale)?;
        report.figure(Figure::bytes(name, "growth", forks, seen.grown));
        let verdict = report.judge(name, "under 2 MB", &kilobytes(seen.grown), seen.grown < MAX_GROWTH_BYTES);
        table.row([
            name.to_owned(),
            kilobytes(seen.grown),
            format!("{} B", seen.grown / forks),
            format!("{} B", seen.content / forks),
            "under 2 MB".to_owned(),
            verdict.to_owned(),
        ]);
        let shares = seen.shares.iter().map(|(table, bytes)| format!("{table} {} B", bytes / forks));
        table.note(format!("Of which, per fork, {name}: {}.", shares.collect::<Vec<_>>().join(", ")));
    }
    report.table(table);
    Ok(())
}

struct GrowthSample {
    grown: u64,
    content: u64,
    shares: Vec<(&'static str, u64)>,
}

fn grow(folder: &Path, how: ForkKind, place: ForkPosition, scale: &Scale) -> Outcome<GrowthSample> {
    let timeline = Timeline::open(folder, Rules::default())?;
    let thread = new_thread(&timeline, "forked")?;
    fill(&timeline, &thread, scale.forked, 0, &mut Messages::new(5))?;
    let from = thread.summary.active.id;
    let reader = timeline.read()?;
    let entries = reader.state(thread.thread)?.active_take(&reader.queries())?.entries;
    let cells = entries.page(&reader.queries(), 0..entries.len())?;
    drop(reader);
    let before = (size(folder)?, shares(folder)?);
    let mut content = 0;
    for number in 0..scale.forks {
        // User messages are at even positions.
        let position = match place {
            ForkPosition::End => scale.forked - 2,
            ForkPosition::Everywhere => number * 7919 * 2 % scale.forked,
        };
        let at = cells[position as usize].entry;
        let command = match how {
            ForkKind::Fork => Command::Fork { from, at, name: None },
            ForkKind::Branch => Command::Branch { from, at: Some(at), name: None },
        };
        content += timeline.change(thread.thread, command, Caller::human())?.new_bytes;
    }
    let after = (size(folder)?, shares(folder)?);
    let shares = after.1.into_iter().zip(before.1).map(|(after, before)| (after.0, after.1 - before.1));
    Ok(GrowthSample { grown: after.0 - before.0, content, shares: shares.collect() })
}

/// The size of the database with an empty log.
fn size(folder: &Path) -> Outcome<u64> {
    empty_log(folder)?;
    Ok(std::fs::metadata(folder.join("retake.db"))?.len())
}

fn shares(folder: &Path) -> Outcome<Vec<(&'static str, u64)>> {
    let connection = Connection::open(folder.join("retake.db"))?;
    let sum = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    TABLE_SIZES.iter().map(|(name, sql)| Ok((*name, u64::try_from(sum(sql)?)?))).collect()
}
