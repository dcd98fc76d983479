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

/// Try a message again, in a take of its own: the same or another prompt, the same or another model.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake retry                            the last message, once more
  retake retry 3                          message 3
  retake retry 3 \"Only the dates, please\"  said differently
  retake retry --model openai/gpt-5 --name by-gpt
  retake compare main by-gpt              then see which is better

The new take has everything before the message, with the files as they were then. Fork, files and the beginning of the
turn are one operation: where any of it fails, there is no new take. The old take stays as it is.")]
pub(crate) struct Arguments {
    /// The message: its number, `last`, or the beginning of its id [default: the last message of yours].
    entry: Option<String>,
    /// What to say instead.
    prompt: Option<String>,
    /// What to call the new take [default: the next free name].
    #[arg(short, long)]
    name: Option<String>,
    /// What to do with a file that was changed since in a way that does not merge.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    conflicts: Conflicts,
    /// Also undo changes that may be another command's, or that the thread has in common with the one it is a copy of.
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
            Some("last") | None => looking.last_message(thread, &meant.take)?.ok_or_else(|| {
                Failure::new(Code::NotFound, "this take has no message of yours to try again")
            })?,
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
        // The turn is over: a name that cannot be read is no failure of it.
        let looking = context.timeline()?.look()?;
        let take = looking.state(thread).ok().map(|state| state.take(&looking.queries(), outcome.take));
        if let Some(Ok(Some(take))) = take {
            context.remark(&format!(
                "This is take {}; `retake compare {} {}` puts the two side by side.",
                take.name, meant.take.name, take.name
            ))?;
        }
        Ok(exit(&outcome))
    }
}
