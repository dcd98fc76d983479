//! `retake keys set`

use std::io::{self, IsTerminal, Read};

use clap::Args;
use retake_agent::provider::Secret;
use retake_agent::provider::config::{KeyStatus, ProviderEnvironment, key_status};
use retake_agent::provider::known::OFFLINE;

use super::{StoredKey, location_name, store, unknown_provider};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::hidden_input::read_hidden;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// No key is longer.
const KEY_BYTES: u64 = 16 * 1024;

/// Store the key of a provider. It is read from a prompt that shows nothing, or from standard input.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake keys set anthropic
  pass show openai | retake keys set openai
  retake keys set openai < key.txt")]
pub(crate) struct Arguments {
    /// The provider, as `retake models` lists it.
    provider: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let setup = context.setup();
        if !setup.providers().any(|name| name == self.provider) {
            return Err(unknown_provider(&self.provider));
        }
        if self.provider == OFFLINE {
            return Err(Failure::new(Code::Usage, "the built-in assistant needs no key; nothing was stored"));
        }
        let name = sanitize(&self.provider, LineBreaks::Fold).into_owned();
        let text = if io::stdin().is_terminal() {
            read_hidden(&format!("Key of {name}: "))?
                .ok_or_else(|| Failure::new(Code::Usage, "no key was given; nothing was stored"))?
        } else {
            let mut text = String::new();
            let read = io::stdin().take(KEY_BYTES + 1).read_to_string(&mut text);
            read.map_err(|_| Failure::new(Code::Usage, "standard input is not a key; nothing was stored"))?;
            text
        };
        if text.trim().is_empty() {
            let message = "no key was given; type it at the prompt, or pipe it in. Nothing was stored";
            return Err(Failure::new(Code::Usage, message));
        }
        let store = store()?;
        let stored = store.set(&self.provider, &Secret::new(&text));
        let location = stored.map_err(|error| Failure::new(Code::Usage, error))?;
        let answer = StoredKey { provider: self.provider, location };
        context.report(&answer, |out, _| {
            writeln!(
                out,
                "Stored the key of {name} in {}.",
                sanitize(&location_name(location, &store), LineBreaks::Fold)
            )
        })?;
        match key_status(&answer.provider, &setup.providers, &ProviderEnvironment::from_process()) {
            KeyStatus::Configured => {
                context.note("The configuration also sets a key, which takes precedence.")
            }
            KeyStatus::Environment => {
                context.note("The environment also sets a key, which takes precedence.")
            }
            _ => Ok(()),
        }
    }
}
