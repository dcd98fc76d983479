//! `retake keys remove`

use clap::Args;

use super::{StoredKey, location_name, store};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Remove the stored key of a provider.
#[derive(Args)]
#[command(after_help = "Example:\n  retake keys remove openai")]
pub(crate) struct Arguments {
    /// The provider.
    provider: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let store = store()?;
        let removed = store.remove(&self.provider).map_err(|error| Failure::new(Code::Failed, error))?;
        let location = removed.ok_or_else(|| {
            let message =
                format!("no key is stored for {:?}; `retake keys` lists the stored keys", self.provider);
            Failure::new(Code::NotFound, message)
        })?;
        let answer = StoredKey { provider: self.provider, location };
        context.report(&answer, |out, _| {
            let (name, location) =
                (sanitize(&answer.provider, LineBreaks::Fold), location_name(location, &store));
            writeln!(out, "Removed the key of {name} from {}.", sanitize(&location, LineBreaks::Fold))
        })
    }
}
