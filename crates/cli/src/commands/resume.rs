//! `retake resume`

use std::process::ExitCode;

use clap::Args;
use retake_agent::{AgentRuntime, ResumeRequest};

use super::run::TurnTarget;
use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Resume a turn that failed, or whose process exited or was killed.
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
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        AgentRuntime::check_resumable(&resolved.take)?;
        let target = TurnTarget::Existing(Box::new(resolved));
        let settings = target.settings(context)?;
        let backend = context.backend(&settings, &self.agent)?;
        target.check_folder(context)?;
        let (resolved, expected) = target.prepare(context, &self.target, "")?;
        let thread = resolved.thread.summary.id;
        let runtime = context.runtime_with(backend, (thread, resolved.take.id), &self.agent)?;
        let resuming =
            ResumeRequest { settings: self.agent.settings(context, &settings), expected, request: None };
        let take = resolved.take.id;
        let outcome = context.run_watched((thread, Some(take)), |cancel, observer| {
            runtime.resume(thread, take, resuming, cancel, observer)
        })?;
        Ok(exit(&outcome))
    }
}
