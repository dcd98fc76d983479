//! What a line of the chat means.

use std::io::{self, BufRead, Write};

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::style::stderr;

/// The commands of the chat itself, with their descriptions.
pub(super) const COMMANDS: [(&str, &str); 11] = [
    ("/help", "list these commands; `/help COMMAND` explains one of Retake's"),
    ("/model [MODEL]", "show or change the model"),
    ("/approve MODE", "change what tools may do without asking"),
    ("/cost", "show what this thread cost"),
    ("/compact", "replace old entries with a summary (`retake compress`)"),
    ("/takes", "list the takes of this thread"),
    ("/keep TAKE", "make a take active and delete its alternatives"),
    ("/threads", "list the threads of this project"),
    ("/editor", "write the next message in your editor"),
    ("/quit", "leave the chat, like Ctrl-D"),
    ("!COMMAND", "run a command of the shell; undo takes back its changes"),
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Nothing,
    Quit,
    Help,
    Model(Option<String>),
    Approve(Option<String>),
    Cost,
    /// Write the message in the editor.
    Editor,
    /// A command of Retake.
    Command(Vec<String>),
    /// A command with an open quote.
    Unfinished(String),
    /// A command of the shell.
    Execute(String),
    Message {
        text: String,
        attach: bool,
    },
}

impl Input {
    /// A line that was typed on a terminal.
    pub(super) fn typed(text: &str) -> Self {
        if let Some(command) =
            text.trim().strip_prefix('!').map(str::trim).filter(|command| !command.is_empty())
        {
            return Self::Execute(command.to_owned());
        }
        Self::of(text, true)
    }

    /// A line of a pipe, which is a message or a command.
    pub(super) fn piped(text: &str) -> Self {
        Self::of(text, false)
    }

    fn of(text: &str, attach: bool) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        match text.strip_prefix('/').map(str::trim).filter(|command| is_command(command)) {
            Some(command) => Self::command(command),
            None => Self::Message { text: text.to_owned(), attach },
        }
    }

    fn command(line: &str) -> Self {
        let words = match shell_words::split(line) {
            Ok(words) => words,
            Err(error) => return Self::Unfinished(format!("{error}")),
        };
        let Some((name, rest)) = words.split_first() else { return Self::Help };
        let first = || rest.first().cloned();
        match (name.as_str(), rest.len()) {
            ("quit" | "exit" | "q", _) => Self::Quit,
            ("help", 0) => Self::Help,
            ("model", 0 | 1) => Self::Model(first()),
            ("approve" | "approval", 0 | 1) => Self::Approve(first()),
            ("cost", 0) => Self::Cost,
            ("editor", 0) => Self::Editor,
            _ => Self::Command(as_command(words)),
        }
    }
}

/// The command of Retake for a command of the chat.
pub(super) fn as_command(mut words: Vec<String>) -> Vec<String> {
    let replacement: &[&str] = match (words.first().map(String::as_str), words.len()) {
        (Some("compact"), _) => &["compress"],
        (Some("takes"), 1) => &["take", "list"],
        (Some("threads"), 1) => &["thread", "list"],
        _ => return words,
    };
    words.splice(..1, replacement.iter().map(|word| (*word).to_owned()));
    words
}

/// Whether the text after a slash is a command, and not a path such as `/etc/hosts` at the start of a message.
fn is_command(text: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

/// Reads a message without a line editor, including continuation lines; `None` at the end of input.
pub(super) fn read_line(context: &Context, shown: bool) -> Result<Option<String>, Failure> {
    let mut message = String::new();
    loop {
        if shown {
            let style = context.styles.user;
            let sign = if message.is_empty() { "›" } else { "…" };
            let mut out = stderr(context.general.color);
            write!(out, "{style}{sign}{style:#} ")?;
            out.flush()?;
        }
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok((!message.trim().is_empty()).then_some(message));
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let Some(part) = line.strip_suffix('\\') else {
            message.push_str(line);
            return Ok(Some(message));
        };
        message.push_str(part);
        message.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Input {
        Input::Message { text: text.to_owned(), attach: true }
    }

    fn command(words: &[&str]) -> Input {
        Input::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn lines_are_understood() {
        for (line, expected) in [
            ("  ", Input::Nothing),
            ("hello", message("hello")),
            (" two\nlines ", message("two\nlines")),
            ("/", Input::Help),
            ("/help", Input::Help),
            ("/help undo", command(&["help", "undo"])),
            ("/quit", Input::Quit),
            ("/undo 2", command(&["undo", "2"])),
            ("/take switch 'my take'", command(&["take", "switch", "my take"])),
            ("/takes", command(&["take", "list"])),
            ("/takes list", command(&["takes", "list"])),
            ("/compact --keep 2", command(&["compress", "--keep", "2"])),
            ("/model", Input::Model(None)),
            ("/model a/b", Input::Model(Some("a/b".to_owned()))),
            ("/approve edits", Input::Approve(Some("edits".to_owned()))),
            ("/etc/hosts is wrong", message("/etc/hosts is wrong")),
            ("/Users is missing", message("/Users is missing")),
            ("!cargo test", Input::Execute("cargo test".to_owned())),
            ("!", message("!")),
        ] {
            assert_eq!(Input::typed(line), expected, "{line:?}");
        }
        assert!(matches!(Input::typed("/take switch 'open"), Input::Unfinished(_)));
        let piped = Input::Message { text: "!ls @a".to_owned(), attach: false };
        assert_eq!(Input::piped("!ls @a"), piped, "a pipe has no commands of the shell");
    }
}
