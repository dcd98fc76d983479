//! The configuration file: a few documented keys, each with a default that suits most people.
//!
//! It is `config.toml` in the user's configuration folder, or what `RETAKE_CONFIG` names. A key that does not
//! exist is an error with the nearest keys, not silence.

mod edit;
mod keys;
mod listen;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use retake_agent::approval::Rule;
use retake_agent::provider::config::ProviderConfig;
use retake_agent::provider::prices::Price;
use retake_model::settings::Effort;
use serde::Deserialize;

pub(crate) use edit::{checked, get, set, unset};
pub(crate) use keys::{KEYS, Key, Takes, key};
pub(crate) use listen::Listen;

use crate::agent::Approve;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;

/// What can be configured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) storage: Storage,
    pub(crate) history: History,
    pub(crate) output: Output,
    pub(crate) files: Files,
    pub(crate) agent: Agent,
    pub(crate) serve: Serve,
    /// How calls are decided on, beyond `agent.approval`.
    pub(crate) approval: Approval,
    /// Providers, by the name that the user gives them.
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// What models cost, by the beginning of their names.
    pub(crate) prices: BTreeMap<String, Price>,
}

/// About turns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Agent {
    /// Who serves the model, where a thread does not say.
    pub(crate) provider: Option<String>,
    /// Which model answers, where a thread does not say.
    pub(crate) model: Option<String>,
    /// What tools may do without being asked about.
    pub(crate) approval: Approve,
    /// How hard a model thinks, where a thread does not say.
    pub(crate) effort: Option<Effort>,
    /// How many tokens a model may think for, where no effort is set.
    pub(crate) thinking: Option<u32>,
    /// How often a call that failed is tried.
    pub(crate) attempts: u32,
    /// How often a model is called in one turn before a person has to look.
    pub(crate) rounds: u32,
    /// How many tool calls of one answer run; the others get a result that says so.
    pub(crate) calls: usize,
    /// How many tokens a model takes, where that is not known.
    pub(crate) window: Option<u64>,
}

/// About the server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Serve {
    /// The address that it listens on.
    pub(crate) listen: Listen,
    /// Names that it may be called by, beside those of this machine.
    pub(crate) hosts: Vec<String>,
}

/// About what tools may do.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Approval {
    /// Rules; the strictest that matches decides.
    pub(crate) rules: Vec<Rule>,
}

/// About the store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Storage {
    /// Where the store lives; `None` for the user's data folder.
    pub(crate) folder: Option<PathBuf>,
    /// How large the store may grow before there is a warning, in bytes.
    pub(crate) budget: Option<Size>,
    /// How many days garbage is left alone.
    pub(crate) gc_grace_days: u64,
}

/// About history.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct History {
    /// How many changes undo reaches back; 0 for all of them.
    pub(crate) depth: u64,
    /// Typing that pauses for less than this is one step.
    pub(crate) typing_pause_ms: i64,
}

/// About what is shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Output {
    /// Whether long output is paged.
    pub(crate) pager: bool,
    /// How many entries `thread show` shows.
    pub(crate) entries: u64,
}

/// About the files of a project.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Files {
    /// Whether takes bring their files along without being told.
    pub(crate) enabled: bool,
    /// Whether a person is shown what files do, and asked, before they do it.
    pub(crate) confirm: bool,
    /// How much of the store one project may take, in bytes.
    pub(crate) budget: Option<Size>,
    /// Files that are larger are not held.
    pub(crate) largest: Size,
    /// Held even if ignored or likely a secret.
    pub(crate) include: Vec<String>,
    /// Not held.
    pub(crate) exclude: Vec<String>,
    /// Likely a secret, beyond the usual.
    pub(crate) secrets: Vec<String>,
}

/// A number of bytes, as `5 GB`, `500 MiB` or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Default for Storage {
    fn default() -> Self {
        Self { folder: None, budget: None, gc_grace_days: 14 }
    }
}

impl Default for History {
    fn default() -> Self {
        Self { depth: 0, typing_pause_ms: 2000 }
    }
}

impl Default for Files {
    fn default() -> Self {
        Self {
            enabled: true,
            confirm: true,
            budget: None,
            largest: Size(100 << 20),
            include: Vec::new(),
            exclude: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            approval: Approve::Ask,
            effort: None,
            thinking: None,
            attempts: 5,
            rounds: 200,
            calls: 100,
            window: None,
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self { pager: true, entries: 50 }
    }
}

impl Config {
    /// The configuration of this user.
    pub(crate) fn load() -> Result<Self, Failure> {
        let path = path()?;
        Self::parse(&read(&path)?.unwrap_or_default(), &path)
    }

    /// The configuration that a text says.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::new(Code::Usage, format!("{}: {why}", path.display()));
        let config: Self = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end()))?;
        // A store that depends on where a command is started would be another one in every folder.
        match &config.storage.folder {
            Some(folder) if folder.is_relative() => Err(wrong("storage.folder must be an absolute path")),
            _ => Ok(config),
        }
    }

    /// Where the store lives.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        if let Some(home) = environment("RETAKE_HOME").filter(|home| !home.is_empty()) {
            return Ok(PathBuf::from(home));
        }
        match &self.storage.folder {
            Some(folder) => Ok(folder.clone()),
            None => Self::default_folder(),
        }
    }

    /// Where the store lives unless someone says otherwise.
    pub(crate) fn default_folder() -> Result<PathBuf, Failure> {
        Ok(strategy()?.data_dir().join("retake"))
    }

    /// How long garbage is left alone.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.storage.gc_grace_days.saturating_mul(24 * 60 * 60))
    }
}

/// The text of the configuration file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Code::Usage, format!("{}: {error}", path.display()))),
    }
}

/// Where the configuration file is.
pub(crate) fn path() -> Result<PathBuf, Failure> {
    match environment("RETAKE_CONFIG").filter(|path| !path.is_empty()) {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(strategy()?.config_dir().join("retake").join("config.toml")),
    }
}

fn strategy() -> Result<impl BaseStrategy, Failure> {
    etcetera::choose_base_strategy().map_err(|_| {
        Failure::new(
            Code::Failed,
            "there is no home folder; set RETAKE_HOME and RETAKE_CONFIG to say where to keep things",
        )
    })
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor: f64 = match unit.trim().to_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "t" | "tb" => 1e12,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return Err(format!("{text:?} is not a size such as \"5 GB\"")),
        };
        let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size such as \"5 GB\""))?;
        Ok(Self((number * factor) as u64))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [("5 GB", 5_000_000_000), ("1.5k", 1500), ("2 MiB", 2 << 20), ("7", 7)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "GB", "5 parsecs", "-1", "1..2"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_keys_are_errors() {
        let path = Path::new("config.toml");
        assert!(Config::parse("[storage]\nbudget = \"5 GB\"", path).is_ok());
        assert!(Config::parse("[storage]\nbugdet = 5", path).is_err());
        assert!(Config::parse("nonsense", path).is_err());
    }
}
