//! Colours by meaning, and when to use them.
//!
//! A command names what a piece of text *is*; [`Styles`] is the one place that says how that looks. Only
//! the sixteen basic colours are used, which every theme keeps readable on its own background. Styled text
//! always carries its sequences; the stream that writes it takes them out where colours are unwanted, so
//! nothing but [`decide`] needs to know.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// The `--color` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Also into pipes and files.
    Always,
    /// Not even on a terminal.
    Never,
}

/// How each meaning looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Styles {
    /// Titles of sections and columns.
    pub(crate) heading: Style,
    /// The title of a thread.
    pub(crate) title: Style,
    /// An id that can be typed back.
    pub(crate) id: Style,
    /// What is there for completeness: times, gutters, hints.
    pub(crate) muted: Style,
    /// What the human said.
    pub(crate) user: Style,
    /// What the model said.
    pub(crate) assistant: Style,
    /// Instructions.
    pub(crate) system: Style,
    /// Tool calls and their results.
    pub(crate) tool: Style,
    /// Lines that came.
    pub(crate) added: Style,
    /// Lines that went.
    pub(crate) removed: Style,
    /// Something to look at.
    pub(crate) warning: Style,
    /// Something that did not work.
    pub(crate) error: Style,
    /// Something that did.
    pub(crate) success: Style,
    /// Where the user is: the active take, the current state.
    pub(crate) active: Style,
    /// Numbers of things.
    pub(crate) count: Style,
    /// A command to type.
    pub(crate) command: Style,
    /// What a search matched.
    pub(crate) matched: Style,
    /// A name or a command inside running text.
    pub(crate) code: Style,
    /// Where a link leads.
    pub(crate) link: Style,
    /// Texts in code.
    pub(crate) code_text: Style,
    /// Numbers and other values in code.
    pub(crate) code_value: Style,
    /// Words of the language in code.
    pub(crate) code_keyword: Style,
    /// What code gives a name to.
    pub(crate) code_name: Style,
}

impl Styles {
    /// The palette.
    pub(crate) const fn new() -> Self {
        let plain = Style::new();
        Self {
            heading: plain.bold().underline(),
            title: plain.bold(),
            id: color(AnsiColor::Yellow),
            muted: plain.dimmed(),
            user: color(AnsiColor::Blue).bold(),
            assistant: color(AnsiColor::Green),
            system: color(AnsiColor::Magenta),
            tool: color(AnsiColor::Cyan),
            added: color(AnsiColor::Green),
            removed: color(AnsiColor::Red),
            warning: color(AnsiColor::Yellow).bold(),
            error: color(AnsiColor::Red).bold(),
            success: color(AnsiColor::Green).bold(),
            active: color(AnsiColor::Green).bold(),
            count: color(AnsiColor::Cyan),
            command: plain.bold(),
            matched: color(AnsiColor::Red).bold(),
            code: color(AnsiColor::Cyan),
            link: color(AnsiColor::Blue).underline(),
            code_text: color(AnsiColor::Green),
            code_value: color(AnsiColor::Cyan),
            code_keyword: color(AnsiColor::Magenta),
            code_name: color(AnsiColor::Blue),
        }
    }
}

const fn color(color: AnsiColor) -> Style {
    color.on_default()
}

/// What the choice of colours depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Where the stream goes.
    pub(crate) shown: Shown,
    /// The first of the environment's wishes that applies.
    pub(crate) wish: Wish,
}

/// Where a stream goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    /// To a terminal that understands colours.
    Terminal,
    /// To a pipe, a file, or a terminal that prints sequences as they are.
    #[default]
    Elsewhere,
}

/// What the environment asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing: the terminal decides.
    #[default]
    None,
    /// `NO_COLOR`, or `CLICOLOR=0`.
    Plain,
    /// `CLICOLOR_FORCE`.
    Forced,
}

impl Surroundings {
    /// As they are for the standard output of this process.
    pub(crate) fn of_stdout() -> Self {
        Self::read(io::stdout().is_terminal(), |name| env::var_os(name))
    }

    /// As they are for the standard error of this process.
    pub(crate) fn of_stderr() -> Self {
        Self::read(io::stderr().is_terminal(), |name| env::var_os(name))
    }

    fn read<Value: AsRef<OsStr>>(terminal: bool, variable: impl Fn(&str) -> Option<Value>) -> Self {
        let set = |name| variable(name).is_some_and(|value| !value.as_ref().is_empty());
        let is = |name, wanted: &str| variable(name).is_some_and(|value| value.as_ref() == wanted);
        let wish = if set("NO_COLOR") {
            Wish::Plain
        } else if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
            Wish::Forced
        } else if is("CLICOLOR", "0") {
            Wish::Plain
        } else {
            Wish::None
        };
        let shown = if terminal && !is("TERM", "dumb") { Shown::Terminal } else { Shown::Elsewhere };
        Self { shown, wish }
    }
}

/// Whether to use colours. An option of the command line beats the environment, which beats the terminal.
pub(crate) fn decide(when: ColorWhen, surroundings: Surroundings) -> ColorChoice {
    match (when, surroundings.wish, surroundings.shown) {
        (ColorWhen::Always, _, _)
        | (ColorWhen::Auto, Wish::Forced, _)
        | (ColorWhen::Auto, Wish::None, Shown::Terminal) => ColorChoice::Always,
        _ => ColorChoice::Never,
    }
}

/// Standard error with colours as decided: for messages, which are never paged.
pub(crate) fn stderr(when: ColorWhen) -> AutoStream<io::Stderr> {
    AutoStream::new(io::stderr(), stderr_choice(when))
}

/// Whether standard error has colours.
pub(crate) fn stderr_choice(when: ColorWhen) -> ColorChoice {
    decide(when, Surroundings::of_stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(when: ColorWhen, terminal: bool, variables: &[(&str, &str)]) -> ColorChoice {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        decide(when, Surroundings::read(terminal, variable))
    }

    #[test]
    fn option_then_environment_then_terminal() {
        use ColorChoice::{Always as Colours, Never as Plain};
        use ColorWhen::{Always, Auto, Never};
        for (when, terminal, variables, wanted) in [
            (Auto, true, &[][..], Colours),
            (Auto, false, &[], Plain),
            (Auto, true, &[("TERM", "dumb")], Plain),
            (Auto, true, &[("TERM", "xterm-256color")], Colours),
            (Auto, true, &[("NO_COLOR", "1")], Plain),
            (Auto, true, &[("NO_COLOR", "")], Colours),
            (Auto, true, &[("CLICOLOR", "0")], Plain),
            (Auto, false, &[("CLICOLOR_FORCE", "1")], Colours),
            (Auto, false, &[("CLICOLOR_FORCE", "0")], Plain),
            (Auto, false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], Plain),
            (Always, false, &[("NO_COLOR", "1")], Colours),
            (Never, true, &[("CLICOLOR_FORCE", "1")], Plain),
        ] {
            assert_eq!(choice(when, terminal, variables), wanted, "{when:?} {terminal} {variables:?}");
        }
    }
}
