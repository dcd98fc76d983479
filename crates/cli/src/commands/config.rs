//! `retake config`: the configuration file.

mod edit;
mod get;
mod list;
mod path;
mod set;
mod unset;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

use crate::config::{self, Config, Key};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::files::{IfExists, write_whole};
use crate::ui::command::environment;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Show and change the configuration.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake config                                 every key, its value and its source
  retake config set storage.budget \"5 GB\"
  retake config get output.entries
  retake config unset storage.budget
  retake config edit                            the whole file, checked before it is saved")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List every key with its value, its source and its purpose (the default command).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Print the value of a key.
    Get(get::Arguments),
    /// Set a key. Comments and order in the file are preserved.
    Set(set::Arguments),
    /// Edit the file in your editor. It is replaced only if the new text is valid.
    Edit(edit::Arguments),
    /// Remove a key from the file, restoring its default.
    Unset(unset::Arguments),
    /// Print the path of the configuration file.
    Path(path::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.command.unwrap_or(Command::List(list::Arguments {})) {
            Command::List(arguments) => arguments.run(context),
            Command::Get(arguments) => arguments.run(context),
            Command::Set(arguments) => arguments.run(context),
            Command::Edit(_) => edit::run(context),
            Command::Unset(arguments) => arguments.run(context),
            Command::Path(arguments) => arguments.run(context),
        }
    }
}

struct File {
    path: PathBuf,
    text: Option<String>,
}

/// A key with its value and the source of the value.
#[derive(Serialize)]
struct Setting {
    key: &'static str,
    value: Option<Value>,
    origin: Origin,
    default: Option<Value>,
    #[serde(rename = "type")]
    value_type: &'static str,
    purpose: &'static str,
}

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Environment,
    File,
    Default,
}

impl Origin {
    fn label(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

impl File {
    fn read() -> Result<Self, Failure> {
        let path = config::path()?;
        Ok(Self { text: config::read(&path)?, path })
    }

    fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Replaces the file atomically.
    fn write(&self, text: &str) -> Result<(), Failure> {
        make_folder(&self.path)?;
        write_whole(&self.path, IfExists::Replaced, |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// The value in the file, even if the environment overrides it.
    fn written(&self, key: &Key) -> Result<Option<Value>, Failure> {
        Ok(config::get(self.text(), key.name)?.as_ref().map(json))
    }

    fn setting(&self, key: &'static Key) -> Result<Setting, Failure> {
        let default = match key.default {
            Some(default) => Some(json(&toml_value(default)?)),
            None if key.name == "storage.folder" => Some(text_of(&Config::default_folder()?)),
            None => None,
        };
        let home = environment("RETAKE_HOME").filter(|home| !home.is_empty() && key.name == "storage.folder");
        let written = config::get(self.text(), key.name)?;
        let (value, origin) = match (home, written) {
            (Some(home), _) => (Some(Value::String(home)), Origin::Environment),
            (None, Some(written)) => (Some(json(&written)), Origin::File),
            (None, None) => (default.clone(), Origin::Default),
        };
        let (value_type, purpose) = (key.value_type.label(), key.purpose);
        Ok(Setting { key: key.name, value, origin, default, value_type, purpose })
    }
}

impl Setting {
    /// The value as displayed.
    fn shown(&self) -> String {
        self.value.as_ref().map_or_else(|| "-".to_owned(), show)
    }
}

/// A value without the quotes of a JSON string.
fn show(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    sanitize(&text, LineBreaks::Fold).into_owned()
}

fn text_of(path: &Path) -> Value {
    Value::String(path.to_string_lossy().into_owned())
}

fn toml_value(text: &str) -> Result<toml_edit::Value, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| Failure::new(Code::Failed, error))
}

fn json(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(flag) => (*flag.value()).into(),
        other => Value::String(other.to_string()),
    }
}

/// Creates the folder of the configuration file.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::new(Code::Failed, format!("{}: {error}", folder.display())))
}
