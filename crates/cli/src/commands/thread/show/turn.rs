//! `retake show turn:NUMBER`: the entries of a turn, and the files that it changed.

use std::io::{self, Write};

use retake_model::id::ThreadId;
use retake_timeline::{
    Changes, Comparison, Detail, DiffOptions, EntryView, ReadError, RevisionError, TURN, Turn,
};
use serde::Serialize;

use crate::arguments::Target;
use crate::commands::diff::write_stat;
use crate::commands::thread::{EntryFormat, write_entry};
use crate::commands::turns;
use crate::context::Context;
use crate::failure::Failure;
use crate::revisions::revisions;
use crate::ui::sanitize::{LineBreaks, sanitize};

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    #[serde(flatten)]
    turn: Turn,
    /// The entries that it added, as they were after it.
    added: Vec<EntryView>,
    /// The changes of files, without their lines; `None` if no files are recorded.
    changes: Option<Changes>,
}

/// Shows a turn of the current thread.
pub(super) fn show(
    context: &Context,
    text: &str,
    take: Option<&str>,
    manner: EntryFormat,
) -> Result<(), Failure> {
    let reader = context.timeline()?.read()?;
    let resolved =
        context.resolve(&reader, &Target { take: take.map(str::to_owned), ..Target::default() })?;
    let thread = resolved.thread.summary.id;
    let history = reader.history(thread).in_take(Some(resolved.take.id));
    let turn = history.turns()?.find(text.strip_prefix(TURN).unwrap_or(text))?;
    let state = reader.state_at(thread, turn.last)?;
    let take = state.take(&reader.queries(), turn.take).map_err(ReadError::from)?;
    let mut added = Vec::new();
    for id in &turn.entries {
        let Some(take) = &take else { break };
        let entries = reader.entries(thread, take);
        if let Some((position, _)) = entries.get(*id)? {
            added.extend(entries.page(position..position + 1)?);
        }
    }
    let files = revisions(context, Some(&thread.to_string()))?.in_take(resolved.take.id).of_turn(text);
    let changes = match files {
        Ok(Some(Comparison { from, to, changed })) => {
            let options = DiffOptions { changed, ..DiffOptions::all(Detail::Counts) };
            Some(reader.snapshot(from.snapshot).changes(to.snapshot, &options)?)
        }
        Ok(None) | Err(RevisionError::NoFiles) => None,
        Err(error) => return Err(error.into()),
    };
    let answer = Answer { thread, turn, added, changes };
    context.answer(&answer, |out, _| {
        heading(out, context, &answer.turn)?;
        for view in &answer.added {
            write_entry(out, context, view, manner)?;
        }
        match &answer.changes {
            Some(changes) if !changes.files.is_empty() => write_stat(out, context, changes),
            _ => Ok(()),
        }
    })
}
fn heading(out: &mut dyn Write, context: &Context, turn: &Turn) -> io::Result<()> {
    let (heading, muted) = (context.styles.heading, context.styles.muted);
    writeln!(out, "{heading}{}{heading:#}", sanitize(&turn.name.to_string(), LineBreaks::Fold))?;
    let facts = turns::facts(turn);
    writeln!(out, "{muted}{}, {}{muted:#}\n", context.ago(turn.started), sanitize(&facts, LineBreaks::Fold))
}
