//! Completion in the chat: commands with their arguments, and files to attach.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::WalkBuilder;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::input::{COMMANDS, as_command};
use crate::completion::{Candidate, complete, split};
use crate::ui::width;

/// How many files are offered, and how many are looked at to find a name in other folders.
const MAX_FILES: usize = 100;
const MAX_SEARCHED: usize = 20_000;

/// Columns of a candidate with its description.
const COLUMNS: usize = 76;

pub(super) struct Suggestions {
    folder: PathBuf,
    /// The thread whose takes and entries are completed.
    pub(super) thread: Option<String>,
    /// Whether the next completion replaces a backslash at the end by a line break.
    pub(super) line_break: Arc<AtomicBool>,
}

impl Suggestions {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), thread: None, line_break: Arc::default() }
    }

    /// Completes a line that starts with a slash.
    fn command(&self, line: &str) -> (usize, Vec<Pair>) {
        let Some((start, mut words)) = split(&line[1..]) else { return (0, Vec::new()) };
        let start = start + 1;
        if words.len() == 1 {
            let typed = format!("/{}", words[0]);
            let own = COMMANDS.iter().filter(|(name, _)| name.starts_with(&typed)).map(|(name, help)| {
                let name = name.split(' ').next().unwrap_or_default();
                Candidate { value: name[1..].to_owned(), help: (*help).to_owned() }
            });
            let mut found: Vec<Candidate> = own.collect();
            // All commands of Retake would fill the screen: they appear once their first letter is typed.
            let others = if words[0].is_empty() { Vec::new() } else { complete(&words, &self.folder, None) };
            for candidate in others {
                if !candidate.value.starts_with('-')
                    && found.iter().all(|known| known.value != candidate.value)
                {
                    found.push(candidate);
                }
            }
            return (start, found.iter().map(pair).collect());
        }
        match (words[0].as_str(), words.len()) {
            ("model", 2) => {
                words.splice(..1, ["run".to_owned(), "--model".to_owned()]);
            }
            ("approve" | "approval", 2) => {
                words.splice(..1, ["run".to_owned(), "--approve".to_owned()]);
            }
            ("takes" | "threads", _) => {}
            _ => words = as_command(words),
        }
        let found = complete(&words, &self.folder, self.thread.as_deref());
        let quoted = found.into_iter().map(|candidate| {
            let Candidate { value, help } = candidate;
            Candidate { value: shell_words::quote(&value).into_owned(), help }
        });
        (start, quoted.map(|candidate| pair(&candidate)).collect())
    }

    /// The files whose path starts with the typed text; if there are none, those with such a name anywhere below.
    fn files(&self, typed: &str) -> Vec<String> {
        let (parent, name) = typed.rsplit_once('/').map_or(("", typed), |(parent, name)| (parent, name));
        let base = self.folder.join(parent);
        let prefix = if typed.contains('/') { format!("{parent}/") } else { String::new() };
        let mut found: Vec<String> = walk(&base, name, Some(1))
            .filter(|(path, _)| path.starts_with(name))
            .map(|(path, is_folder)| format!("{prefix}{path}{}", if is_folder { "/" } else { "" }))
            .take(MAX_FILES)
            .collect();
        if found.is_empty() && !typed.is_empty() && !typed.contains('/') {
            let named = |path: &str| path.rsplit('/').next().is_some_and(|last| last.starts_with(name));
            found = walk(&self.folder, name, None)
                .take(MAX_SEARCHED)
                .filter(|(path, is_folder)| !is_folder && named(path))
                .map(|(path, _)| path)
                .take(MAX_FILES)
                .collect();
        }
        found.sort();
        found
    }
}

/// The paths below a folder that git would not ignore, and whether each is a folder. Hidden ones are offered to those
/// who type a dot.
fn walk(folder: &Path, name: &str, depth: Option<usize>) -> impl Iterator<Item = (String, bool)> {
    let mut walk = WalkBuilder::new(folder);
    walk.max_depth(depth)
        .hidden(!name.starts_with('.'))
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git");
    let folder = folder.to_owned();
    walk.build().flatten().filter_map(move |entry| {
        let path = entry.path().strip_prefix(&folder).ok()?.to_str()?;
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        (!path.is_empty() && !path.contains(char::is_control)).then(|| (path.to_owned(), is_folder))
    })
}

fn pair(candidate: &Candidate) -> Pair {
    let Candidate { value, help } = candidate;
    let display = if help.is_empty() { value.clone() } else { format!("{value:<16}  {help}") };
    Pair { display: width::truncate(&display, COLUMNS), replacement: value.clone() }
}

impl Completer for Suggestions {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if self.line_break.swap(false, Ordering::Relaxed) {
            let line_break = Pair { display: String::new(), replacement: "\n".to_owned() };
            return Ok((position.saturating_sub(1), vec![line_break]));
        }
        let before = &line[..position];
        if before.starts_with('/') {
            return Ok(self.command(before));
        }
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let Some(typed) = before[start..].strip_prefix('@') else { return Ok((position, Vec::new())) };
        let file = |path: String| {
            let mention =
                if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") };
            Pair { display: path, replacement: mention }
        };
        Ok((start, self.files(typed).into_iter().map(file).collect()))
    }
}

impl Hinter for Suggestions {
    type Hint = String;
}

impl Highlighter for Suggestions {}
impl Validator for Suggestions {}
impl Helper for Suggestions {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_offered_as_git_sees_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("our folder");
            std::fs::write(path, "x").expect("our folder");
        };
        for path in ["src/main.rs", "src/a b.rs", "target/main.o", ".env", ".git/config", "notes.md"] {
            write(path);
        }
        std::fs::write(folder.path().join(".gitignore"), "target\n").expect("our folder");
        let suggestions = Suggestions::new(folder.path());
        for (typed, expected) in [
            ("", &["notes.md", "src/"][..]),
            ("no", &["notes.md"]),
            ("src/", &["src/a b.rs", "src/main.rs"]),
            ("src/m", &["src/main.rs"]),
            ("main", &["src/main.rs"]),
            ("tar", &[]),
            (".e", &[".env"]),
            (".gi", &[".gitignore"]),
            ("nothing", &[]),
        ] {
            assert_eq!(suggestions.files(typed), expected, "{typed:?}");
        }
    }
}
