//! Combines configuration, thread settings and request overrides into an [`AgentRuntime`](crate::AgentRuntime).
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

use retake_model::agent::Policy;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::projection::Thinking;
use retake_model::settings::{Effort, Settings};
use retake_model::surroundings::Surroundings;
use retake_timeline::{Desk, FileError, Project, Timeline};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::{Options, Workspace, check_folder};

pub use models::{ListedProvider, Models, UsualModel};

use crate::approval::{BadRule, Decision, Mode, Policy as Approval, Rule};
use crate::brain::Brain;
use crate::provider::config::{ProviderConfig, ResolveError, Surroundings as Around, choose, resolve};
use crate::provider::key_store::FILE_NAME;
use crate::provider::known::{OFFLINE, known};
use crate::provider::prices::Prices;
use crate::turn::Workshop;

/// The configuration of turns.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Default provider.
    pub provider: Option<String>,
    /// Default model; `PROVIDER/MODEL` sets both.
    pub model: Option<String>,
    /// What tools may do without approval.
    pub approval: Mode,
    /// How hard a model thinks, where a thread does not say.
    pub effort: Option<Effort>,
    /// How many tokens a model may think for, where no effort is set.
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
}

/// Where a turn runs, and who starts it.
#[derive(Clone)]
pub struct Place {
    /// The project.
    pub project: ProjectId,
    /// The working folder of tools.
    pub folder: PathBuf,
    /// The working copy; `None` if file recording is off.
    pub desk: Option<Desk>,
    /// Who starts the turn.
    pub actor: Actor,
    /// The environment recorded in the log.
    pub surroundings: Option<Surroundings>,
}

/// Overrides of a single request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Provider to use.
    pub provider: Option<String>,
    /// Model to use; `PROVIDER/MODEL` sets both.
    pub model: Option<String>,
    /// How hard the model thinks.
    pub effort: Option<Effort>,
    /// What tools may do without being asked about.
    pub approve: Option<Mode>,
}

/// Why the runtime could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A model is set without a provider.
    #[error("model {0:?} has no provider; set PROVIDER/MODEL, and see `retake models`")]
    NobodyServes(String),
    /// A model is named with a provider that does not exist.
    #[error(
        "there is no provider {provider:?}, so model {model:?} was not sent to anyone; there are {there}. \
         Where the model's own name has a slash, put the provider before it: PROVIDER/{model}"
    )]
    NoSuchProvider {
        /// What stands before the slash.
        provider: String,
        /// The whole name.
        model: String,
        /// What there is.
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
    Rule(#[from] BadRule),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            approval: Mode::Ask,
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
        }
    }
}

impl Setup {
    /// Where turns of a take run: in its worktree or in the project's folder.
    pub fn place(
        &self,
        timeline: &Timeline,
        thread: ThreadId,
        take: TakeId,
        actor: Actor,
        surroundings: Option<Surroundings>,
    ) -> Result<Place, FileError> {
        if let Some(options) = &self.files {
            let desk = Desk::of_take(timeline, thread, take, options)?;
            let (project, folder) = (desk.project(), desk.path().to_owned());
            return Ok(Place { project, folder, desk: Some(desk), actor, surroundings });
        }
        let looking = timeline.look()?;
        let (apart, project) = (looking.apart_folder_of(thread, take)?, looking.thread(thread)?.home);
        drop(looking);
        let folder = match apart {
            Some(apart) => apart.path,
            None => timeline.folder_of_project(project)?,
        };
        Ok(Place { project, folder, desk: None, actor, surroundings })
    }

    /// Opens the folder for turns of a new thread, so that errors occur before the thread is created.
    pub fn check_new_thread(&self, timeline: &Timeline, project: &Project) -> Result<PathBuf, FileError> {
        let folder = if project.recorded {
            timeline.folder_of_project(project.id)?
        } else {
            path_from_text(&project.path)
        };
        match &self.files {
            Some(options) if project.recorded => drop(Desk::of_project(timeline, project.id, options)?),
            Some(options) => drop(Workspace::open(&folder, &[], options.clone())?),
            None => check_folder(&folder)?,
        }
        Ok(folder)
    }

    /// The approval rules in a folder.
    pub fn rules(&self, timeline: &Timeline, folder: &Path) -> Result<Vec<Rule>, SetupError> {
        let mut rules = self.rules.clone();
        // Also what a killed command left of writing it.
        for path in ["{}", "**/{}", ".{}.*", "**/.{}.*"].map(|path| path.replace("{}", FILE_NAME)) {
            rules.push(Rule::new(None, Some(&path), None, Decision::Deny)?);
        }
        // A store in the project's folder is closed to tools as `.git` is.
        if let Ok(inside) = timeline.store().folder().strip_prefix(folder) {
            let path = format!("{}/**", inside.display());
            rules.push(Rule::new(None, Some(&path), None, Decision::Deny)?);
        }
        Ok(rules)
    }

    /// Creates the runtime for turns of a thread.
    pub fn workshop(
        &self,
        timeline: &Timeline,
        place: &Place,
        settings: &Settings,
        wanted: &Wanted,
        around: &Around<'_>,
    ) -> Result<Workshop, SetupError> {
        self.workshop_with(self.backend(settings, wanted, around)?, timeline, place, wanted)
    }

    /// The same with a given backend.
    pub fn workshop_with(
        &self,
        brain: Brain,
        timeline: &Timeline,
        place: &Place,
        wanted: &Wanted,
    ) -> Result<Workshop, SetupError> {
        let limits = self.prices.limits(brain.model());
        let window = self.window.unwrap_or(limits.context);
        let rules = self.rules(timeline, &place.folder)?;
        Ok(Workshop {
            timeline: timeline.clone(),
            desk: place.desk.clone(),
            folder: place.folder.clone(),
            project: place.project,
            brain,
            approval: Approval { mode: wanted.approve.unwrap_or(self.approval), rules },
            patience: Policy { most_attempts: self.attempts.max(1), ..Policy::default() },
            rounds: self.rounds.max(1),
            calls: self.calls.max(1),
            prices: self.prices.clone(),
            window,
            sized: self.window.is_some() || limits.known,
            actor: place.actor.clone(),
            surroundings: place.surroundings.clone(),
            hidden: self.providers.values().filter_map(|provider| provider.key_env.clone()).collect(),
        })
    }

    /// The thread settings that the overrides change: a selected model stays selected.
    pub fn changed(&self, settings: &Settings, wanted: &Wanted) -> Vec<(String, String)> {
        let (provider, model) = self.named(wanted.provider.as_deref(), wanted.model.as_deref());
        let effort = wanted.effort.map(Effort::name);
        let set = settings.effort.map(|effort| effort.name().to_owned());
        let pairs = [
            ("provider", provider, &settings.provider),
            ("model", model, &settings.model),
            ("effort", effort, &set),
        ];
        let new = pairs.into_iter().filter_map(|(key, wanted, set)| {
            let wanted = wanted.filter(|wanted| set.as_deref() != Some(*wanted))?;
            Some((key.to_owned(), wanted.to_owned()))
        });
        new.collect()
    }

    /// Resolves the provider, model and key.
    pub fn backend(
        &self,
        settings: &Settings,
        wanted: &Wanted,
        around: &Around<'_>,
    ) -> Result<Brain, SetupError> {
        let once = self.named(wanted.provider.as_deref(), wanted.model.as_deref());
        let thread = self.named(settings.provider.as_deref(), settings.model.as_deref());
        let usual = self.named(self.provider.as_deref(), self.model.as_deref());
        self.check_named(once)?;
        if once.1.is_none() {
            self.check_named(thread)?;
            if thread.1.is_none() {
                self.check_named(usual)?;
            }
        }
        // A model that was named without its provider is looked for where the thread's model was.
        let provider = once.0.or(thread.0).or(usual.0);
        let model = once.1.or(thread.1).or(usual.1);
        let provider = choose(provider, None, around).name().to_owned();
        if let Some(model) = model.filter(|model| provider == OFFLINE && *model != OFFLINE) {
            return Err(SetupError::NobodyServes(model.to_owned()));
        }
        let resolved = resolve(&provider, model, &self.providers, around)?;
        let budget = |budget: u32| Thinking { effort: Effort::of_budget(budget), budget };
        let thinking = self.effort.map(Thinking::from).or(self.thinking.map(budget));
        Brain::of(resolved, thinking).map_err(SetupError::Client)
    }

    /// Refuses a model with a slash whose provider is named nowhere beside it: it must not go to another provider.
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

    fn wanted(provider: Option<&str>, model: Option<&str>) -> Wanted {
        Wanted { provider: provider.map(str::to_owned), model: model.map(str::to_owned), ..Wanted::default() }
    }

    #[test]
    fn overrides_come_before_thread_settings_and_configuration() {
        let around = Around {
            variable: &|_| None,
            key_file: &|_| unreachable!("no key is in a file"),
            key_command: &|_| unreachable!("no command has a key"),
            stored_key: &|_| unreachable!("no key is stored"),
            stored_names: &Vec::new,
        };
        let check = |usual: Option<&str>, thread: Settings, wanted: Wanted, expected: Result<&str, &str>| {
            let setup = Setup { model: usual.map(str::to_owned), ..setup() };
            let brain = setup.backend(&thread, &wanted, &around);
            let found = brain.map(|brain| format!("{}/{}", brain.provider(), brain.model()));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        };
        let none = || settings(None, None);
        check(None, none(), wanted(None, None), Ok("offline/offline"));
        check(None, none(), wanted(None, Some("own/m")), Ok("own/m"));
        check(None, none(), wanted(Some("own"), Some("own/m")), Ok("own/m"));
        check(None, none(), wanted(Some("own"), Some("vendor/m")), Ok("own/vendor/m"));
        check(Some("own/usual"), none(), wanted(None, None), Ok("own/usual"));
        check(Some("own/usual"), settings(None, Some("m")), wanted(None, None), Ok("own/m"));
        check(Some("own/usual"), settings(Some("own"), Some("m")), wanted(None, Some("n")), Ok("own/n"));
        check(None, none(), wanted(None, Some("m")), Err("PROVIDER/MODEL"));
        // A provider that does not exist is an error, whoever else could be asked.
        check(Some("own/usual"), none(), wanted(None, Some("nobody/m")), Err("no provider \"nobody\""));
        check(
            None,
            settings(Some("own"), Some("m")),
            wanted(None, Some("nobody/m")),
            Err("PROVIDER/nobody/m"),
        );
        check(Some("own/usual"), settings(None, Some("nobody/m")), wanted(None, None), Err("no provider"));
        check(None, settings(Some("own"), Some("vendor/m")), wanted(None, None), Ok("own/vendor/m"));
        check(None, none(), wanted(None, Some("own/vendor/m")), Ok("own/vendor/m"));
        check(None, none(), wanted(Some("nobody"), None), Err("no provider"));
        check(None, none(), wanted(Some("anthropic"), None), Err("no key"));
    }

    #[test]
    fn a_selected_model_becomes_a_thread_setting() {
        let check = |thread: Settings, wanted: Wanted, expected: &[(&str, &str)]| {
            let changed = setup().changed(&thread, &wanted);
            let changed: Vec<(&str, &str)> =
                changed.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            assert_eq!(changed, expected);
        };
        check(settings(None, None), wanted(None, None), &[]);
        check(settings(None, None), wanted(None, Some("own/m")), &[("provider", "own"), ("model", "m")]);
        check(settings(Some("own"), Some("m")), wanted(None, Some("own/m")), &[]);
        check(settings(Some("own"), Some("m")), wanted(None, Some("n")), &[("model", "n")]);
    }
}
