//! The values that completion reads from the store and the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap_complete::engine::CompletionCandidate;
use retake_agent::provider::config::ProviderEnvironment;
use retake_agent::provider::live::LiveCache;
use retake_model::entry::preview;
use retake_model::settings::NAMES;
use retake_timeline::ThreadFilter;

use crate::arguments::{Effect, GlobalOptions, Target};
use crate::config::KEYS;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// How many entries and saved versions are offered, newest first.
const MOST: u64 = 200;

/// Where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Threads,
    Takes,
    TakesAndThreads,
    Entries,
    /// Turns, saved versions and takes.
    Revisions,
    Models,
    Providers,
    /// Settings of a thread.
    Settings,
    /// Keys of the configuration file.
    Configuration,
}

/// Reads the store of a command line.
#[derive(Clone)]
pub(super) struct StoreReader(Arc<Location>);

struct Location {
    folder: PathBuf,
    /// The thread and take that the command line names.
    target: Target,
}

type Values = Vec<(String, String)>;

impl StoreReader {
    pub(super) fn new(words: &[String], folder: &Path, thread: Option<&str>) -> Self {
        // The word at the cursor is not a value yet.
        let given = &words[..words.len().saturating_sub(1)];
        let folder = option(given, 'C', "directory").map_or(folder.to_owned(), |named| folder.join(named));
        let thread = option(given, 't', "thread").or_else(|| thread.map(str::to_owned));
        let target = Target { thread, take: option(given, 'k', "take"), expect: None };
        Self(Arc::new(Location { folder, target }))
    }

    /// The values of a source that start with the typed text.
    pub(super) fn candidates(&self, source: Source, typed: &str) -> Vec<CompletionCandidate> {
        let values = self.values(source).unwrap_or_default();
        let starts = |value: &str| value.to_lowercase().starts_with(&typed.to_lowercase());
        let chosen = values.into_iter().filter(|(value, _)| starts(value));
        let candidate = |(value, help): (String, String)| {
            let help = sanitize(&help, LineBreaks::Fold).into_owned();
            CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
        };
        chosen.map(candidate).collect()
    }

    fn values(&self, source: Source) -> Result<Values, Failure> {
        let plain = |name: &str| (name.to_owned(), String::new());
        match source {
            Source::Settings => return Ok(NAMES.into_iter().map(plain).collect()),
            Source::Configuration => {
                return Ok(KEYS.iter().map(|key| (key.name.to_owned(), key.purpose.to_owned())).collect());
            }
            _ => {}
        }
        let general = GlobalOptions {
            directory: Some(self.0.folder.clone()),
            quiet: true,
            effect: Effect::Preview,
            ..GlobalOptions::default()
        };
        let context = Context::new(general)?;
        let folder = context.config.folder()?;
        match source {
            Source::Models => return Ok(models(&context, &folder)),
            Source::Providers => return Ok(providers(&context, &folder)),
            _ => {}
        }
        // Reading must not create a store.
        if !folder.join("retake.db").exists() {
            return Ok(Values::new());
        }
        match source {
            Source::Threads => threads(&context),
            Source::Takes => self.takes(&context),
            Source::TakesAndThreads => {
                let mut values = self.takes(&context).unwrap_or_default();
                values.extend(threads(&context)?);
                Ok(values)
            }
            Source::Entries => self.entries(&context),
            Source::Revisions => {
                let mut values = self.turns(&context)?;
                values.extend(self.saved(&context)?);
                values.extend(self.takes(&context)?);
                Ok(values)
            }
            Source::Models | Source::Providers | Source::Settings | Source::Configuration => {
                Ok(Values::new())
            }
        }
    }

    fn takes(&self, context: &Context) -> Result<Values, Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.0.target.thread.as_deref())?;
        let takes = reader.queries().takes_of(thread.number)?;
        Ok(takes.into_iter().map(|take| (take.summary.name, take.summary.preview)).collect())
    }

    /// Numbers of entries, the newest first.
    fn entries(&self, context: &Context) -> Result<Values, Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.0.target)?;
        let length = resolved.take.entries.len();
        let first = length.saturating_sub(MOST);
        let views = reader.entries(resolved.thread.summary.id, &resolved.take).page(first..length)?;
        let mut values: Values = (first + 1..)
            .zip(views)
            .map(|(number, view)| {
                (number.to_string(), format!("{}: {}", view.entry.role, preview(&view.entry.text())))
            })
            .collect();
        values.push(("last".to_owned(), "the last entry".to_owned()));
        values.reverse();
        Ok(values)
    }

    /// `turn:NUMBER`, the newest first.
    fn turns(&self, context: &Context) -> Result<Values, Failure> {
        let reader = context.timeline()?.read()?;
        let resolved = context.resolve(&reader, &self.0.target)?;
        let history = reader.history(resolved.thread.summary.id).in_take(Some(resolved.take.id));
        let turns = history.turns()?.list(None, usize::try_from(MOST).unwrap_or(usize::MAX))?;
        Ok(turns.into_iter().map(|turn| (format!("turn:{}", turn.name.number), turn.name.prompt)).collect())
    }

    fn saved(&self, context: &Context) -> Result<Values, Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.0.target.thread.as_deref())?;
        let saves =
            reader.history(thread.summary.id).saves(None, usize::try_from(MOST).unwrap_or(usize::MAX))?;
        Ok(saves.into_iter().map(|saved| (saved.name, format!("saved version {}", saved.version))).collect())
    }
}

fn threads(context: &Context) -> Result<Values, Failure> {
    let filter = ThreadFilter { project: Some(context.project()?.id), ..ThreadFilter::default() };
    let rows = context.timeline()?.read()?.threads(&filter)?;
    Ok(rows.into_iter().map(|row| (row.summary.title, row.summary.active.preview)).collect())
}

/// `PROVIDER/MODEL` of every known model; providers that are ready come first.
fn models(context: &Context, folder: &Path) -> Values {
    let listed = context.setup().models(&ProviderEnvironment::from_process(), &LiveCache::read(folder));
    let mut providers = listed.providers;
    providers.sort_by_key(|provider| !provider.ready);
    let mut values = Values::new();
    for provider in providers {
        let live = provider.live.map(|live| live.models).unwrap_or_default();
        let help = provider.missing.unwrap_or_default();
        for model in provider.models.iter().chain(&live) {
            values.push((format!("{}/{model}", provider.name), help.clone()));
        }
        if provider.models.is_empty() && live.is_empty() {
            values.push((provider.name, help));
        }
    }
    values
}

fn providers(context: &Context, folder: &Path) -> Values {
    let listed = context.setup().models(&ProviderEnvironment::from_process(), &LiveCache::read(folder));
    listed.providers.into_iter().map(|one| (one.name, one.missing.unwrap_or_default())).collect()
}

/// The value of an option in a command line.
fn option(words: &[String], short: char, long: &str) -> Option<String> {
    let (short, long) = (format!("-{short}"), format!("--{long}"));
    let at = words.iter().rposition(|word| {
        *word == short || *word == long || word.strip_prefix(&long).is_some_and(|rest| rest.starts_with('='))
    })?;
    match words[at].split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => words.get(at + 1).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_line_are_found() {
        for (line, expected) in [
            ("take switch -t Notes", Some("Notes")),
            ("take switch --thread Notes x", Some("Notes")),
            ("take switch --thread=Notes x", Some("Notes")),
            ("take switch -t", None),
            ("take switch --threads x", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(option(&words, 't', "thread").as_deref(), expected, "{line}");
        }
    }
}
