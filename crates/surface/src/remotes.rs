//! Opens remotes with the credentials of this machine.
//!
//! Credentials are in the environment, or in the store of keys (`retake-keys.json`, or the keyring of the system), under
//! the name `remote.NAME`.

use retake_agent::provider::Secret;
use retake_agent::provider::key_store::{KeyStore, KeyStoreError};
use retake_sync::config::{Address, ConfigError, RemoteConfig};
use retake_sync::remote::{Credentials, OpenMode, Remote, connect};
use retake_sync::session::RoundError;

use crate::{Code, Failure};

/// Opens a remote.
pub fn open_remote(config: &RemoteConfig, place: OpenMode) -> Result<Box<dyn Remote>, Failure> {
    Ok(connect(config, &credentials(config)?, place).map_err(RoundError::from)?)
}

/// Whether a remote needs a login before it can be opened: a hub of which this machine has no token.
pub fn needs_login(config: &RemoteConfig) -> Result<bool, Failure> {
    let address: Address = config.url.parse().map_err(ConfigError::from)?;
    Ok(matches!(address, Address::Hub(_)) && credentials(config)?.secret.is_none())
}

/// Stores the token of a hub, which must accept it.
pub fn log_in(config: &RemoteConfig, token: &str) -> Result<(), Failure> {
    let with_token = Credentials { secret: Some(token.to_owned()), access_key: None };
    connect(config, &with_token, OpenMode::Existing).map_err(RoundError::from)?;
    store_credentials(&config.name, token)
}

fn credentials(config: &RemoteConfig) -> Result<Credentials, Failure> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let address: Address = config.url.parse().map_err(ConfigError::from)?;
    match address {
        Address::Folder(_) => return Ok(Credentials::default()),
        Address::Bucket { .. } => {
            if let (Some(access_key), Some(secret)) =
                (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
            {
                return Ok(Credentials { secret: Some(secret), access_key: Some(access_key) });
            }
        }
        Address::Hub(_) => {
            if let Some(token) = variable("RETAKE_HUB_TOKEN") {
                return Ok(Credentials { secret: Some(token), access_key: None });
            }
        }
    }
    let stored = key_store()?.get(&key_name(&config.name)).map_err(failed)?;
    let Some(stored) = stored else { return Ok(Credentials::default()) };
    let text = stored.reveal();
    let (access_key, secret) = match (text.split_once(':'), address) {
        (Some((access_key, secret)), Address::Bucket { .. }) => (Some(access_key.to_owned()), secret),
        _ => (None, text),
    };
    Ok(Credentials { secret: Some(secret.to_owned()), access_key })
}

/// Stores the credentials of a remote: a token, or `ACCESS_KEY:SECRET_KEY`.
pub fn store_credentials(remote: &str, secret: &str) -> Result<(), Failure> {
    key_store()?.set(&key_name(remote), &Secret::new(secret)).map(drop).map_err(failed)
}

/// Removes the credentials of a remote.
pub fn forget_credentials(remote: &str) -> Result<(), Failure> {
    key_store()?.remove(&key_name(remote)).map(drop).map_err(failed)
}

fn key_name(remote: &str) -> String {
    format!("remote.{remote}")
}

fn key_store() -> Result<KeyStore, Failure> {
    KeyStore::from_process().map_err(failed)
}

fn failed(error: KeyStoreError) -> Failure {
    Failure::new(Code::Failed, error)
}
