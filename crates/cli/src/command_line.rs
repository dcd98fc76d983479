//! Parses the command line: prompts without a command, hints for typos, and the grouped help.
//!
//! ```text
//!   retake undo                  a command
//!   retake "Fix the login"       a prompt: one word with a space that is no command runs `retake run`
//!   retake undi                  a typo: an error with a hint, and never a prompt that costs money
//! ```

use std::ffi::OsString;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory};

use crate::arguments::Arguments;
use crate::ui::width::wrap;

/// Commands and options that a typo hint never suggests, because they destroy or discard something.
const DESTRUCTIVE: [&str; 15] = [
    "clear",
    "delete",
    "forget",
    "gc",
    "purge",
    "redact",
    "remove",
    "repair",
    "reset",
    "rm",
    "truncate",
    "--yes",
    "--delete-files",
    "--deleted",
    "--shared",
];

/// The commands by subject, in the order of the help. A command that is missing here comes last.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Agent",
        &[
            "run", "chat", "retry", "resume", "stop", "steer", "compare", "compress", "models", "keys",
            "trace", "usage",
        ],
    ),
    (
        "Threads, takes and entries",
        &[
            "new", "ls", "show", "switch", "edit", "fork", "keep", "merge", "thread", "take", "entry",
            "worktree", "tree", "search", "draft", "settings", "role", "context",
        ],
    ),
    ("History", &["undo", "redo", "history", "turns", "jump", "save", "reset", "truncate", "clear"]),
    ("Files", &["status", "diff", "cat", "ls-files", "log", "blame", "restore", "snapshot", "exec"]),
    ("Store", &["export", "import", "backup", "verify", "repair", "gc", "redact", "purge"]),
    ("Setup", &["serve", "project", "config", "completions", "man", "demo", "version", "help"]),
];

/// The widest help.
const MAX_COLUMNS: usize = 100;

/// Parses the command line of the process.
pub(crate) fn parse(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let error = match Arguments::command().try_get_matches_from(words) {
        Ok(matches) => return Ok(matches),
        Err(error) => error,
    };
    if let Some(prompt) = prompt_of(&error)
        && let Some(at) = words.iter().position(|word| *word == *prompt)
    {
        let mut with_run = words.to_vec();
        with_run.insert(at, "run".into());
        match Arguments::command().try_get_matches_from(&with_run) {
            // It was the argument of a command.
            Err(second) if second.kind() == ErrorKind::InvalidSubcommand => {}
            parsed => return parsed,
        }
    }
    Err(with_harmless_hints(error, words))
}

/// The unknown word of a command line, if it can be a prompt.
fn prompt_of(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if word.trim().contains(char::is_whitespace) => Some(word.clone()),
        _ => None,
    }
}

/// The error without destructive suggestions, and with a hint how to send a prompt.
fn with_harmless_hints(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
        let harmless = match error.remove(kind) {
            Some(ContextValue::String(one)) => Some(one).filter(is_harmless).map(ContextValue::String),
            Some(ContextValue::Strings(several)) => {
                let several: Vec<String> = several.into_iter().filter(is_harmless).collect();
                (!several.is_empty()).then_some(ContextValue::Strings(several))
            }
            other => other,
        };
        if let Some(harmless) = harmless {
            error.insert(kind, harmless);
        }
    }
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => return error,
    };
    let Some(at) = words.iter().position(|word| *word == *unknown) else { return error };
    // Several words without quotes look like a prompt.
    if words[1..at].iter().all(|word| word.to_string_lossy().starts_with('-')) && words.len() > at + 1 {
        let tip = "a prompt is one argument: write it in quotes, or use `retake run`".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

#[expect(clippy::ptr_arg, reason = "a filter of strings passes references to them")]
fn is_harmless(suggestion: &String) -> bool {
    !DESTRUCTIVE.contains(&suggestion.as_str())
}

/// The text of a request for help; that of the program itself has its commands in groups.
pub(crate) fn help(error: &clap::Error) -> StyledStr {
    let rendered = error.render();
    let plain = rendered.to_string();
    let mut whole = Arguments::command();
    for (text, is_long) in
        [(whole.render_long_help().to_string(), true), (whole.render_help().to_string(), false)]
    {
        if plain == text {
            let mut grouped = grouped(Arguments::command(), columns());
            return if is_long { grouped.render_long_help() } else { grouped.render_help() };
        }
    }
    rendered
}

fn columns() -> usize {
    let columns = terminal_size::terminal_size().map_or(MAX_COLUMNS, |(width, _)| width.0.into());
    columns.clamp(20, MAX_COLUMNS)
}

/// The command with a template that lists its commands in groups.
fn grouped(mut command: Command, columns: usize) -> Command {
    command.build();
    let entries: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .map(|below| {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = below.get_visible_aliases().collect();
            let aliases =
                if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
            (below.get_name().to_owned(), format!("{about}{aliases}"))
        })
        .collect();
    let rest: Vec<&str> = entries
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| GROUPS.iter().all(|(_, names)| !names.contains(name)))
        .collect();
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let (heading, literal) = (*command.get_styles().get_header(), *command.get_styles().get_literal());
    // Writing to a text cannot fail.
    let mut text = String::new();
    for (title, names) in GROUPS.iter().copied().chain([("More", rest.as_slice())]) {
        let listed: Vec<&(String, String)> =
            names.iter().filter_map(|name| entries.iter().find(|(known, _)| known == name)).collect();
        if listed.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{heading}{title}:{heading:#}");
        for (name, about) in listed {
            let indent = " ".repeat(width + 4);
            let gap = &indent[name.len() + 2..];
            let lines = wrap(about, columns.saturating_sub(width + 4).max(16)).join(&format!("\n{indent}"));
            let _ = writeln!(text, "  {literal}{name}{literal:#}{gap}{lines}");
        }
        text.push('\n');
    }
    let hidden: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    for name in hidden {
        command = command.mut_subcommand(name, |below| below.hide(true));
    }
    // Braces would be tags of the template.
    let text = text.replace(['{', '}'], "");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{{all-args}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<ArgMatches, clap::Error> {
        let words: Vec<OsString> = [&["retake"], line].concat().iter().map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn one_word_with_a_space_is_a_prompt() {
        for (line, expected) in [
            (&["Fix the login"][..], Some("run")),
            (&["--json", "Fix the login", "--model", "offline"], Some("run")),
            (&["-c", "Fix the login"], Some("run")),
            (&["-C", "/tmp", "Fix the login"], Some("run")),
            (&["undo"], Some("undo")),
            (&[], None),
        ] {
            let matches = parsed(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            assert_eq!(matches.subcommand_name(), expected, "{line:?}");
        }
        for line in [
            &["undi"][..],
            &["fix"],
            &["fix "],
            &["fix", "the", "login"],
            &["take", "delete the second"],
            &["--resume", "a", "b c"],
            &["Fix the login", "--no-such-option"],
        ] {
            let shown = parsed(line).map(|matches| matches.subcommand_name().map(str::to_owned));
            assert!(
                shown.is_err()
                    || shown
                        .as_ref()
                        .is_ok_and(|name| name.as_deref() == Some("run") && line[0] == "--resume"),
                "{line:?}: {shown:?}"
            );
        }
    }

    #[test]
    fn hints_never_suggest_something_destructive() {
        let shown = |line: &[&str]| parsed(line).expect_err("a typo").render().to_string();
        assert!(shown(&["undi"]).contains("'undo'"), "{}", shown(&["undi"]));
        assert!(shown(&["fix", "the", "login"]).contains("in quotes"));
        let mut tried = 0;
        let mut waiting = vec![(Vec::new(), Arguments::command())];
        while let Some((path, command)) = waiting.pop() {
            for below in command.get_subcommands() {
                let mut path: Vec<String> = path.clone();
                path.push(below.get_name().to_owned());
                waiting.push((path, below.clone()));
            }
            let words = DESTRUCTIVE.iter().flat_map(|word| {
                [format!("{word}e"), word[..word.len() - 1].to_owned(), word.replacen('e', "", 1)]
            });
            for typo in words {
                let mut line: Vec<&str> = path.iter().map(String::as_str).collect();
                line.push(&typo);
                let Err(error) = parsed(&line) else { continue };
                let error = error.render().to_string();
                let tips = error.lines().filter(|line| line.contains("tip:") || line.contains("similar"));
                for tip in tips {
                    tried += 1;
                    let named = DESTRUCTIVE.iter().any(|word| tip.contains(&format!("'{word}'")));
                    assert!(!named, "{line:?}: {tip}");
                }
            }
        }
        assert!(tried > 5, "the control: other suggestions are made, {tried}");
    }

    #[test]
    fn every_command_is_in_one_group_and_lines_fit() {
        let mut names: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a command is in two groups");
        let mut command = Arguments::command();
        command.build();
        for name in names {
            assert!(command.find_subcommand(name).is_some(), "{name} is no command");
        }
        for columns in [40, 80, 100] {
            let text = grouped(Arguments::command(), columns).render_help().to_string();
            let list = text.split("Options:").next().expect("a list");
            for line in list.lines().filter(|line| line.starts_with("  ")) {
                assert!(crate::ui::width::width(line) <= columns, "{columns}: {line}");
            }
            for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
                let entry = format!("\n  {} ", below.get_name());
                assert_eq!(list.matches(&entry).count(), 1, "{entry} in {list}");
            }
        }
    }
}
