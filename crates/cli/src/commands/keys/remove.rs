//! `retake keys remove`

use clap::Args;

use super::{Stored, place_name, store};
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
        let place = removed.ok_or_else(|| {
            let message =
                format!("no key is stored for {:?}; `retake keys` lists those there are", self.provider);
            Failure::new(Code::NotFound, message)
        })?;
        let answer = Stored { provider: self.provider, place };
        context.report(&answer, |out, _| {
            let (name, place) = (sanitize(&answer.provider, LineBreaks::Fold), place_name(place, &store));
            writeln!(out, "Removed the key of {name} from {}.", sanitize(&place, LineBreaks::Fold))
        })
    }
}
