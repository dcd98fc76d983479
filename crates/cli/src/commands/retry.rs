//! `retake retry`

use std::process::ExitCode;

use clap::Args;
use retake_agent::{Again, Beginning};
use retake_model::command::Prompt;
use retake_model::entry::EntryVersion;
use retake_timeline::SharedChanges;

use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::Context;
use crate::desk::Conflicts;
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

The new take contains everything before the message, and the files as they were then. The fork, its files and the start
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
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    conflicts: Conflicts,
    /// Also undo changes whose author is unknown, or that the thread shares with the one it is a copy of.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let looking = context.timeline()?.look()?;
        let meant = context.meant(&looking, &self.target)?;
        let thread = meant.thread.summary.id;
        let at = match self.entry.as_deref() {
            Some("last") | None => looking
                .last_message(thread, &meant.take)?
                .ok_or_else(|| Failure::new(Code::NotFound, "this take has no message of yours to retry"))?,
            Some(entry) => looking.find_entry(&meant.take, entry)?.1,
        };
        let settings = looking.effective_settings(meant.thread.summary.id)?;
        let prompt = match &self.prompt {
            None => Prompt::Same,
            Some(text) => {
                let role = looking.entry(&meant.take, at)?.map_or_else(String::new, |(_, entry)| entry.role);
                Prompt::Entry(EntryVersion::from_text(&role, text, context.now()).into())
            }
        };
        drop(looking);
        let shop = context.workshop((meant.thread.summary.id, meant.take.id), &settings, &self.agent)?;
        let beginning = Beginning {
            prompt,
            settings: self.agent.settings(context, &settings),
            expected: self.target.expect,
            request: None,
        };
        let outcome = context.watched((thread, None), |cancel, audience| {
            let shared = if self.shared { SharedChanges::Undo } else { SharedChanges::Refuse };
            let (name, on_conflict) = (self.name, self.conflicts.into());
            let again = Again { from: meant.take.id, at, name, on_conflict, shared };
            shop.retry(thread, again, beginning, cancel, audience)
        })?;
        // The turn is over: failing to read the take's name is not an error.
        let looking = context.timeline()?.look()?;
        let take = looking.state(thread).ok().map(|state| state.take(&looking.queries(), outcome.take));
        if let Some(Ok(Some(take))) = take {
            context.remark(&format!(
                "Created take {}; `retake compare {} {}` compares the two.",
                take.name, meant.take.name, take.name
            ))?;
        }
        Ok(exit(&outcome))
    }
}
