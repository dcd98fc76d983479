//! The programs that a user chose for us: which, and with what arguments.
//!
//! `EDITOR="code --wait"` and `PAGER='less -R'` are commands, not file names. They are split as a shell
//! would split them, but no shell runs: what the variable says is what starts, on every system, and nothing
//! in a path can be taken for syntax.

use std::env;
use std::process::Command;

/// Reads one environment variable.
///
/// Tests pass a table; the program passes [`environment`].
pub(crate) trait Environment {
    fn get(&self, name: &str) -> Option<String>;
}

impl<Function: Fn(&str) -> Option<String>> Environment for Function {
    fn get(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// The environment of this process.
pub(crate) fn environment(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// A program with its first arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    name: String,
    arguments: Vec<String>,
}

/// A variable's value is not a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is not a command that can be run: {value:?} has a quote that is not closed")]
pub(crate) struct NotACommand {
    variable: String,
    value: String,
}

impl Program {
    /// The program of the first of these variables that is set, or `None` if none is, or the first is blank.
    pub(crate) fn from_variables(
        names: &[&str],
        environment: &impl Environment,
    ) -> Result<Option<Chosen>, NotACommand> {
        for &variable in names {
            let Some(value) = environment.get(variable) else {
                continue;
            };
            let words = shell_words::split(&value)
                .map_err(|_| NotACommand { variable: variable.to_owned(), value: value.clone() })?;
            let mut words = words.into_iter();
            return Ok(Some(match words.next() {
                Some(name) => Chosen::Program(Self { name, arguments: words.collect() }),
                None => Chosen::Nothing,
            }));
        }
        Ok(None)
    }

    /// A program without arguments.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), arguments: Vec::new() }
    }

    /// The name as it was written.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A command that starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command.args(&self.arguments);
        command
    }
}

/// What a variable that is set asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// This program.
    Program(Program),
    /// The value is blank: none, on purpose.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(value: &str) -> Result<Option<Chosen>, NotACommand> {
        Program::from_variables(&["UNSET", "SET", "LATER"], &|name: &str| match name {
            "SET" => Some(value.to_owned()),
            "LATER" => Some("later".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn splits_as_a_shell_would() {
        for (value, name, arguments) in [
            ("vim", "vim", &[][..]),
            ("code --wait", "code", &["--wait"]),
            ("'/opt/my editor/run' -f \"a b\"", "/opt/my editor/run", &["-f", "a b"]),
            ("  less   -R ", "less", &["-R"]),
            ("a;b $(c)", "a;b", &["$(c)"]),
        ] {
            let arguments = arguments.iter().map(ToString::to_string).collect();
            let wanted = Program { name: name.to_owned(), arguments };
            assert_eq!(chosen(value), Ok(Some(Chosen::Program(wanted))), "{value:?}");
        }
    }

    #[test]
    fn a_blank_value_is_a_choice() {
        assert_eq!(chosen("  "), Ok(Some(Chosen::Nothing)));
        assert_eq!(Program::from_variables(&["UNSET"], &|_: &str| None), Ok(None));
    }

    #[test]
    fn an_open_quote_is_named() {
        let error = chosen("vim 'oops").expect_err("the quote is open");
        assert!(error.to_string().contains("SET"), "{error}");
    }
}
