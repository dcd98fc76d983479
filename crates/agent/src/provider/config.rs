//! Resolves a provider name to an endpoint, from built-in data, the configuration and the environment.
//!
//! ```toml
//! [providers.anthropic]
//! key_file = "~/.config/anthropic.key"      # readable by its owner only
//!
//! [providers.workstation]                   # a name of one's own
//! wire = "chat"
//! base_url = "http://localhost:9000/v1"
//! models = ["qwen3-coder"]
//! ```
//!
//! A key comes from the first source that has one: the configuration, the configured file, the configured
//! command (for keyrings), the environment, the keys stored with `retake keys set`. The variable of a known
//! provider is used only for that provider.

mod key;
mod key_lookup;
mod key_status;
mod platform;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use retake_model::projection::ThinkingField;
use serde::Deserialize;

pub use key::{KeyFileError, read_key_file, run_key_command};
pub use key_status::{KeyStatus, key_status};

use super::endpoint::{Endpoint, EndpointError, Timeouts};
use super::key_store::{KeyStore, KeyStoreError};
use super::known::{KNOWN_PROVIDERS, KnownProvider, OFFLINE, dialect, known};
use super::{Dialect, Platform, Secret, SignIn, Wire, plain_model};
use key_lookup::{key, key_hint};
use platform::{PlatformProvider, ProviderSelection, hosted, platform_of, wire_of};

/// The configuration of a provider: `[providers.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// The wire: `anthropic`, `chat`, `responses` or `gemini`. Required for custom providers.
    pub wire: Option<String>,
    /// The base of its URLs. Required for custom providers.
    pub base_url: Option<String>,
    /// The key itself.
    pub key: Option<Secret>,
    /// A file with the key, readable by its owner only.
    pub key_file: Option<PathBuf>,
    /// A command that prints the key, such as `secret-tool lookup service anthropic`.
    pub key_command: Option<String>,
    /// The environment variable with the key.
    pub key_env: Option<String>,
    /// A command that prints a short-lived token, such as one of Entra ID. It runs again before the token
    /// expires.
    pub token_command: Option<String>,
    /// The host of its models: `azure`, `bedrock`, `vertex` or `direct`. Optional for the providers of these
    /// names.
    pub platform: Option<String>,
    /// The region of Bedrock, or the location of Vertex AI.
    pub region: Option<String>,
    /// The AWS profile with the credentials.
    pub profile: Option<String>,
    /// The Google Cloud project.
    pub project: Option<String>,
    /// The JSON file of a Google service account or of Application Default Credentials.
    pub credentials_file: Option<PathBuf>,
    /// The version of Azure's API. Without one, Azure is reached at `/openai/v1`, which needs none.
    pub api_version: Option<String>,
    /// Additional headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// Its models, the default first.
    pub models: Vec<String>,
    /// Timeout in seconds until an answer starts.
    pub first_byte_seconds: Option<u64>,
    /// Timeout in seconds until the next piece of an answer.
    pub stall_seconds: Option<u64>,
    /// Timeout in seconds for a whole answer.
    pub answer_seconds: Option<u64>,
    /// Whether its models accept pictures.
    pub images: Option<bool>,
    /// Whether its models accept temperature and nucleus sampling.
    pub sampling: Option<bool>,
    /// Whether thoughts are sent back to it.
    pub return_reasoning: Option<bool>,
    /// Whether its models accept an effort.
    pub effort: Option<bool>,
    /// Whether its output limit is called `max_completion_tokens`.
    pub completion_tokens: Option<bool>,
    /// Whether to send cache markers.
    pub cache_markers: Option<bool>,
}

/// Sources of keys outside of the configuration.
pub struct ProviderEnvironment<'a> {
    /// Reads an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a key file.
    pub key_file: &'a dyn Fn(&Path) -> Result<Secret, KeyFileError>,
    /// Runs a key command.
    pub key_command: &'a dyn Fn(&str) -> Result<Secret, KeyFileError>,
    /// The stored key of a provider.
    pub stored_key: &'a dyn Fn(&str) -> Result<Option<Secret>, KeyStoreError>,
    /// The providers with a stored key. Does not access a keyring.
    pub stored_names: &'a dyn Fn() -> Vec<String>,
}

impl ProviderEnvironment<'static> {
    /// The sources of this process.
    pub fn from_process() -> Self {
        fn variable(name: &str) -> Option<String> {
            std::env::var(name).ok()
        }
        fn key_file(path: &Path) -> Result<Secret, KeyFileError> {
            read_key_file(path, variable("HOME").as_deref().map(Path::new))
        }
        fn stored_key(provider: &str) -> Result<Option<Secret>, KeyStoreError> {
            KeyStore::from_process().map_or(Ok(None), |store| store.get(provider))
        }
        fn stored_names() -> Vec<String> {
            let listed = KeyStore::from_process().and_then(|store| store.list());
            listed.map(|keys| keys.into_keys().collect()).unwrap_or_default()
        }
        Self {
            variable: &variable,
            key_file: &key_file,
            key_command: &run_key_command,
            stored_key: &stored_key,
            stored_names: &stored_names,
        }
    }
}

/// A resolved provider.
#[derive(Clone, Debug)]
pub enum ResolvedProvider {
    /// The built-in offline assistant.
    Offline,
    /// A remote model.
    Remote(Box<Endpoint>),
}

/// The chosen provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderChoice {
    /// Named by the thread or the configuration.
    Named(String),
    /// The only one with a key in the environment.
    Found(&'static str),
    /// No provider is configured, and there is not exactly one key to choose it by.
    Offline {
        /// Providers with a key.
        found: Vec<&'static str>,
    },
}

impl ProviderChoice {
    /// The provider's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Found(name) => name,
            Self::Offline { .. } => OFFLINE,
        }
    }
}

/// Why a provider cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Neither known nor configured.
    #[error("there is no provider {name:?}; there are {there}. Another is configured as [providers.{name}]")]
    Unknown {
        /// The requested name.
        name: String,
        /// The available names.
        there: String,
    },
    /// A field of a custom provider is missing or invalid.
    #[error("providers.{name}.{field} is missing or not valid: {expected}")]
    Incomplete {
        /// The provider.
        name: String,
        /// The field.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// No key.
    #[error("there is no key for {provider}; {hint}")]
    NoKey {
        /// The provider.
        provider: String,
        /// How to fix it.
        hint: String,
    },
    /// No model.
    #[error(
        "no model of {provider} is selected; choose one with the setting `model`, or list them in providers.{provider}.models"
    )]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// The key file cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The stored key cannot be used.
    #[error(transparent)]
    KeyStore(#[from] KeyStoreError),
    /// This build does not include the cloud.
    #[error(
        "this build cannot sign in to {platform}; use a release, or build with: cargo build --features {feature}"
    )]
    NotBuilt {
        /// The cloud.
        platform: &'static str,
        /// The cargo feature to enable.
        feature: &'static str,
    },
    /// The endpoint is invalid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// Chooses a provider: the thread's, else the configured one, else the only one with a key, else `offline`.
pub fn choose(
    thread: Option<&str>,
    configured: Option<&str>,
    environment: &ProviderEnvironment<'_>,
) -> ProviderChoice {
    let named = [thread, configured].into_iter().flatten().map(str::trim).find(|name| !name.is_empty());
    if let Some(name) = named {
        return ProviderChoice::Named(name.to_owned());
    }
    let stored = (environment.stored_names)();
    let has_key = |known: &&KnownProvider| {
        stored.iter().any(|name| name == known.name)
            || known.key_variables.iter().any(|name| variable(environment, name).is_some())
    };
    let mut found: Vec<&'static str> = Vec::new();
    // Providers with the same key variables count as one.
    let mut variables: Vec<&[&str]> = Vec::new();
    for known in KNOWN_PROVIDERS.iter().filter(has_key) {
        if !variables.contains(&known.key_variables) {
            variables.push(known.key_variables);
            found.push(known.name);
        }
    }
    match found[..] {
        [only] => ProviderChoice::Found(only),
        _ => ProviderChoice::Offline { found },
    }
}

/// Resolves a provider and model to an endpoint.
pub fn resolve(
    name: &str,
    model: Option<&str>,
    providers: &BTreeMap<String, ProviderConfig>,
    environment: &ProviderEnvironment<'_>,
) -> Result<ResolvedProvider, ResolveError> {
    if name == OFFLINE {
        return Ok(ResolvedProvider::Offline);
    }
    let known = known(name);
    let nothing = ProviderConfig::default();
    let config = match (providers.get(name), known) {
        (Some(config), _) => config,
        (None, Some(_)) => &nothing,
        (None, None) => return Err(unknown(name, providers)),
    };
    let platform = platform_of(name, config)?;
    let incomplete = |field, expected| ResolveError::Incomplete { name: name.to_owned(), field, expected };
    let first =
        config.models.first().map(String::as_str).or(known.and_then(|known| known.models.first().copied()));
    let model = model.map(str::trim).filter(|model| !model.is_empty()).or(first);
    let model = model.ok_or_else(|| ResolveError::NoModel { provider: name.to_owned() })?;
    let key_hint = key_hint(name, config, known);
    let wire = wire(name, config, known, wire_of(platform, model))?;
    let key = if config.token_command.is_some() { None } else { key(name, config, known, environment)? };
    let selection = ProviderSelection { name, config, wire, model, has_key: key.is_some() };
    let PlatformProvider { platform, base_url, sign_in, headers } =
        hosted(platform, &selection, environment)?;
    let base_url = base_url.as_deref().or(config.base_url.as_deref()).or(known.map(|known| known.base_url));
    let base_url =
        base_url.ok_or_else(|| incomplete("base_url", "an address such as https://api.example.org/v1"))?;
    let key_hint = platform::hint(platform, &sign_in).unwrap_or(key_hint);
    let by_key = matches!(sign_in, SignIn::Key);
    if key.is_none() && by_key && (config.key_env.is_some() || known.is_some_and(|known| known.needs_key)) {
        return Err(ResolveError::NoKey { provider: name.to_owned(), hint: key_hint });
    }
    let seconds = |given: Option<u64>, usual: Duration| given.map_or(usual, Duration::from_secs);
    let usual = Timeouts::default();
    let endpoint = Endpoint {
        provider: name.to_owned(),
        wire,
        dialect: spoken(config, dialect(maker(platform, name), wire, &plain_model(model))),
        base_url: base_url.to_owned(),
        model: model.to_owned(),
        key,
        key_hint,
        headers: config
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
            .chain(headers)
            .collect(),
        timeouts: Timeouts {
            first_byte: seconds(config.first_byte_seconds, usual.first_byte),
            stall: seconds(config.stall_seconds, usual.stall),
            answer: seconds(config.answer_seconds, usual.answer),
        },
        platform,
        sign_in,
    };
    endpoint.check()?;
    Ok(ResolvedProvider::Remote(Box::new(endpoint)))
}

/// The known or configured models of a provider, the default first.
pub fn models(name: &str, providers: &BTreeMap<String, ProviderConfig>) -> Vec<String> {
    let configured = providers.get(name).map(|config| config.models.clone()).unwrap_or_default();
    let known = known(name).map(|known| known.models).unwrap_or_default();
    let more: Vec<String> =
        known.iter().map(ToString::to_string).filter(|model| !configured.contains(model)).collect();
    configured.into_iter().chain(more).collect()
}

fn unknown(name: &str, providers: &BTreeMap<String, ProviderConfig>) -> ResolveError {
    let mut there: Vec<&str> = KNOWN_PROVIDERS.iter().map(|known| known.name).collect();
    there.extend(providers.keys().map(String::as_str).filter(|name| known(name).is_none()));
    there.push(OFFLINE);
    let name = name.chars().filter(|letter| !letter.is_control()).take(60).collect();
    ResolveError::Unknown { name, there: there.join(", ") }
}

/// The provider whose dialect applies on a platform.
fn maker(platform: Platform, name: &str) -> &str {
    if platform == Platform::Azure { "openai" } else { name }
}

fn wire(
    name: &str,
    config: &ProviderConfig,
    known: Option<&KnownProvider>,
    of_platform: Option<Wire>,
) -> Result<Wire, ResolveError> {
    let wire = match &config.wire {
        Some(given) => Wire::of(given),
        None => of_platform.or(known.map(|known| known.wire)),
    };
    let expected = "one of anthropic, chat, responses, gemini";
    wire.ok_or_else(|| ResolveError::Incomplete { name: name.to_owned(), field: "wire", expected })
}

fn variable(environment: &ProviderEnvironment<'_>, name: &str) -> Option<String> {
    (environment.variable)(name).filter(|value| !value.trim().is_empty())
}

fn spoken(config: &ProviderConfig, usual: Dialect) -> Dialect {
    let thinking = match (config.effort, usual.thinking) {
        (Some(false), _) => ThinkingField::None,
        (Some(true), ThinkingField::None) => ThinkingField::Effort,
        (_, thinking) => thinking,
    };
    Dialect {
        thinking,
        images: config.images.unwrap_or(usual.images),
        sampling: config.sampling.unwrap_or(usual.sampling),
        return_reasoning: config.return_reasoning.unwrap_or(usual.return_reasoning),
        completion_tokens: config.completion_tokens.unwrap_or(usual.completion_tokens),
        cache_markers: config.cache_markers.unwrap_or(usual.cache_markers),
        ..usual
    }
}

#[cfg(test)]
mod tests;
