//! `retake config set`

use clap::Args;
use serde::Serialize;

use super::File;
use crate::config::{ValueType, checked, get, is_free, is_secret, key, set, set_free};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Set a key. Comments and order in the file are preserved.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake config set storage.budget \"5 GB\"
  retake config set output.pager false
  retake config set storage.folder ~/retake
  retake config set providers.local.base_url http://localhost:8000/v1

A key of a provider or a price is `providers.NAME.KEY` or `prices.MODEL.KEY`; docs/models.md lists them. A value that is \
not valid is refused, and nothing is written.")]
pub(crate) struct Arguments {
    /// Key, such as `storage.budget`.
    key: String,
    /// New value.
    #[arg(allow_hyphen_values = true)]
    value: String,
}

#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) changed: bool,
    pub(super) value: Option<serde_json::Value>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = File::read()?;
        if is_free(&self.key) {
            return self.set_free(context, file);
        }
        let key = key(&self.key)?;
        let typed = match key.value_type {
            // Stored as an absolute path, so that it does not depend on where a command starts.
            ValueType::Path => context.directory().join(&self.value).to_string_lossy().into_owned(),
            _ => self.value,
        };
        let text = checked(set(file.text(), key, &typed)?, &file.path)?;
        let changed = file.text.as_deref() != Some(text.as_str());
        if changed {
            file.write(&text)?;
        }
        let written = File { text: Some(text), ..file };
        let setting = written.setting(key)?;
        let path = written.path.to_string_lossy().into_owned();
        // Reports the value in the file, which an environment variable may override.
        let value = written.written(key)?;
        let shown = value.as_ref().map_or_else(|| "-".to_owned(), super::show);
        let answer = Answer { path, key: setting.key.to_owned(), changed, value };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let path = sanitize(&answer.path, LineBreaks::Fold);
            let what = if changed { "Set" } else { "Already set:" };
            writeln!(out, "{what} {} to {}. {muted}{path}{muted:#}", setting.key, shown)
        })?;
        if setting.origin == super::Origin::Environment {
            context.note("RETAKE_HOME is set and overrides this key.")?;
        }
        Ok(())
    }

    /// Sets a key of a provider or a price. A secret is not printed.
    fn set_free(self, context: &Context, file: File) -> Result<(), Failure> {
        let text = set_free(file.text(), &self.key, &self.value, &file.path)?;
        let changed = file.text.as_deref() != Some(text.as_str());
        if changed {
            file.write(&text)?;
        }
        let secret = is_secret(&self.key);
        let value = get(&text, &self.key)?.as_ref().map(super::json).filter(|_| !secret);
        let path = file.path.to_string_lossy().into_owned();
        let answer = Answer { path, key: self.key, changed, value };
        context.report(&answer, |out, styles| {
            let muted = styles.muted;
            let (path, key) =
                (sanitize(&answer.path, LineBreaks::Fold), sanitize(&answer.key, LineBreaks::Fold));
            let what = if changed { "Set" } else { "Already set:" };
            let value =
                answer.value.as_ref().map_or_else(String::new, |value| format!(" to {}", super::show(value)));
            writeln!(out, "{what} {key}{value}. {muted}{path}{muted:#}")
        })?;
        if secret {
            context.note(
                "Anyone who can read the file has this secret; `retake keys set` stores keys in the keyring.",
            )?;
        }
        Ok(())
    }
}
