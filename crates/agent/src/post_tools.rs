//! The hook after tools: a command of the user, such as a formatter or a test, that runs after a round of
//! tools and before the model is called again.
//!
//! Only the user's configuration can set it, because a hook is code. It runs like the shell tool: without keys
//! in its environment, in its own process group, with bounded output.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::tools::Call;

/// The hook after tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostToolsHook {
    /// The command.
    pub command: HookCommand,
    /// Seconds until it is stopped.
    #[serde(default = "default_timeout")]
    pub timeout: u64,
    /// When it runs.
    #[serde(default)]
    pub when: HookTrigger,
    /// What happens after it fails.
    #[serde(default)]
    pub on_failure: HookFailure,
}

/// A command line for the shell, or a program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum HookCommand {
    /// A line for `/bin/sh`.
    Line(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookTrigger {
    /// After rounds whose tools changed files.
    #[default]
    Edits,
    /// After every round of tools.
    Always,
}

/// What happens after a hook failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailure {
    /// The model gets the output, and the turn continues.
    #[default]
    Continue,
    /// The turn fails; `retake resume` continues it.
    Stop,
}

fn default_timeout() -> u64 {
    120
}

impl PostToolsHook {
    /// A hook with default options.
    pub fn new(command: HookCommand) -> Self {
        Self {
            command,
            timeout: default_timeout(),
            when: HookTrigger::default(),
            on_failure: HookFailure::default(),
        }
    }

    /// The time after which it is stopped.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs(self.timeout.max(1))
    }

    /// The command as one line for the shell.
    pub fn command_line(&self) -> String {
        match &self.command {
            HookCommand::Line(line) => line.clone(),
            HookCommand::Arguments(arguments) => {
                arguments.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The shell call that runs it.
    pub(crate) fn call(&self) -> Call {
        let input = json!({"command": self.command_line(), "timeout": self.timeout.max(1)});
        Call { id: "post_tools".to_owned(), name: "shell".to_owned(), input }
    }
}

/// An argument as the shell reads it.
fn quoted(argument: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=:,+@%".contains(letter);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_the_program_unchanged() {
        let arguments = ["cargo", "fmt", "a b", "it's", "$HOME", ""].map(str::to_owned).to_vec();
        let hook = PostToolsHook::new(HookCommand::Arguments(arguments));
        assert_eq!(hook.command_line(), r"cargo fmt 'a b' 'it'\''s' '$HOME' ''");
        assert_eq!(PostToolsHook::new(HookCommand::Line("a && b".to_owned())).command_line(), "a && b");
    }

    #[test]
    fn every_option_is_read_and_others_are_refused() {
        let read = |value| serde_json::from_value::<PostToolsHook>(value);
        let hook =
            read(json!({"command": ["make", "fmt"], "timeout": 5, "when": "always", "on_failure": "stop"}))
                .expect("all keys are known");
        assert_eq!((hook.timeout, hook.when, hook.on_failure), (5, HookTrigger::Always, HookFailure::Stop));
        assert_eq!(
            read(json!({"command": "make"})).expect("the rest has defaults"),
            PostToolsHook::new(HookCommand::Line("make".to_owned()))
        );
        assert!(read(json!({"command": "make", "shell": true})).is_err());
        assert!(read(json!({"timeout": 5})).is_err());
    }
}
