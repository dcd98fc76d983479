//! `retake turns`

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_timeline::{Turn, TurnStatus};
use serde::Serialize;

use crate::agent::dollars;
use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::{count, counted};
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::table::{Column, Table};

/// List the turns of a take, newest first: prompts and their results.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake turns
  retake turns -n 5 -k retry
  retake show turn:3                      what turn 3 said and did
  retake diff turn:3                      its changes of files
  retake undo --to turn:3                 undo everything after turn 3

A turn is numbered within its take, from 1. `turn:3` is accepted wherever a revision is, and `turn:last` is the last one. \
Undone turns are not listed; `retake history` shows them.")]
pub(crate) struct Arguments {
    /// Maximum number of turns.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Show only turns before this number.
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    take: TakeId,
    /// Number of turns of the take.
    count: u64,
    /// Newest first.
    turns: Vec<Turn>,
    /// The value for `--before` to get the next page; `None` on the last page.
    next: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &Target::from(&self.target))?;
        let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
        let found = reader.history(thread).in_take(Some(take)).turns()?;
        let turns = found.list(self.before, usize::try_from(self.limit).unwrap_or(usize::MAX))?;
        let next = turns.last().map(|last| last.name.number).filter(|number| *number > 1);
        let answer = Answer { thread, take, count: found.count(), turns, next };
        if answer.next.is_none()
            && let Some((_, source)) = reader.history(thread).lineage()?.get(1)
        {
            let title = sanitize(&source.summary.title, LineBreaks::Fold);
            let short = source.summary.id.short();
            context.note(&format!(
                "Turns from before the promotion are in thread {title}: `retake turns -t {short}`."
            ))?;
        }
        if answer.turns.is_empty() {
            context.note_empty("No turns yet", "`retake run` starts one")?;
        }
        context.answer(&answer, |out, styles| {
            if answer.turns.is_empty() {
                return Ok(());
            }
            let table = table(context, &answer.turns);
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
            if let Some(next) = answer.next {
                let muted = styles.muted;
                writeln!(out, "{muted}… older: `retake turns --before {next}`{muted:#}")?;
            }
            Ok(())
        })
    }
}

fn table(context: &Context, turns: &[Turn]) -> Table<6> {
    let styles = &context.styles;
    let mut table = Table::new([
        Column::right("TURN"),
        Column::left("PROMPT").flexible(),
        Column::right("FILES"),
        Column::left("COST").dispensable(),
        Column::left("MODEL").dispensable(),
        Column::left("WHEN"),
    ]);
    for turn in turns {
        let mut prompt = Label::new().plain(&turn.name.prompt);
        if let Some(status) = status(turn.status) {
            prompt = prompt.with(styles.warning, &format!("  {status}"));
        }
        table.row([
            Label::new().with(styles.id, &turn.name.number.to_string()),
            prompt,
            Label::new().plain(&count(turn.file_count)),
            Label::new().with(styles.muted, &cost(turn)),
            Label::new().with(styles.muted, &turn.models.join(", ")),
            Label::new().with(styles.muted, &context.ago(turn.started)),
        ]);
    }
    table
}

/// Tokens, cost and time of a turn, in a few words.
pub(crate) fn facts(turn: &Turn) -> String {
    let mut facts = vec![
        counted(turn.entries.len() as u64, "entry", "entries"),
        counted(turn.file_count, "file", "files"),
        format!("{:.1} s", turn.ended.millis_since(turn.started).max(0) as f64 / 1e3),
    ];
    let cost = cost(turn);
    if !cost.is_empty() {
        facts.push(cost);
    }
    facts.extend(turn.models.iter().cloned());
    facts.extend(status(turn.status).map(str::to_owned));
    facts.join(", ")
}

fn cost(turn: &Turn) -> String {
    let tokens = turn.usage.total_input().saturating_add(turn.usage.output_tokens);
    match turn.micro_dollars {
        _ if tokens == 0 => String::new(),
        Some(cost) => format!("{} tokens, {}", count(tokens), dollars(cost)),
        None => format!("{} tokens", count(tokens)),
    }
}

fn status(status: TurnStatus) -> Option<&'static str> {
    match status {
        TurnStatus::Finished => None,
        TurnStatus::Failed => Some("failed"),
        TurnStatus::Interrupted => Some("interrupted"),
        TurnStatus::Unfinished => Some("not finished"),
    }
}
