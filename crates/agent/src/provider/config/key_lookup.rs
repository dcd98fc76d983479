//! Looks up the key of a provider, and suggests how to set a missing one.

use super::{ProviderConfig, ProviderEnvironment, ResolveError, variable};
use crate::provider::Secret;
use crate::provider::known::{KNOWN_PROVIDERS, KnownProvider};

/// The key of a provider, from the first source that has one.
pub(super) fn key(
    name: &str,
    config: &ProviderConfig,
    known: Option<&KnownProvider>,
    around: &ProviderEnvironment<'_>,
) -> Result<Option<Secret>, ResolveError> {
    if let Some(key) = &config.key {
        return Ok(Some(key.clone()));
    }
    if let Some(path) = &config.key_file {
        return Ok(Some((around.key_file)(path)?));
    }
    if let Some(command) = &config.key_command {
        return Ok(Some((around.key_command)(command)?));
    }
    // A configured variable replaces the default ones.
    let names: Vec<&str> = match (&config.key_env, known) {
        (Some(name), _) => vec![name],
        (None, Some(known)) => known.key_variables.to_vec(),
        (None, None) => Vec::new(),
    };
    if let Some(text) = names.into_iter().find_map(|name| variable(around, name)) {
        return Ok(Some(Secret::new(&text)));
    }
    // Known providers with the same key variables share a stored key.
    let stored = (around.stored_names)();
    let same = |other: &&KnownProvider| {
        known.is_some_and(|known| {
            !known.key_variables.is_empty() && known.key_variables == other.key_variables
        })
    };
    let mut names = [name].into_iter().chain(KNOWN_PROVIDERS.iter().filter(same).map(|known| known.name));
    match names.find(|name| stored.iter().any(|stored| stored == name)) {
        Some(name) => Ok((around.stored_key)(name)?),
        None => Ok(None),
    }
}

/// How the user can set a key, as the end of a sentence.
pub(super) fn key_hint(name: &str, config: &ProviderConfig, known: Option<&KnownProvider>) -> String {
    let usual = known.and_then(|known| known.key_variables.first().copied());
    match (&config.key, &config.key_file, config.key_env.as_deref().or(usual)) {
        (Some(_), ..) => format!("look at providers.{name}.key in the configuration"),
        (None, Some(path), _) => format!("look at the file {}", path.display()),
        (None, None, Some(variable)) => {
            format!(
                "set {variable}, or providers.{name}.key_file in the configuration, or run `retake keys set {name}`"
            )
        }
        (None, None, None) => {
            format!("set providers.{name}.key_file in the configuration, or run `retake keys set {name}`")
        }
    }
}
