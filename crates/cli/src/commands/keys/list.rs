//! `retake keys list`

use clap::Args;
use serde::Serialize;

use super::{StoredKey, location_name, store};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// List providers with a stored key, without the keys.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake keys
  retake keys list --json")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Keys {
    keys: Vec<StoredKey>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let store = store()?;
        let listed = store.list().map_err(|error| Failure::new(Code::Failed, error))?;
        let keys = listed.into_iter().map(|(provider, location)| StoredKey { provider, location }).collect();
        let answer = Keys { keys };
        if answer.keys.is_empty() {
            context.note_empty("No key is stored", "`retake keys set PROVIDER` stores one")?;
        }
        context.answer(&answer, |out, styles| {
            let (heading, muted) = (styles.heading, styles.muted);
            for key in &answer.keys {
                let name = sanitize(&key.provider, LineBreaks::Fold);
                let location = location_name(key.location, &store);
                let location = sanitize(&location, LineBreaks::Fold);
                writeln!(out, "{heading}{name:<18}{heading:#} {muted}in {location}{muted:#}")?;
            }
            Ok(())
        })
    }
}
