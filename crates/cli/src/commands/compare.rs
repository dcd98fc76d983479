//! `retake compare`

mod draw;

use clap::Args;
use retake_agent::compare::{Comparison, MAX_COMPARED_TAKES, compare};
use retake_model::content::ContentId;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{Changes, DEFAULT_CONTEXT, Detail, DiffOptions, ReadError, Reader, ThreadRow};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// Compare takes: their answers beside each other, their cost and their files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake compare main                     the the active take and main
  retake compare main main_take_1
  retake compare main retry second        three takes
  retake compare main retry --patch       with the changed lines of files
  retake compare main retry --json        for programs
  retake keep retry                       then keep the better one
  retake take promote retry               or turn it into a thread

Turns with the same prompt stand in one row: the prompt once, and the answers in full, side by side if the terminal has \
44 columns for each take, or one after the other. Tool calls and their results are shortened; --full shows them all. Files \
are compared with those of the first take.")]
pub(crate) struct Arguments {
    /// Takes: names or id prefixes; a single one is compared with the active take.
    #[arg(value_name = "TAKE", required = true, num_args = 1..=MAX_COMPARED_TAKES)]
    takes: Vec<String>,
    /// Show the changed lines of files, not only their number.
    #[arg(short, long)]
    patch: bool,
    /// Show thinking and the whole input and output of tools.
    #[arg(long)]
    full: bool,
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    comparison: Comparison,
    /// For each take after the first: the differences of its files from those of the first; `None` if the files of either
    /// are unknown.
    files: Vec<Option<Changes>>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.thread.as_deref())?;
        let state = reader.state(thread.summary.id)?;
        let takes = self.find_takes(&reader, &thread, &state)?;
        let takes: Vec<&Take> = takes.iter().collect();
        let mut comparison = compare(&reader, thread.summary.id, &takes, &context.prices())?;
        // The active take's files are in the folder; recording them picks up hand edits.
        for take in &mut comparison.takes {
            if take.take == state.active && context.worktree_of(thread.summary.id)?.is_none() {
                take.files = Some(
                    context
                        .working_copy_of(thread.summary.id)?
                        .record_changes(thread.summary.id, context.caller(thread.summary.id, None)?)?
                        .snapshot,
                );
            }
        }
        drop(reader);
        let detail = if self.patch { Detail::Hunks(DEFAULT_CONTEXT) } else { Detail::Counts };
        let files = differences(context, &comparison, detail)?;
        let answer = Answer { comparison, files };
        context.answer(&answer, |out, _| draw::write(out, context, &answer, &self))
    }

    /// The named takes, or the named one and the active one.
    fn find_takes(
        &self,
        reader: &Reader<'_>,
        thread: &ThreadRow,
        state: &ThreadState,
    ) -> Result<Vec<Take>, Failure> {
        let named = self.takes.iter().map(|text| Ok(reader.find().take(thread, text)?.summary.id));
        let mut ids = named.collect::<Result<Vec<_>, Failure>>()?;
        if ids.len() == 1 {
            ids.push(state.active);
        }
        if ids.iter().enumerate().any(|(index, id)| ids[..index].contains(id)) {
            return Err(Failure::new(Code::Usage, "two names refer to the same take; name another one"));
        }
        let take = |id| -> Result<Take, Failure> {
            let take = state.take(&reader.queries(), id).map_err(ReadError::from)?;
            take.ok_or_else(|| Failure::new(Code::NotFound, "the take was deleted"))
        };
        ids.into_iter().map(take).collect()
    }
}

/// The differences of the files of each take from those of the first one.
fn differences(
    context: &Context,
    comparison: &Comparison,
    detail: Detail,
) -> Result<Vec<Option<Changes>>, Failure> {
    let reader = context.timeline()?.read()?;
    let changes = |one: ContentId, other: ContentId| -> Result<Changes, Failure> {
        Ok(reader.snapshot(one).changes(other, &DiffOptions::all(detail))?)
    };
    let Some((first, others)) = comparison.takes.split_first() else { return Ok(Vec::new()) };
    let files = others.iter().map(|other| first.files.zip(other.files));
    files.map(|files| files.map(|(one, other)| changes(one, other)).transpose()).collect()
}
