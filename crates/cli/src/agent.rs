//! Setup shared by the commands that run turns: provider, model, approval rules and output.

mod approval_prompt;
mod interrupt;
mod turn_output;

use crate::arguments::choice;
use std::collections::BTreeMap;

use clap::Args;
use retake_agent::approval::ApprovalMode;
use retake_agent::provider::config::ProviderEnvironment;
use retake_agent::provider::prices::Prices;
use retake_agent::setup::TurnOverrides;
use retake_agent::{AgentRuntime, Cancel, ModelBackend, Setup, TurnError, TurnObserver, TurnOutcome};
use retake_model::agent::TurnEnd;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::settings::{Effort, Settings};
use retake_surface::Approve;
use retake_workspace::folder::path_to_text;

pub(crate) use interrupt::InterruptGuard;
use turn_output::TurnOutput;
pub(crate) use turn_output::dollars;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// Options that select the model and the approval rules.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentFlags {
    /// Provider to use [default: the thread's setting, then agent.provider, then one with a key].
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Model to use, or PROVIDER/MODEL for both. Becomes the thread's setting.
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How hard the model thinks: off, low, medium, high or max. Becomes the
    /// thread's setting [default: the thread's setting, then agent.effort, then the model's own default].
    #[arg(long, value_name = "LEVEL", value_parser = choice::<Effort>(), hide_possible_values = true)]
    pub(crate) effort: Option<Effort>,
    /// What tools may do without your approval [default: agent.approval].
    #[arg(long, value_parser = choice::<Approve>(), value_name = "WHAT")]
    pub(crate) approve: Option<Approve>,
}

impl AgentFlags {
    /// Thread settings that these options change.
    pub(crate) fn settings(&self, context: &Context, settings: &Settings) -> Vec<(String, String)> {
        context.setup().changed_settings(settings, &self.overrides())
    }

    fn overrides(&self) -> TurnOverrides {
        let Self { provider, model, effort, approve } = self.clone();
        TurnOverrides { provider, model, effort, approve: approve.map(ApprovalMode::from) }
    }
}

impl Context {
    pub(crate) fn setup(&self) -> Setup {
        let agent = &self.config.agent;
        Setup {
            provider: agent.provider.clone(),
            model: agent.model.clone(),
            approval: agent.approval.into(),
            effort: agent.effort,
            thinking: agent.thinking,
            attempts: agent.attempts,
            rounds: agent.rounds,
            calls: agent.calls,
            window: agent.window,
            rules: self.config.approval.rules.clone(),
            providers: self.config.providers.clone(),
            prices: self.prices(),
            files: Some(self.file_options()),
            post_tools: agent.post_tools.clone(),
        }
    }

    /// The runtime for turns of a thread.
    pub(crate) fn runtime(
        &self,
        of: (ThreadId, TakeId),
        settings: &Settings,
        flags: &AgentFlags,
    ) -> Result<AgentRuntime, Failure> {
        self.runtime_with(self.backend(settings, flags)?, of, flags)
    }

    /// The provider and model for a thread with these settings. Changes nothing, so that commands can call it before
    /// they prepare a turn.
    pub(crate) fn backend(&self, settings: &Settings, flags: &AgentFlags) -> Result<ModelBackend, Failure> {
        let (setup, overrides) = (self.setup(), flags.overrides());
        let mut changed = setup.changed_settings(settings, &overrides).into_iter();
        let set = |settings: Settings, (name, value): (String, String)| settings.with(&name, &value);
        changed.try_fold(settings.clone(), set).map_err(|error| Failure::new(Code::Usage, error))?;
        let backend = setup.backend(settings, &overrides, &ProviderEnvironment::from_process())?;
        backend.check()?;
        Ok(backend)
    }

    /// Opens the folder that the turn will use, so that a missing folder is reported before a thread is created or a
    /// take is switched.
    pub(crate) fn check_folder(&self, of: Option<(ThreadId, TakeId)>) -> Result<(), Failure> {
        let (setup, timeline) = (self.setup(), self.timeline()?);
        let folder = match of {
            Some((thread, take)) => setup.turn_context(timeline, thread, take, Actor::Human, None)?.folder,
            None => setup.check_new_thread(timeline, self.project()?)?,
        };
        setup.rules(timeline, &folder)?;
        Ok(())
    }

    /// The runtime for turns of a thread, with this backend.
    pub(crate) fn runtime_with(
        &self,
        backend: ModelBackend,
        (thread, take): (ThreadId, TakeId),
        flags: &AgentFlags,
    ) -> Result<AgentRuntime, Failure> {
        let (setup, timeline, caller) = (self.setup(), self.timeline()?, self.caller(thread, None)?);
        let turn = setup.turn_context(timeline, thread, take, caller.actor, caller.environment)?;
        self.report_folder(Some(&path_to_text(&turn.folder)))?;
        Ok(setup.runtime_with(backend, timeline, &turn, &flags.overrides())?)
    }

    pub(crate) fn prices(&self) -> Prices {
        Prices::new(self.config.prices.clone(), BTreeMap::new())
    }
}

impl Context {
    /// Runs a turn for the interactive user, who sees its output, is asked for approval and can stop it with Ctrl-C.
    pub(crate) fn run_watched(
        &self,
        target: (ThreadId, Option<TakeId>),
        turn: impl FnOnce(&Cancel, &mut dyn TurnObserver) -> Result<TurnOutcome, TurnError>,
    ) -> Result<TurnOutcome, Failure> {
        let interruptible = InterruptGuard::new()?;
        let mut watcher = TurnOutput::new(self, target, interruptible.cancel());
        let outcome = turn(interruptible.cancel(), &mut watcher);
        watcher.finish_line();
        let outcome = outcome?;
        if let Some(hint) = watcher.hint() {
            self.note(hint)?;
        }
        self.warn_of_budget();
        Ok(outcome)
    }
}

/// The exit code for the outcome of a turn.
pub(crate) fn exit(outcome: &TurnOutcome) -> std::process::ExitCode {
    match outcome.how {
        TurnEnd::Completed => std::process::ExitCode::SUCCESS,
        TurnEnd::Failed => std::process::ExitCode::FAILURE,
        // The exit code that shells report for a program ended by Ctrl-C.
        TurnEnd::Interrupted => std::process::ExitCode::from(130),
        // The same for SIGTERM.
        TurnEnd::ShutDown => std::process::ExitCode::from(143),
    }
}
