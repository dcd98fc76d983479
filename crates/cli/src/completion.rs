//! Completion of command lines from the commands' definitions and the store, for shells and for `retake chat`.
//!
//! ```text
//!   words so far ──► clap's engine ──► commands, options, fixed values, paths
//!                         │
//!                         └──► sources, by the name of an argument: threads, takes, entries, models, … of the store
//! ```
//!
//! Completion reads the store and never creates or changes one. A store that cannot be read has no candidates.

mod source;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::arguments::Arguments;
use source::{Source, StoreReader};

/// A possible value of the word at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) value: String,
    pub(crate) help: String,
}

/// Completes the last of these words, which follow the program's name. `thread` is the current thread, if it is not
/// that of the project.
pub(crate) fn complete(words: &[String], folder: &Path, thread: Option<&str>) -> Vec<Candidate> {
    let reader = StoreReader::new(words, folder, thread);
    let mut command = with_sources(Arguments::command(), "", &reader);
    let line: Vec<OsString> =
        [OsString::from("retake")].into_iter().chain(words.iter().map(OsString::from)).collect();
    let last = line.len() - 1;
    let found = clap_complete::engine::complete(&mut command, line, last, Some(folder)).unwrap_or_default();
    let mut candidates: Vec<Candidate> = Vec::new();
    // Options are offered to those who type a hyphen, or where there is nothing else.
    let is_option =
        |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    let only_options =
        words.last().is_some_and(|typed| typed.starts_with('-')) || found.iter().all(is_option);
    for candidate in found.iter().filter(|candidate| only_options || !is_option(candidate)) {
        // A name that is not text, or would act on the terminal, has to be typed.
        let Some(value) = candidate.get_value().to_str().filter(|value| !value.contains(char::is_control))
        else {
            continue;
        };
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default().to_owned();
        if candidates.iter().all(|known| known.value != value) {
            candidates.push(Candidate { value: value.to_owned(), help });
        }
    }
    candidates
}

/// Splits a command line at the cursor into the position of the last word and all words. The last one may have an open
/// quote.
pub(crate) fn split(line: &str) -> Option<(usize, Vec<String>)> {
    let (mut start, mut quote) = (0, None);
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, _) if letter.is_whitespace() => start = at + letter.len_utf8(),
            _ => {}
        }
    }
    let mut words = shell_words::split(&line[..start]).ok()?;
    words.push(line[start..].trim_start_matches(['\'', '"']).to_owned());
    Some((start, words))
}

/// The command with a source for each argument that names something in the store.
fn with_sources(command: Command, path: &str, reader: &StoreReader) -> Command {
    let mut command = command.mut_args(|argument| match source_of(path, &argument) {
        Some(source) => {
            let reader = reader.clone();
            argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
                reader.candidates(source, &typed.to_string_lossy())
            }))
        }
        None => argument,
    });
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(name, |below| with_sources(below, &path, reader));
    }
    command
}

/// The source of an argument's values, by its name in the help.
fn source_of(path: &str, argument: &Arg) -> Option<Source> {
    let id = argument.get_id().as_str();
    let name = argument.get_value_names().and_then(|names| names.first()).map_or(id, |name| name.as_str());
    Some(match (path, name.to_ascii_uppercase().as_str()) {
        ("switch", "TAKE|THREAD") => Source::TakesAndThreads,
        (_, name) if name.starts_with("THREAD") => Source::Threads,
        ("take rename", "OLD") | ("compare", "ONE" | "OTHER") | (_, "TAKE" | "TAKES") => Source::Takes,
        (_, "ENTRY" | "ENTRIES") => Source::Entries,
        (_, "REVISION" | "VERSION|NAME") => Source::Revisions,
        (_, "VERSION") if matches!(id, "at" | "to" | "of") => Source::Revisions,
        (_, "MODEL") => Source::Models,
        (_, "PROVIDER" | "NAME") if id == "provider" => Source::Providers,
        ("settings get" | "settings set" | "settings unset", "NAME") => Source::Settings,
        (_, "KEY") if path.starts_with("config") => Source::Configuration,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every argument with a name of the store, so that a new command does not forget its completion.
    #[test]
    fn arguments_that_name_something_in_the_store_are_completed() {
        let mut waiting = vec![(String::new(), Arguments::command())];
        let mut seen = Vec::new();
        while let Some((path, command)) = waiting.pop() {
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let source = source_of(&path, argument);
                let expected = match id {
                    "thread" | "threads" => !matches!(path.as_str(), "import"),
                    "take" | "takes" | "entry" | "entries" | "model" | "provider" => true,
                    _ => continue,
                };
                assert_eq!(source.is_some(), expected, "retake {path}: {id}");
                seen.push(format!("{path} {id}"));
            }
            for below in command.get_subcommands() {
                waiting.push((format!("{path} {}", below.get_name()).trim().to_owned(), below.clone()));
            }
        }
        assert!(seen.len() > 60, "{seen:?}");
    }

    #[test]
    fn words_are_split_at_the_cursor() {
        for (line, start, words) in [
            ("", 0, &[""][..]),
            ("un", 0, &["un"]),
            ("take switch ", 12, &["take", "switch", ""]),
            ("take switch 'my t", 12, &["take", "switch", "my t"]),
            ("take switch 'my take' -", 22, &["take", "switch", "my take", "-"]),
        ] {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(split(line), Some((start, words)), "{line}");
        }
    }
}
