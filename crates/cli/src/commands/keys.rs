//! `retake keys`: keys of providers, in the keyring of the system or in a file that only its owner reads.

mod list;
mod remove;
mod set;

use clap::{Args, Subcommand};
use retake_agent::provider::key_store::{KeyLocation, KeyStore};
use serde::Serialize;

use super::defaulted::WithDefault;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Keys of providers that are stored on this machine. No command ever prints one.
#[derive(Args)]
// The arguments of the default command are a group of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake keys set anthropic              asks for the key; it is not shown
  pass show openai | retake keys set openai
  retake keys
  retake keys remove openai

Keys are stored in the keyring of the system (secret-tool on Linux, security on macOS), and without one in retake-keys.json \
beside the configuration, which only you can read. RETAKE_KEYRING=off always uses the file. A key in the configuration \
or in the environment takes precedence over a stored one.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List providers with a stored key (the default command).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Store the key of a provider.
    Set(set::Arguments),
    /// Remove the key of a provider.
    #[command(visible_alias = "rm")]
    Remove(remove::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::List) {
            Command::List(arguments) => arguments.run(context),
            Command::Set(arguments) => arguments.run(context),
            Command::Remove(arguments) => arguments.run(context),
        }
    }
}

/// A key, without the key.
#[derive(Serialize)]
struct StoredKey {
    provider: String,
    location: KeyLocation,
}

fn store() -> Result<KeyStore, Failure> {
    KeyStore::from_process().map_err(|error| Failure::new(Code::Failed, error))
}

/// Where a key is, to a person.
fn location_name(location: KeyLocation, store: &KeyStore) -> String {
    match location {
        KeyLocation::Keyring => "the keyring of the system".to_owned(),
        KeyLocation::File => store.file().display().to_string(),
    }
}

/// A provider of that name neither exists nor is configured.
pub(super) fn unknown_provider(name: &str) -> Failure {
    Failure::new(
        Code::NotFound,
        format!(
            "there is no provider {name:?}; `retake models` lists all providers, and [providers.{name}] in the configuration adds one"
        ),
    )
}
