//! Colours by meaning, and when to use them.
//!
//! Commands name what a piece of text *is*; [`Styles`] defines how that looks. Only the sixteen basic colours are used,
//! which every theme keeps readable. Styled text always contains escape sequences; the output stream strips them if
//! colours are unwanted, so only [`decide`] needs to know.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// The `--color` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless the environment overrides it.
    #[default]
    Auto,
    /// Even in pipes and files.
    Always,
    /// Not even on a terminal.
    Never,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Styles {
    /// Headings of sections and columns.
    pub(crate) heading: Style,
    /// Thread titles.
    pub(crate) title: Style,
    /// Ids that can be used as arguments.
    pub(crate) id: Style,
    /// Secondary information: times, gutters, hints.
    pub(crate) muted: Style,
    /// The user's role.
    pub(crate) user: Style,
    /// The model's role.
    pub(crate) assistant: Style,
    /// The system role.
    pub(crate) system: Style,
    /// Tool calls and their results.
    pub(crate) tool: Style,
    /// Added lines.
    pub(crate) added: Style,
    /// Removed lines.
    pub(crate) removed: Style,
    pub(crate) warning: Style,
    pub(crate) error: Style,
    pub(crate) success: Style,
    /// The active take or current state.
    pub(crate) active: Style,
    pub(crate) count: Style,
    /// Commands to type.
    pub(crate) command: Style,
    /// Search matches.
    pub(crate) matched: Style,
    /// Inline code.
    pub(crate) code: Style,
    /// Link targets.
    pub(crate) link: Style,
    /// Strings in code.
    pub(crate) code_text: Style,
    /// Numbers and other literals in code.
    pub(crate) code_value: Style,
    /// Keywords in code.
    pub(crate) code_keyword: Style,
    /// Names defined in code.
    pub(crate) code_name: Style,
}

impl Styles {
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
pub(crate) struct StreamEnvironment {
    pub(crate) target: StreamTarget,
    /// The first applicable preference in the environment.
    pub(crate) preference: ColorPreference,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamTarget {
    Terminal,
    /// A pipe, a file, or a terminal without colour support.
    #[default]
    Elsewhere,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ColorPreference {
    /// None: the terminal decides.
    #[default]
    None,
    /// `NO_COLOR`, or `CLICOLOR=0`.
    Plain,
    /// `CLICOLOR_FORCE`.
    Forced,
}

impl StreamEnvironment {
    pub(crate) fn of_stdout() -> Self {
        Self::read(io::stdout().is_terminal(), |name| env::var_os(name))
    }

    pub(crate) fn of_stderr() -> Self {
        Self::read(io::stderr().is_terminal(), |name| env::var_os(name))
    }

    fn read<Value: AsRef<OsStr>>(terminal: bool, variable: impl Fn(&str) -> Option<Value>) -> Self {
        let set = |name| variable(name).is_some_and(|value| !value.as_ref().is_empty());
        let is = |name, wanted: &str| variable(name).is_some_and(|value| value.as_ref() == wanted);
        let preference = if set("NO_COLOR") {
            ColorPreference::Plain
        } else if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
            ColorPreference::Forced
        } else if is("CLICOLOR", "0") {
            ColorPreference::Plain
        } else {
            ColorPreference::None
        };
        let target =
            if terminal && !is("TERM", "dumb") { StreamTarget::Terminal } else { StreamTarget::Elsewhere };
        Self { target, preference }
    }
}

/// Whether to use colours: the option overrides the environment, which overrides the terminal.
pub(crate) fn decide(when: ColorWhen, environment: StreamEnvironment) -> ColorChoice {
    match (when, environment.preference, environment.target) {
        (ColorWhen::Always, _, _)
        | (ColorWhen::Auto, ColorPreference::Forced, _)
        | (ColorWhen::Auto, ColorPreference::None, StreamTarget::Terminal) => ColorChoice::Always,
        _ => ColorChoice::Never,
    }
}

/// Standard error for messages, which are never paged.
pub(crate) fn stderr(when: ColorWhen) -> AutoStream<io::Stderr> {
    AutoStream::new(io::stderr(), stderr_choice(when))
}

pub(crate) fn stderr_choice(when: ColorWhen) -> ColorChoice {
    decide(when, StreamEnvironment::of_stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(when: ColorWhen, terminal: bool, variables: &[(&str, &str)]) -> ColorChoice {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        decide(when, StreamEnvironment::read(terminal, variable))
    }

    #[test]
    fn colour_is_decided_by_option_then_environment_then_terminal() {
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
