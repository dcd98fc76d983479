//! Combines configuration, thread settings and request overrides into an
//! `AgentRuntime`.
//!
//! ```text
//!   request overrides ─┐
//!   thread settings   ─┼─► provider, model ─► key, endpoint ─► backend ─┐
//!   configuration     ─┘                                                ├─► runtime
//!   project, folder, actor ─────────────────────► approval rules ───────┘
//! ```
//!
//! The command line and the server share this, so that a thread uses the same model and rules in both.

mod models;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use retake_model::agent::RetryPolicy;
use retake_model::environment::Environment;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::projection::Thinking;
use retake_model::settings::{Effort, Settings};
use retake_timeline::{FileError, Project, Timeline, WorkingCopy};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::{Options, Workspace, check_folder};

pub use models::{DefaultModel, ListedProvider, Models};

use crate::approval::{ApprovalMode, ApprovalPolicy as Approval, Decision, Rule, RuleError};
use crate::model_backend::ModelBackend;
use crate::post_tools::PostToolsHook;
use crate::provider::config::{ProviderConfig, ProviderEnvironment, ResolveError, choose, resolve};
use crate::provider::key_store::FILE_NAME;
use crate::provider::known::{OFFLINE, known};
use crate::provider::prices::Prices;
use crate::turn::AgentRuntime;

/// The configuration of turns.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Default provider.
    pub provider: Option<String>,
    /// Default model; `PROVIDER/MODEL` sets both.
    pub model: Option<String>,
    /// What tools may do without approval.
    pub approval: ApprovalMode,
    /// Default effort of models, unless the thread sets it.
    pub effort: Option<Effort>,
    /// Thinking budget in tokens, unless an effort is set.
    pub thinking: Option<u32>,
    /// Maximum attempts of a model request.
    pub attempts: u32,
    /// Maximum model requests per turn.
    pub rounds: u32,
    /// Maximum tool calls per answer; further ones are refused.
    pub calls: usize,
    /// Context window in tokens, instead of the known one.
    pub window: Option<u64>,
    /// Approval rules.
    pub rules: Vec<Rule>,
    /// Configured providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Prices of tokens.
    pub prices: Prices,
    /// Options of file recording; `None` if it is off.
    pub files: Option<Options>,
    /// The command to run after a round of tools.
    pub post_tools: Option<PostToolsHook>,
}

/// The folder and the actor of a turn.
#[derive(Clone)]
pub struct TurnContext {
    /// The project.
    pub project: ProjectId,
    /// The working folder of tools.
    pub folder: PathBuf,
    /// The working copy; `None` if file recording is off.
    pub working_copy: Option<WorkingCopy>,
    /// The actor that starts the turn.
    pub actor: Actor,
    /// The environment recorded in the log.
    pub environment: Option<Environment>,
}

/// Overrides of a single request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnOverrides {
    /// Provider to use.
    pub provider: Option<String>,
    /// Model to use; `PROVIDER/MODEL` sets both.
    pub model: Option<String>,
    /// How hard the model thinks.
    pub effort: Option<Effort>,
    /// What tools may do without approval.
    pub approve: Option<ApprovalMode>,
}

/// Why the runtime could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A model is set without a provider.
    #[error("model {0:?} has no provider; set PROVIDER/MODEL, and see `retake models`")]
    NoProviderForModel(String),
    /// A model is named with a provider that does not exist.
    #[error(
        "there is no provider {provider:?}, so model {model:?} was not sent to anyone; there are {there}. \
         Where the model's own name has a slash, put the provider before it: PROVIDER/{model}"
    )]
    NoSuchProvider {
        /// The part before the slash.
        provider: String,
        /// The full name.
        model: String,
        /// The available providers.
        there: String,
    },
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ResolveError),
    /// The HTTP client could not be created.
    #[error("cannot create an HTTP client: {0}")]
    Client(#[source] std::io::Error),
    /// The rule that protects the store is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            approval: ApprovalMode::Ask,
            effort: None,
            thinking: None,
            attempts: 5,
            rounds: 200,
            calls: 100,
            window: None,
            rules: Vec::new(),
            providers: BTreeMap::new(),
            prices: Prices::default(),
            files: Some(Options::default()),
            post_tools: None,
        }
    }
}

impl Setup {
    /// The folder for turns of a take: its worktree or the project's folder.
    pub fn turn_context(
        &self,
        timeline: &Timeline,
        thread: ThreadId,
        take: TakeId,
        actor: Actor,
        environment: Option<Environment>,
    ) -> Result<TurnContext, FileError> {
        if let Some(options) = &self.files {
            let working_copy = WorkingCopy::of_take(timeline, thread, take, options)?;
            let (project, folder) = (working_copy.project(), working_copy.path().to_owned());
            return Ok(TurnContext { project, folder, working_copy: Some(working_copy), actor, environment });
        }
        let reader = timeline.read()?;
        let (worktree, project) = (reader.worktrees().of(thread, take)?, reader.thread(thread)?.home);
        drop(reader);
        let folder = match worktree {
            Some(worktree) => worktree.path,
            None => timeline.folder_of_project(project)?,
        };
        Ok(TurnContext { project, folder, working_copy: None, actor, environment })
    }

    /// Opens the folder for turns of a new thread, so that errors occur before the thread is created.
    pub fn check_new_thread(&self, timeline: &Timeline, project: &Project) -> Result<PathBuf, FileError> {
        let folder = if project.recorded {
            timeline.folder_of_project(project.id)?
        } else {
            path_from_text(&project.path)
        };
        match &self.files {
            Some(options) if project.recorded => {
                drop(WorkingCopy::of_project(timeline, project.id, options)?);
            }
            Some(options) => drop(Workspace::open(&folder, &[], options.clone())?),
            None => check_folder(&folder)?,
        }
        Ok(folder)
    }

    /// The approval rules in a folder.
    pub fn rules(&self, timeline: &Timeline, folder: &Path) -> Result<Vec<Rule>, SetupError> {
        let mut rules = self.rules.clone();
        // Also temporary files of a killed command.
        for path in ["{}", "**/{}", ".{}.*", "**/.{}.*"].map(|path| path.replace("{}", FILE_NAME)) {
            rules.push(Rule::new(None, Some(&path), None, Decision::Deny)?);
        }
        // Deny tools a store inside the project folder, like `.git`.
        if let Ok(inside) = timeline.store().folder().strip_prefix(folder) {
            let path = format!("{}/**", inside.display());
            rules.push(Rule::new(None, Some(&path), None, Decision::Deny)?);
        }
        Ok(rules)
    }

    /// Creates the runtime for turns of a thread.
    pub fn runtime(
        &self,
        timeline: &Timeline,
        context: &TurnContext,
        settings: &Settings,
        overrides: &TurnOverrides,
        environment: &ProviderEnvironment<'_>,
    ) -> Result<AgentRuntime, SetupError> {
        self.runtime_with(self.backend(settings, overrides, environment)?, timeline, context, overrides)
    }

    /// The same with a given backend.
    pub fn runtime_with(
        &self,
        backend: ModelBackend,
        timeline: &Timeline,
        context: &TurnContext,
        overrides: &TurnOverrides,
    ) -> Result<AgentRuntime, SetupError> {
        let limits = self.prices.limits(backend.model());
        let window = self.window.unwrap_or(limits.context);
        let rules = self.rules(timeline, &context.folder)?;
        Ok(AgentRuntime {
            timeline: timeline.clone(),
            working_copy: context.working_copy.clone(),
            folder: context.folder.clone(),
            project: context.project,
            backend,
            approval: Approval { mode: overrides.approve.unwrap_or(self.approval), rules },
            retry_policy: RetryPolicy { max_attempts: self.attempts.max(1), ..RetryPolicy::default() },
            rounds: self.rounds.max(1),
            calls: self.calls.max(1),
            prices: self.prices.clone(),
            window,
            sized: self.window.is_some() || limits.known,
            actor: context.actor.clone(),
            environment: context.environment.clone(),
            hidden: self.providers.values().filter_map(|provider| provider.key_env.clone()).collect(),
            post_tools: self.post_tools.clone(),
        })
    }

    /// The thread settings that the overrides change: a selected model stays selected.
    pub fn changed_settings(&self, settings: &Settings, overrides: &TurnOverrides) -> Vec<(String, String)> {
        let (provider, model) = self.named(overrides.provider.as_deref(), overrides.model.as_deref());
        let effort = overrides.effort.map(Effort::name);
        let set = settings.effort.map(|effort| effort.name().to_owned());
        let pairs = [
            ("provider", provider, &settings.provider),
            ("model", model, &settings.model),
            ("effort", effort, &set),
        ];
        let new = pairs.into_iter().filter_map(|(key, overrides, set)| {
            let overrides = overrides.filter(|overrides| set.as_deref() != Some(*overrides))?;
            Some((key.to_owned(), overrides.to_owned()))
        });
        new.collect()
    }

    /// Resolves the provider, model and key.
    pub fn backend(
        &self,
        settings: &Settings,
        overrides: &TurnOverrides,
        environment: &ProviderEnvironment<'_>,
    ) -> Result<ModelBackend, SetupError> {
        let once = self.named(overrides.provider.as_deref(), overrides.model.as_deref());
        let thread = self.named(settings.provider.as_deref(), settings.model.as_deref());
        let usual = self.named(self.provider.as_deref(), self.model.as_deref());
        self.check_named(once)?;
        if once.1.is_none() {
            self.check_named(thread)?;
            if thread.1.is_none() {
                self.check_named(usual)?;
            }
        }
        // A model without a provider uses the provider of the thread's model.
        let provider = once.0.or(thread.0).or(usual.0);
        let model = once.1.or(thread.1).or(usual.1);
        let provider = choose(provider, None, environment).name().to_owned();
        if let Some(model) = model.filter(|model| provider == OFFLINE && *model != OFFLINE) {
            return Err(SetupError::NoProviderForModel(model.to_owned()));
        }
        let resolved = resolve(&provider, model, &self.providers, environment)?;
        let budget = |budget: u32| Thinking { effort: Effort::of_budget(budget), budget };
        let thinking = self.effort.map(Thinking::from).or(self.thinking.map(budget));
        ModelBackend::of(resolved, thinking).map_err(SetupError::Client)
    }

    /// Refuses a model with a slash but without a known provider: it must not be sent to another provider.
    fn check_named(&self, (provider, model): (Option<&str>, Option<&str>)) -> Result<(), SetupError> {
        let Some((before, _)) = model.and_then(|model| model.split_once('/')).filter(|_| provider.is_none())
        else {
            return Ok(());
        };
        let model = model.unwrap_or_default();
        if self.providers.values().any(|config| config.models.iter().any(|known| known == model)) {
            return Ok(());
        }
        let there = self.providers().collect::<Vec<_>>().join(", ");
        Err(SetupError::NoSuchProvider { provider: before.to_owned(), model: model.to_owned(), there })
    }

    /// Splits `PROVIDER/MODEL`.
    fn named<'a>(
        &self,
        provider: Option<&'a str>,
        model: Option<&'a str>,
    ) -> (Option<&'a str>, Option<&'a str>) {
        let is_provider = |name: &str| known(name).is_some() || self.providers.contains_key(name);
        match (provider, model.and_then(|model| model.split_once('/'))) {
            // Model names may contain slashes; only a known provider counts as a prefix.
            (None, Some((before, rest))) if is_provider(before) => (Some(before), Some(rest)),
            (Some(provider), Some((before, rest))) if provider == before => (Some(provider), Some(rest)),
            _ => (provider, model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        let own = ProviderConfig {
            wire: Some("chat".to_owned()),
            base_url: Some("http://localhost:9/v1".to_owned()),
            ..ProviderConfig::default()
        };
        Setup { providers: [("own".to_owned(), own)].into_iter().collect(), ..Setup::default() }
    }

    fn settings(provider: Option<&str>, model: Option<&str>) -> Settings {
        Settings {
            provider: provider.map(str::to_owned),
            model: model.map(str::to_owned),
            ..Settings::default()
        }
    }

    fn overrides(provider: Option<&str>, model: Option<&str>) -> TurnOverrides {
        TurnOverrides {
            provider: provider.map(str::to_owned),
            model: model.map(str::to_owned),
            ..TurnOverrides::default()
        }
    }

    #[test]
    fn overrides_come_before_thread_settings_and_configuration() {
        let environment = ProviderEnvironment {
            variable: &|_| None,
            key_file: &|_| unreachable!("no key is in a file"),
            key_command: &|_| unreachable!("no command has a key"),
            stored_key: &|_| unreachable!("no key is stored"),
            stored_names: &Vec::new,
        };
        let check = |usual: Option<&str>,
                     thread: Settings,
                     overrides: TurnOverrides,
                     expected: Result<&str, &str>| {
            let setup = Setup { model: usual.map(str::to_owned), ..setup() };
            let backend = setup.backend(&thread, &overrides, &environment);
            let found = backend.map(|backend| format!("{}/{}", backend.provider(), backend.model()));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        };
        let none = || settings(None, None);
        check(None, none(), overrides(None, None), Ok("offline/offline"));
        check(None, none(), overrides(None, Some("own/m")), Ok("own/m"));
        check(None, none(), overrides(Some("own"), Some("own/m")), Ok("own/m"));
        check(None, none(), overrides(Some("own"), Some("vendor/m")), Ok("own/vendor/m"));
        check(Some("own/usual"), none(), overrides(None, None), Ok("own/usual"));
        check(Some("own/usual"), settings(None, Some("m")), overrides(None, None), Ok("own/m"));
        check(Some("own/usual"), settings(Some("own"), Some("m")), overrides(None, Some("n")), Ok("own/n"));
        check(None, none(), overrides(None, Some("m")), Err("PROVIDER/MODEL"));
        // An unknown provider is an error, even if another one is available.
        check(Some("own/usual"), none(), overrides(None, Some("nobody/m")), Err("no provider \"nobody\""));
        check(
            None,
            settings(Some("own"), Some("m")),
            overrides(None, Some("nobody/m")),
            Err("PROVIDER/nobody/m"),
        );
        check(Some("own/usual"), settings(None, Some("nobody/m")), overrides(None, None), Err("no provider"));
        check(None, settings(Some("own"), Some("vendor/m")), overrides(None, None), Ok("own/vendor/m"));
        check(None, none(), overrides(None, Some("own/vendor/m")), Ok("own/vendor/m"));
        check(None, none(), overrides(Some("nobody"), None), Err("no provider"));
        check(None, none(), overrides(Some("anthropic"), None), Err("no key"));
    }

    #[test]
    fn a_selected_model_becomes_a_thread_setting() {
        let check = |thread: Settings, overrides: TurnOverrides, expected: &[(&str, &str)]| {
            let changed_settings = setup().changed_settings(&thread, &overrides);
            let changed: Vec<(&str, &str)> =
                changed_settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            assert_eq!(changed, expected);
        };
        check(settings(None, None), overrides(None, None), &[]);
        check(settings(None, None), overrides(None, Some("own/m")), &[("provider", "own"), ("model", "m")]);
        check(settings(Some("own"), Some("m")), overrides(None, Some("own/m")), &[]);
        check(settings(Some("own"), Some("m")), overrides(None, Some("n")), &[("model", "n")]);
    }
}
