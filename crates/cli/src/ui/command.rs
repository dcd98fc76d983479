//! Programs that the user configured, such as editor and pager.
//!
//! `EDITOR="code --wait"` and `PAGER='less -R'` are commands, not file names. They are split like a shell would, but
//! run without a shell, so that nothing in a path is interpreted as syntax.

use std::env;
use std::process::Command;

/// Reads an environment variable.
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

pub(crate) fn environment(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// A program with its first arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    name: String,
    arguments: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is not a valid command: {value:?} has an unclosed quote")]
pub(crate) struct CommandSyntaxError {
    variable: String,
    value: String,
}

impl Program {
    /// The program of the first variable that is set; `None` if none is set or the first is blank.
    pub(crate) fn from_variables(
        names: &[&str],
        environment: &impl Environment,
    ) -> Result<Option<ProgramChoice>, CommandSyntaxError> {
        for &variable in names {
            let Some(value) = environment.get(variable) else {
                continue;
            };
            let words = shell_words::split(&value)
                .map_err(|_| CommandSyntaxError { variable: variable.to_owned(), value: value.clone() })?;
            let mut words = words.into_iter();
            return Ok(Some(match words.next() {
                Some(name) => ProgramChoice::Program(Self { name, arguments: words.collect() }),
                None => ProgramChoice::Nothing,
            }));
        }
        Ok(None)
    }

    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), arguments: Vec::new() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command.args(&self.arguments);
        command
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgramChoice {
    Program(Program),
    /// A blank value: explicitly no program.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(value: &str) -> Result<Option<ProgramChoice>, CommandSyntaxError> {
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
            assert_eq!(chosen(value), Ok(Some(ProgramChoice::Program(wanted))), "{value:?}");
        }
    }

    #[test]
    fn a_blank_value_means_no_program() {
        assert_eq!(chosen("  "), Ok(Some(ProgramChoice::Nothing)));
        assert_eq!(Program::from_variables(&["UNSET"], &|_: &str| None), Ok(None));
    }

    #[test]
    fn an_unclosed_quote_is_reported() {
        let error = chosen("vim 'oops").expect_err("the quote is open");
        assert!(error.to_string().contains("SET"), "{error}");
    }
}
