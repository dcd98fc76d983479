//! `retake resume`

use std::process::ExitCode;

use clap::Args;
use retake_agent::{Resuming, Workshop};

use super::run::TurnTarget;
use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Resume a turn that failed or whose process was killed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake resume
  retake resume --model openai/gpt-5      with another model
  retake resume --take main_take_1

A tool that was running when the process died is not run again; the model gets a result that reports the interruption.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let meant = context.meant(&context.timeline()?.look()?, &self.target)?;
        Workshop::check_resumable(&meant.take)?;
        let target = TurnTarget::There(Box::new(meant));
        let settings = target.settings(context)?;
        let backend = context.backend(&settings, &self.agent)?;
        target.check_place(context)?;
        let (meant, expected) = target.prepare(context, &self.target, "")?;
        let thread = meant.thread.summary.id;
        let shop = context.workshop_with(backend, (thread, meant.take.id), &self.agent)?;
        let resuming =
            Resuming { settings: self.agent.settings(context, &settings), expected, request: None };
        let take = meant.take.id;
        let outcome = context.watched((thread, Some(take)), |cancel, audience| {
            shop.resume(thread, take, resuming, cancel, audience)
        })?;
        Ok(exit(&outcome))
    }
}
