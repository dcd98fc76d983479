//! `retake retry`

use std::process::ExitCode;

use clap::Args;
use retake_agent::{RetryRequest, TurnRequest};
use retake_model::command::Prompt;
use retake_model::entry::EntryVersion;
use retake_model::replay::OnConflict;
use retake_timeline::SharedChanges;

use crate::agent::{AgentFlags, exit};
use crate::arguments::{Target, choice};
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Retry a message in a new take, with the same or another prompt or model.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake retry                            retry the last message
  retake retry 3                          retry message 3
  retake retry 3 \"Only the dates, please\"  with another prompt
  retake retry --model openai/gpt-5 --name by-gpt
  retake compare main by-gpt              then compare the two

The new take contains everything before the message, and the files as they were then. The fork, its files and the start \
of the turn are one operation: if any of them fails, no take is created. The old take is not changed.")]
pub(crate) struct Arguments {
    /// Message to retry: number, `last` or id prefix [default: your last message].
    entry: Option<String>,
    /// New prompt [default: the same].
    prompt: Option<String>,
    /// Name of the new take [default: the next free name].
    #[arg(short, long)]
    name: Option<String>,
    /// How to handle a file whose later changes cannot be merged.
    #[arg(long, value_parser = choice::<OnConflict>(), default_value = "keep", value_name = "HOW")]
    conflicts: OnConflict,
    /// Also undo changes whose author is unknown, or that are in the thread of which this one is a copy.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.target)?;
        let thread = resolved.thread.summary.id;
        let at = match self.entry.as_deref() {
            Some("last") | None => reader
                .entries(thread, &resolved.take)
                .last_message()?
                .ok_or_else(|| Failure::new(Code::NotFound, "this take has no message of yours to retry"))?,
            Some(entry) => reader.find().entry(&resolved.take, entry)?.1,
        };
        let settings = reader.settings(resolved.thread.summary.id).effective()?;
        let prompt = match &self.prompt {
            None => Prompt::Original,
            Some(text) => {
                let role = reader
                    .entries(resolved.thread.summary.id, &resolved.take)
                    .get(at)?
                    .map_or_else(String::new, |(_, entry)| entry.role);
                Prompt::Entry(EntryVersion::from_text(&role, text, context.now()).into())
            }
        };
        drop(reader);
        let runtime =
            context.runtime((resolved.thread.summary.id, resolved.take.id), &settings, &self.agent)?;
        let beginning = TurnRequest {
            prompt,
            settings: self.agent.settings(context, &settings),
            expected: self.target.expect,
            request: None,
        };
        let outcome = context.run_watched((thread, None), |cancel, observer| {
            let shared = if self.shared { SharedChanges::Undo } else { SharedChanges::Refuse };
            let (name, on_conflict) = (self.name, self.conflicts);
            let again = RetryRequest { from: resolved.take.id, at, name, on_conflict, shared };
            runtime.retry(thread, again, beginning, cancel, observer)
        })?;
        // The turn is over: failing to read the take's name is not an error.
        let reader = context.timeline()?.read()?;
        let take = reader.state(thread).ok().map(|state| state.take(&reader.queries(), outcome.take));
        if let Some(Ok(Some(take))) = take {
            context.note(&format!(
                "Created take {}; `retake compare {} {}` compares the two.",
                take.name, resolved.take.name, take.name
            ))?;
        }
        Ok(exit(&outcome))
    }
}
