//! What commands that run turns share: who answers, by which rules, and who watches.

mod asking;
mod interrupt;
mod screen;

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Args, ValueEnum};
use retake_agent::approval::{Decision, Mode, Policy as Approval, Rule};
use retake_agent::provider::Secret;
use retake_agent::provider::config::{
    KeyFileError, Surroundings, choose, read_key_file, resolve, run_key_command,
};
use retake_agent::provider::known::{OFFLINE, known};
use retake_agent::provider::prices::Prices;
use retake_agent::{Audience, Brain, Cancel, Outcome, TurnError, Workshop};
use retake_model::agent::{Ended, Policy};
use retake_model::settings::Settings;
use retake_timeline::Desk;
use retake_workspace::folder::path_from_text;

pub(crate) use interrupt::Interruptible;
use screen::Watcher;
pub(crate) use screen::dollars;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;

/// Who answers, and what tools may do.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentFlags {
    /// Who serves the model [default: the thread's setting, then agent.provider, then one that has a key].
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Which model answers; PROVIDER/MODEL names both. It holds for the thread from here on.
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What tools may do without being asked about [default: agent.approval].
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) approve: Option<Approve>,
}

/// What tools may do without being asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Approve {
    /// Look at files; ask about everything else.
    Ask,
    /// Also write files; ask about commands.
    Edits,
    /// Everything.
    All,
    /// Look at files, and nothing else: what would have to be asked about is refused.
    None,
}

impl From<Approve> for Mode {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask => Self::Ask,
            Approve::Edits => Self::AllowEdits,
            Approve::All => Self::AllowAll,
            Approve::None => Self::Deny,
        }
    }
}

impl AgentFlags {
    /// Settings of the thread that these flags change.
    pub(crate) fn settings(&self, context: &Context, settings: &Settings) -> Vec<(String, String)> {
        let (provider, model) = self.named(context);
        let mut changed = Vec::new();
        if let Some(provider) = provider
            && settings.provider.as_deref() != Some(provider)
        {
            changed.push(("provider".to_owned(), provider.to_owned()));
        }
        if let Some(model) = model
            && settings.model.as_deref() != Some(model)
        {
            changed.push(("model".to_owned(), model.to_owned()));
        }
        changed
    }

    /// The provider and the model that were named.
    fn named(&self, context: &Context) -> (Option<&str>, Option<&str>) {
        context.named(self.provider.as_deref(), self.model.as_deref())
    }
}

impl Context {
    /// The provider and the model that two texts name; a model may have its provider before it.
    fn named<'a>(
        &self,
        provider: Option<&'a str>,
        model: Option<&'a str>,
    ) -> (Option<&'a str>, Option<&'a str>) {
        let is_provider = |name: &str| known(name).is_some() || self.config.providers.contains_key(name);
        match (provider, model.and_then(|model| model.split_once('/'))) {
            // A model's own name may have a slash in it; a provider's has none and is known.
            (None, Some((before, rest))) if is_provider(before) => (Some(before), Some(rest)),
            (Some(provider), Some((before, rest))) if provider == before => (Some(provider), Some(rest)),
            _ => (provider, model),
        }
    }

    /// Where turns of a thread run, and by which rules.
    pub(crate) fn workshop(&self, settings: &Settings, flags: &AgentFlags) -> Result<Workshop, Failure> {
        let config = &self.config.agent;
        let (provider, model) = flags.named(self);
        let thread = self.named(settings.provider.as_deref(), settings.model.as_deref());
        let usual = self.named(config.provider.as_deref(), config.model.as_deref());
        // A model that was named without its provider is looked for where the thread's model was.
        let provider = provider.or(thread.0).or(usual.0);
        let model = model.or(thread.1).or(usual.1);
        let around = around();
        let provider = choose(provider, None, &around).name().to_owned();
        if let Some(model) = model.filter(|model| provider == OFFLINE && *model != OFFLINE) {
            let message = format!(
                "model {model:?} is chosen, but not who serves it; name both as PROVIDER/MODEL, and see `retake models`"
            );
            return Err(Failure::new(Code::Refused, message));
        }
        let resolved = resolve(&provider, model, &self.config.providers, &around)
            .map_err(|error| Failure::new(Code::Refused, error))?;
        let prices = self.prices();
        let brain = Brain::of(resolved, config.thinking)?;
        let window = config.window.unwrap_or_else(|| prices.context(brain.model()));
        let mode = flags.approve.unwrap_or(config.approval);
        let mut rules = self.config.approval.rules.clone();
        let desk = self.agent_desk()?;
        let folder = match (&desk, self.apart()?) {
            (_, Some(apart)) => apart.path.clone(),
            _ => path_from_text(&self.own_project()?.path),
        };
        // A store in the project's folder is closed to tools as `.git` is.
        if let Ok(inside) = self.timeline()?.store().folder().strip_prefix(&folder) {
            let path = format!("{}/**", inside.display());
            let rule = Rule::new(None, Some(&path), None, Decision::Deny);
            rules.push(rule.map_err(|error| Failure::new(Code::Refused, error))?);
        }
        let approval = Approval { mode: mode.into(), rules };
        Ok(Workshop {
            timeline: self.timeline()?.clone(),
            desk,
            folder,
            project: self.own_project()?.id,
            brain,
            approval,
            patience: Policy { most_attempts: config.attempts.max(1), ..Policy::default() },
            rounds: config.rounds.max(1),
            prices,
            window,
            surroundings: self.caller(None)?.surroundings,
            hidden: self.config.providers.values().filter_map(|provider| provider.key_env.clone()).collect(),
        })
    }

    /// What tokens cost.
    pub(crate) fn prices(&self) -> Prices {
        Prices::new(self.config.prices.clone(), BTreeMap::new())
    }

    /// The folder with its files, if files are kept of it.
    fn agent_desk(&self) -> Result<Option<Desk>, Failure> {
        if !self.config.files.enabled {
            return Ok(None);
        }
        self.desk().map(Some)
    }
}

impl Context {
    /// Runs a turn for the person at this program: they see it, are asked, and can end it with Ctrl-C.
    pub(crate) fn watched(
        &self,
        turn: impl FnOnce(&Cancel, &mut dyn Audience) -> Result<Outcome, TurnError>,
    ) -> Result<Outcome, Failure> {
        let interruptible = Interruptible::new()?;
        let mut watcher = Watcher::new(self, interruptible.cancel());
        let outcome = turn(interruptible.cancel(), &mut watcher);
        watcher.rest();
        let outcome = outcome?;
        if let Some(hint) = watcher.hint() {
            self.remark(hint)?;
        }
        self.warn_of_budget();
        Ok(outcome)
    }
}

/// What came of a turn, as the shell sees it.
pub(crate) fn exit(outcome: &Outcome) -> std::process::ExitCode {
    match outcome.how {
        Ended::Completed => std::process::ExitCode::SUCCESS,
        Ended::Failed => std::process::ExitCode::FAILURE,
        // As a shell says of a program that Ctrl-C ended.
        Ended::Interrupted => std::process::ExitCode::from(130),
    }
}

/// What is around: the environment, and files with keys.
pub(crate) fn around() -> Surroundings<'static> {
    Surroundings { variable: &environment_text, key_file: &key_file, key_command: &run_key_command }
}

fn key_file(path: &Path) -> Result<Secret, KeyFileError> {
    read_key_file(path, environment_text("HOME").as_deref().map(Path::new))
}

fn environment_text(name: &str) -> Option<String> {
    environment(name)
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        match error {
            TurnError::Change(error) => error.into(),
            TurnError::Files(error) => error.into(),
            TurnError::Look(error) => error.into(),
            error @ (TurnError::Busy
            | TurnError::Apart
            | TurnError::Gone
            | TurnError::Provider(_)
            | TurnError::TooLong { .. }) => Self::new(Code::Refused, error),
            error @ (TurnError::Nothing | TurnError::NoSuchTake) => Self::new(Code::NotFound, error),
            error => Self::new(Code::Failed, error),
        }
    }
}
