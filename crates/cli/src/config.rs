//! The configuration file: documented keys, each with a default.
//!
//! The file is `config.toml` in the user's configuration folder, or the one that `RETAKE_CONFIG` names. An unknown key
//! is an error that suggests similar keys.

mod edit;
mod keys;
mod listen;

use retake_surface::Approve;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use retake_agent::PostToolsHook;
use retake_agent::approval::Rule;
use retake_agent::provider::config::ProviderConfig;
use retake_agent::provider::prices::Price;
use retake_model::settings::Effort;
use serde::Deserialize;

pub(crate) use edit::{checked, get, is_free, is_secret, set, set_free, unset};
pub(crate) use keys::{KEYS, Key, ValueType, key};
pub(crate) use listen::ListenAddress;

use crate::failure::{Code, Failure};
use crate::ui::command::environment;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) storage: Storage,
    pub(crate) history: History,
    pub(crate) output: Output,
    pub(crate) files: Files,
    pub(crate) agent: Agent,
    pub(crate) serve: Serve,
    pub(crate) sync: Sync,
    /// Approval rules beyond `agent.approval`.
    pub(crate) approval: Approval,
    /// Providers, by user-defined name.
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// Model prices, by name prefix.
    pub(crate) prices: BTreeMap<String, Price>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Agent {
    /// The default provider.
    pub(crate) provider: Option<String>,
    /// The default model.
    pub(crate) model: Option<String>,
    /// What tools may do without approval.
    pub(crate) approval: Approve,
    /// How hard a model thinks, where a thread does not say.
    pub(crate) effort: Option<Effort>,
    /// How many tokens a model may think for, where no effort is set.
    pub(crate) thinking: Option<u32>,
    /// How often a failed model call is tried.
    pub(crate) attempts: u32,
    /// Maximum number of model calls in a turn.
    pub(crate) rounds: u32,
    /// Maximum number of tool calls per answer; the others get an error result.
    pub(crate) calls: usize,
    /// Context window in tokens, for unknown models.
    pub(crate) window: Option<u64>,
    /// The command to run after a round of tools.
    pub(crate) post_tools: Option<PostToolsHook>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Serve {
    pub(crate) listen: ListenAddress,
    /// Accepted host names, in addition to local ones.
    pub(crate) hosts: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sync {
    /// Whether commands and `serve` synchronize in the background.
    pub(crate) automatic: bool,
}

impl Default for Sync {
    fn default() -> Self {
        Self { automatic: true }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Approval {
    /// Rules; the strictest match applies.
    pub(crate) rules: Vec<Rule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Storage {
    /// Folder of the store; `None` for the user's data folder.
    pub(crate) folder: Option<PathBuf>,
    /// Size in bytes above which a warning is shown.
    pub(crate) budget: Option<Size>,
    /// Days before `gc` deletes unreferenced content.
    pub(crate) gc_grace_days: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct History {
    /// How many changes undo can reach; 0 for all.
    pub(crate) depth: u64,
    /// Typing with shorter pauses is one undo step.
    pub(crate) typing_pause_ms: i64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Output {
    pub(crate) pager: bool,
    pub(crate) entries: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Files {
    /// Whether switching takes moves files.
    pub(crate) enabled: bool,
    /// Whether interactive commands show a preview and ask before they change files.
    pub(crate) confirm: bool,
    /// Maximum size of one project in the store.
    pub(crate) budget: Option<Size>,
    /// Larger files are excluded.
    pub(crate) largest: Size,
    /// Patterns of files to capture even if ignored or likely secret.
    pub(crate) include: Vec<String>,
    /// Patterns of files to exclude.
    pub(crate) exclude: Vec<String>,
    /// Patterns of likely secrets, in addition to the built-in ones.
    pub(crate) secrets: Vec<String>,
}

/// A size in bytes, written as `5 GB`, `500 MiB` or a plain number.
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
            post_tools: None,
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self { pager: true, entries: 50 }
    }
}

impl Config {
    /// Loads the user's configuration.
    pub(crate) fn load() -> Result<Self, Failure> {
        let path = path()?;
        Self::parse(&read(&path)?.unwrap_or_default(), &path)
    }

    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::new(Code::Usage, format!("{}: {why}", path.display()));
        let config: Self = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end()))?;
        // A relative path would name another store in every folder.
        match &config.storage.folder {
            Some(folder) if folder.is_relative() => Err(wrong("storage.folder must be an absolute path")),
            _ => Ok(config),
        }
    }

    /// The folder of the store.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        if let Some(home) = environment("RETAKE_HOME").filter(|home| !home.is_empty()) {
            return Ok(PathBuf::from(home));
        }
        match &self.storage.folder {
            Some(folder) => Ok(folder.clone()),
            None => Self::default_folder(),
        }
    }

    /// The default folder of the store.
    pub(crate) fn default_folder() -> Result<PathBuf, Failure> {
        Ok(strategy()?.data_dir().join("retake"))
    }

    /// The time before `gc` deletes unreferenced content.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.storage.gc_grace_days.saturating_mul(24 * 60 * 60))
    }
}

/// Reads the configuration file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Code::Usage, format!("{}: {error}", path.display()))),
    }
}

pub(crate) fn path() -> Result<PathBuf, Failure> {
    match environment("RETAKE_CONFIG").filter(|path| !path.is_empty()) {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(strategy()?.config_dir().join("retake").join("config.toml")),
    }
}

fn strategy() -> Result<impl BaseStrategy, Failure> {
    etcetera::choose_base_strategy()
        .map_err(|_| Failure::new(Code::Failed, "no home folder found; set RETAKE_HOME and RETAKE_CONFIG"))
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
        enum RawSize {
            Number(u64),
            Text(String),
        }
        match RawSize::deserialize(deserializer)? {
            RawSize::Number(bytes) => Ok(Self(bytes)),
            RawSize::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_accept_common_notations() {
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
