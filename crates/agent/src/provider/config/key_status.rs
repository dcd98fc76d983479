//! The source of a provider's key, without reading it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ProviderConfig, ProviderEnvironment, variable};
use crate::provider::known::known;

/// The source of a provider's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    /// The configuration, or a file or command that it names.
    Configured,
    /// An environment variable.
    Environment,
    /// Stored by `retake keys set`.
    Stored,
    /// There is none and none is needed: the provider requires no key, or uses other credentials.
    NotNeeded,
    /// There is none.
    Missing,
}

/// The source of a provider's key. Runs no command and does not access a keyring.
pub fn key_status(
    name: &str,
    providers: &BTreeMap<String, ProviderConfig>,
    around: &ProviderEnvironment<'_>,
) -> KeyStatus {
    let nothing = ProviderConfig::default();
    let config = providers.get(name).unwrap_or(&nothing);
    let known = known(name);
    if config.key.is_some()
        || config.key_file.is_some()
        || config.key_command.is_some()
        || config.token_command.is_some()
    {
        return KeyStatus::Configured;
    }
    let variables = known.map(|known| known.key_variables).unwrap_or_default();
    let in_environment = match &config.key_env {
        Some(own) => variable(around, own).is_some(),
        None => variables.iter().any(|name| variable(around, name).is_some()),
    };
    if in_environment {
        return KeyStatus::Environment;
    }
    let same = |stored: &str| {
        let other = super::known(stored).map(|other| other.key_variables).unwrap_or_default();
        stored == name || (!variables.is_empty() && other == variables)
    };
    if (around.stored_names)().iter().any(|stored| same(stored)) {
        return KeyStatus::Stored;
    }
    if config.key_env.is_some() || known.is_some_and(|known| known.needs_key) {
        return KeyStatus::Missing;
    }
    KeyStatus::NotNeeded
}
