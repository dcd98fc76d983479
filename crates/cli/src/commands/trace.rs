//! `retake trace`

use std::io::Write;

use clap::Args;
use retake_store::runtime::{TraceFilter, TraceRecord};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::pager::ignore_closed_pipe;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Show the trace: every model request, response and tool call.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake trace                            the last 20 records of the current thread
  retake trace 17                         record 17 in full
  retake trace --all --json > trace.jsonl  everything, one record per line

The trace is not part of history: undo and reset do not change it. Secrets are removed before it is written. \
`retake purge` deletes the trace of a thread, `retake redact` removes text from it.")]
pub(crate) struct Arguments {
    /// Show this record in full.
    number: Option<i64>,
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
    /// Show all records of all threads.
    #[arg(long, conflicts_with_all = ["thread", "number"])]
    all: bool,
    /// How many of the last records to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, conflicts_with_all = ["all", "number"])]
    last: u64,
}

#[derive(Serialize)]
struct Record<'a> {
    number: i64,
    thread: String,
    take: String,
    time: retake_model::time::Timestamp,
    kind: &'a str,
    facts: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let thread = match (self.all, self.number) {
            (true, _) | (_, Some(_)) => None,
            _ => Some(context.thread(&timeline.read()?, self.thread.as_deref())?.summary.id),
        };
        let filter = TraceFilter {
            thread,
            numbers: self.number.map(|number| number..number.saturating_add(1)),
            last: (!self.all && self.number.is_none()).then_some(self.last),
            bodies: context.general.json || self.number.is_some(),
        };
        let mut found = Vec::new();
        let mut out = std::io::stdout().lock();
        let mut written = Ok(());
        timeline.store().runtime_database()?.read_trace(&filter, &mut |comm| {
            if !context.general.json {
                found.push(comm);
            } else if written.is_ok() {
                // Written as they are read: a trace can be larger than memory.
                written = write_record(&mut out, &comm);
            }
            Ok(())
        })?;
        drop(out);
        ignore_closed_pipe(written)?;
        if context.general.json {
            return Ok(());
        }
        if found.is_empty() {
            return context.note_empty("No model was called yet", "`retake run` calls one");
        }
        context.answer(&(), |out, styles| {
            let (id, muted, heading) = (styles.id, styles.muted, styles.heading);
            for comm in &found {
                let facts = sanitize(&comm.facts, LineBreaks::Fold);
                writeln!(
                    out,
                    "{id}{:>6}{id:#} {muted}{}{muted:#} {heading}{:<11}{heading:#} {muted}{facts}{muted:#}",
                    comm.number,
                    context.ago(comm.time),
                    comm.kind,
                )?;
                if let Some(body) = &comm.body {
                    writeln!(out, "\n{}", sanitize(&pretty(body), LineBreaks::Keep))?;
                } else if self.number.is_some() {
                    writeln!(out, "\nThe content was redacted.")?;
                }
            }
            Ok(())
        })
    }
}

fn write_record(out: &mut impl Write, comm: &TraceRecord) -> std::io::Result<()> {
    let facts = RawValue::from_string(comm.facts.clone()).map_err(std::io::Error::other)?;
    let record = Record {
        number: comm.number,
        thread: comm.thread.to_string(),
        take: comm.take.to_string(),
        time: comm.time,
        kind: &comm.kind,
        facts: &facts,
        body: comm.body.as_deref(),
    };
    json::write(&mut *out, &record)?;
    writeln!(out)
}

/// Pretty-prints JSON; returns anything else unchanged.
fn pretty(body: &str) -> String {
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(body);
    parsed.ok().and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| body.to_owned())
}
