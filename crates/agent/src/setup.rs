//! From what a user configured, what a thread is set to and what one request wants to a workshop.
//!
//! ```text
//!   wanted (once)  ─┐
//!   thread's setting ┼─► provider, model ─► key, endpoint ─► brain ─┐
//!   Setup (usual)  ─┘                                               ├─► Workshop
//!   place: project, folder, who asks ───────────► approval rules ───┘
//! ```
//!
//! Every front (the command line, a server) asks here, so that the same thread is answered by the same model under the
//! same rules whoever asks.

mod models;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use retake_model::agent::Policy;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_model::settings::Settings;
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

/// What a user configured about turns.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who serves the model, where a thread does not say.
    pub provider: Option<String>,
    /// Which model answers, where a thread does not say. `PROVIDER/MODEL` names both.
    pub model: Option<String>,
    /// What tools may do without being asked about.
    pub approval: Mode,
    /// How many tokens a model may think for.
    pub thinking: Option<u32>,
    /// How often a call that failed is tried.
    pub attempts: u32,
    /// How often a model is called in one turn before a person has to look.
    pub rounds: u32,
    /// How many tool calls of one answer run; the others get a result that says so.
    pub calls: usize,
    /// How many tokens a model takes, where that is not known.
    pub window: Option<u64>,
    /// How calls are decided on, beyond the mode.
    pub rules: Vec<Rule>,
    /// Providers, by the name that the user gives them.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// What tokens cost.
    pub prices: Prices,
    /// How files are kept; `None` if they are not.
    pub files: Option<Options>,
}

/// Where a turn is to run, and who asks for it.
#[derive(Clone)]
pub struct Place {
    /// The project.
    pub project: ProjectId,
    /// The folder that tools work in.
    pub folder: PathBuf,
    /// The folder with its files; `None` if files are not kept of it.
    pub desk: Option<Desk>,
    /// Who asks.
    pub actor: Actor,
    /// Where it all happens, for the log.
    pub surroundings: Option<Surroundings>,
}

/// What one request wants otherwise than usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Who serves the model.
    pub provider: Option<String>,
    /// Which model answers. `PROVIDER/MODEL` names both.
    pub model: Option<String>,
    /// What tools may do without being asked about.
    pub approve: Option<Mode>,
}

/// Why no turn can run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A model is named, and nobody who has it.
    #[error(
        "model {0:?} is chosen, but not who serves it; name both as PROVIDER/MODEL, and see `retake models`"
    )]
    NobodyServes(String),
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ResolveError),
    /// Nothing can be sent from here.
    #[error("no connection to a provider can be made: {0}")]
    Client(#[source] std::io::Error),
    /// The store cannot be closed to tools.
    #[error(transparent)]
    Rule(#[from] BadRule),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            approval: Mode::Ask,
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
    /// Where a take's turns run: in the folder that the take has for itself, or else in its project's.
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

    /// Opens the folder that the turns of a new thread of a project would run in, so that whatever stands against them
    /// is known before there is a thread.
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

    /// How calls are decided on in a folder.
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

    /// Where turns of a thread run, and by which rules.
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

    /// The same with a backend that was chosen before.
    pub fn workshop_with(
        &self,
        brain: Brain,
        timeline: &Timeline,
        place: &Place,
        wanted: &Wanted,
    ) -> Result<Workshop, SetupError> {
        let window = self.window.unwrap_or_else(|| self.prices.context(brain.model()));
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
            actor: place.actor.clone(),
            surroundings: place.surroundings.clone(),
            hidden: self.providers.values().filter_map(|provider| provider.key_env.clone()).collect(),
        })
    }

    /// Settings of a thread that a request changes: a model that was wanted once holds from there on.
    pub fn changed(&self, settings: &Settings, wanted: &Wanted) -> Vec<(String, String)> {
        let (provider, model) = self.named(wanted.provider.as_deref(), wanted.model.as_deref());
        let pairs = [("provider", provider, &settings.provider), ("model", model, &settings.model)];
        let new = pairs.into_iter().filter_map(|(key, wanted, set)| {
            let wanted = wanted.filter(|wanted| set.as_deref() != Some(*wanted))?;
            Some((key.to_owned(), wanted.to_owned()))
        });
        new.collect()
    }

    /// The provider and model that answer, with the key that they need.
    pub fn backend(
        &self,
        settings: &Settings,
        wanted: &Wanted,
        around: &Around<'_>,
    ) -> Result<Brain, SetupError> {
        let once = self.named(wanted.provider.as_deref(), wanted.model.as_deref());
        let thread = self.named(settings.provider.as_deref(), settings.model.as_deref());
        let usual = self.named(self.provider.as_deref(), self.model.as_deref());
        // A model that was named without its provider is looked for where the thread's model was.
        let provider = once.0.or(thread.0).or(usual.0);
        let model = once.1.or(thread.1).or(usual.1);
        let provider = choose(provider, None, around).name().to_owned();
        if let Some(model) = model.filter(|model| provider == OFFLINE && *model != OFFLINE) {
            return Err(SetupError::NobodyServes(model.to_owned()));
        }
        let resolved = resolve(&provider, model, &self.providers, around)?;
        Brain::of(resolved, self.thinking).map_err(SetupError::Client)
    }

    /// The provider and the model that two texts name; a model may have its provider before it.
    fn named<'a>(
        &self,
        provider: Option<&'a str>,
        model: Option<&'a str>,
    ) -> (Option<&'a str>, Option<&'a str>) {
        let is_provider = |name: &str| known(name).is_some() || self.providers.contains_key(name);
        match (provider, model.and_then(|model| model.split_once('/'))) {
            // A model's own name may have a slash in it; a provider's has none and is known.
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
        Wanted { provider: provider.map(str::to_owned), model: model.map(str::to_owned), approve: None }
    }

    #[test]
    fn who_answers_is_what_is_wanted_then_what_the_thread_says_then_what_is_usual() {
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
        check(None, none(), wanted(Some("nobody"), None), Err("no provider"));
        check(None, none(), wanted(Some("anthropic"), None), Err("no key"));
    }

    #[test]
    fn a_model_that_is_wanted_becomes_the_threads() {
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
