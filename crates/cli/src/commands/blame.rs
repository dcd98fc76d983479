//! `retake blame`

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use retake_timeline::{Blame, BlameError, FOLDER, LineOrigin, NamedFiles};
use serde::Serialize;

use crate::context::Context;
use crate::describe;
use crate::failure::{Code, Failure};
use crate::revisions::{revisions, suggest_paths};
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::width::{Align, expand_tabs};

/// Maximum width of the thread title.
const TITLE: usize = 20;
/// Maximum width of the turn.
const TURN_WIDTH: usize = 32;

/// Show which turn or operation wrote each line of a file, and when.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake blame src/main.rs
  retake blame src/main.rs --line 10,20
  retake blame src/main.rs --at turn:3    the file as it was after turn 3
  retake diff --of 12                     what version 12 of this thread did

Undo, redo, jump, restore and switching takes do not change who wrote a line. Your own edits are shown as yours; \
lines from before the first snapshot are marked `before`.")]
pub(crate) struct Arguments {
    /// The file.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Version, saved name, turn:NUMBER, take:NAME, folder or snapshot id.
    #[arg(long, value_name = "REVISION", default_value = FOLDER)]
    at: String,
    /// Only this line, or the lines from A to B.
    #[arg(short = 'L', long, value_name = "A,B", value_parser = parse_lines)]
    line: Option<RangeInclusive<u64>>,
    /// Thread that `--at` refers to: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    at: NamedFiles,
    #[serde(flatten)]
    blame: Blame,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let path = context.root_path(&self.path)?;
        let revisions = revisions(context, self.thread.as_deref())?;
        let at = revisions.find(&self.at).map_err(suggest_paths)?;
        let reader = context.timeline()?.read()?;
        let blame = reader.files(revisions.thread.summary.id).blame(&path, &at);
        let mut blame = blame.map_err(|error| match error {
            BlameError::Read(error) => error.into(),
            error => Failure::from(error).at(&path),
        })?;
        if let Some(range) = &self.line {
            let last = blame.lines.len();
            blame.lines.retain(|line| range.contains(&line.number));
            if blame.lines.is_empty() {
                let message = format!("{path} has only {last} lines at that revision");
                return Err(Failure::new(Code::NotFound, message));
            }
        }
        let answer = Answer { at, blame };
        context.answer(&answer, |out, styles| {
            let blame = &answer.blame;
            let heads: Vec<Label> = blame.origins.iter().map(|origin| head(context, origin)).collect();
            let before = Label::new().with(styles.muted, "before");
            let shown = |origin: Option<usize>| origin.map_or(&before, |origin| &heads[origin]);
            let widest = blame.lines.iter().map(|line| shown(line.origin).width()).max().unwrap_or(0);
            let digits = blame.lines.last().map_or(0, |last| last.number.to_string().len());
            let muted = styles.muted;
            for line in &blame.lines {
                let head = shown(line.origin).clone().pad(widest, Align::Left);
                let text = line.text.strip_suffix('\r').unwrap_or(&line.text);
                let text = expand_tabs(text);
                let text = sanitize(&text, LineBreaks::Keep);
                let number = line.number;
                writeln!(out, "{head}  {muted}{number:>digits$} │{muted:#} {text}")?;
            }
            Ok(())
        })
    }
}

/// The origin of a line, in a few columns.
fn head(context: &Context, origin: &LineOrigin) -> Label {
    let styles = &context.styles;
    let by = &origin.by;
    let label = Label::new().with(styles.title, &by.title).truncate(TITLE);
    let label = match &origin.in_turn {
        Some(turn) => {
            label.plain(" ").join(Label::new().with(styles.id, &turn.to_string()).truncate(TURN_WIDTH))
        }
        None => label
            .with(styles.id, &format!(" {}", by.version))
            .plain(&format!(" {}", describe::actor(&by.actor))),
    };
    label.with(styles.muted, &format!(" {}", context.ago(by.time)))
}

/// Parses `12` or `10,20`.
fn parse_lines(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .ok()
            .filter(|number| *number > 0)
            .ok_or("line numbers start at 1; write 12, or 10,20")
    };
    let (first, last) = text.split_once(',').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err("the first line comes before the last".to_owned()) } else { Ok(first..=last) }
}
