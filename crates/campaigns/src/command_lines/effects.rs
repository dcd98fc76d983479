//! Expected results of an undo, derived from the changes that `exec` made.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::check::is_protected;
use super::observe::{Kind, Node, Tree, differences};
use super::report::{aside, reported, undone};
use super::world::{CommandLine, CommandRun, MAX_CAPTURED_BYTES, StepError, World};

/// The files of a folder before and after one program.
#[derive(Clone, Debug)]
pub(super) struct FileEffect {
    folder: String,
    before: Tree,
    after: Tree,
}

impl FileEffect {
    fn paths(&self) -> BTreeSet<PathBuf> {
        differences(&self.before, &self.after).into_iter().map(Path::to_owned).collect()
    }
}

/// Operations without files.
const WITHOUT_FILES: [&str; 6] =
    ["entries_added", "draft_set", "renamed", "tags_set", "settings_changed", "entry_edited"];

impl World {
    /// Records the changes of a program that ran alone under `exec`.
    pub(super) fn remember(&mut self, ran: &CommandRun, folder: &str) {
        let done = &ran.output.answer["operation"];
        if let (Some(thread), Some(version)) = (done["thread"].as_str(), done["version"].as_u64()) {
            let (before, after) = ran.folder(folder);
            let effect = FileEffect { folder: folder.to_owned(), before, after };
            self.effects.insert((thread.to_owned(), version), effect);
        }
    }

    /// The answer of `exec` must name every captured file or link that the program wrote or removed.
    pub(super) fn check_exec(ran: &CommandRun, folder: &str) -> Result<(), StepError> {
        let Some(report) = reported(&ran.output.answer) else { return Ok(()) };
        let (before, after) = ran.folder(folder);
        let is_file = |node: Option<&Node>| {
            node.is_some_and(|node| matches!(node.kind, Kind::File(_) | Kind::Link(_))) && is_captured(node)
        };
        let plain = |node: Option<&Node>| node.map(|node| (node.kind.clone(), node.mode & 0o777));
        for path in differences(&before, &after).into_iter().filter(|path| is_known(path)) {
            let (old, new) = (before.get(path), after.get(path));
            let is_captured = is_file(new) || (new.is_none() && is_file(old));
            let is_named = report.iter().any(|reported| reported.path == *path);
            if is_captured && plain(old) != plain(new) && !is_named {
                let what = format!("exec changed {}, and does not report it", path.display());
                return Err(StepError::Broken(what));
            }
        }
        Ok(())
    }

    /// An undo must revert exactly the changes of the undone programs.
    pub(super) fn check_undo(
        &mut self,
        line: &CommandLine,
        ran: &CommandRun,
        folder: &str,
    ) -> Result<(), StepError> {
        let answer = &ran.output.answer;
        let (Some(changes), Some(thread)) = (undone(answer), answer["thread"].as_str()) else {
            return Ok(());
        };
        let known_kind = |kind: &str| kind == "files_changed" || WITHOUT_FILES.contains(&kind);
        if !changes.iter().all(|(_, kind)| known_kind(kind)) {
            return Ok(());
        }
        let (before, after) = ran.folder(folder);
        if !line.has("--shared") {
            let mut made = self.made_during_overlap.iter().filter(|(place, _)| place == folder);
            if let Some((_, path)) =
                made.find(|(_, path)| before.contains_key(path) && !after.contains_key(path))
            {
                let path = path.display();
                return Err(StepError::Broken(format!(
                    "{path}, made while two programs ran, was removed without --shared"
                )));
            }
        }
        if answer["files"].is_null() {
            return Ok(());
        }
        let mut effects = Vec::new();
        for (version, _) in changes.iter().filter(|(_, kind)| kind == "files_changed") {
            match self.effects.get(&(thread.to_owned(), *version)) {
                Some(effect) if effect.folder == folder => effects.push(effect),
                _ => return Ok(()),
            }
        }
        let touched: BTreeSet<PathBuf> = effects.iter().flat_map(|effect| effect.paths()).collect();
        let aside = aside(answer);
        let is_folder = |node: Option<&Node>| node.is_none_or(|node| node.kind == Kind::Folder);
        for path in differences(&before, &after) {
            let folders = is_folder(before.get(path)) && is_folder(after.get(path));
            if !folders && !touched.contains(path) && !aside.contains(path) {
                let path = path.display();
                return Err(StepError::Broken(format!(
                    "{path} changed, although no undone operation had changed it"
                )));
            }
        }
        for path in touched.iter().filter(|path| is_known(path)) {
            if let ExpectedContent::Known(expected) = expected(&effects, path, before.get(path)) {
                compare(ran, path, expected.as_ref(), after.get(path))?;
            }
        }
        self.summary.undone_paths += touched.len() as u64;
        Ok(())
    }
}

/// Whether the result of an undo at this path is predictable: ignored files, version control data and paths behind
/// possible links are not.
fn is_known(path: &Path) -> bool {
    let ignored = path.extension().is_some_and(|extension| extension == "log")
        || (path.starts_with("out") && path != Path::new("out"));
    !ignored && !is_protected(path) && !path.starts_with("d") && !path.starts_with("l")
}

enum ExpectedContent {
    /// Exactly this content, or no file.
    Known(Option<Node>),
    /// Not predictable: the path changed in between, or its content was not captured.
    Unknown,
}

/// The expected content of a path after undoing these effects, newest first.
fn expected(effects: &[&FileEffect], path: &Path, now: Option<&Node>) -> ExpectedContent {
    let mut expected = now.cloned();
    for effect in effects.iter().filter(|effect| effect.before.get(path) != effect.after.get(path)) {
        // A file that was never captured is unknown to the change that created it.
        let unknown = !effect.before.contains_key(path) && !is_captured(effect.after.get(path));
        if unknown || expected.as_ref() != effect.after.get(path) {
            return ExpectedContent::Unknown;
        }
        expected = effect.before.get(path).cloned();
    }
    // Undoing several steps keeps a file that is no longer captured, and reports it.
    let left = expected.is_none() && !is_captured(now);
    if left || !is_captured(expected.as_ref()) {
        ExpectedContent::Unknown
    } else {
        ExpectedContent::Known(expected)
    }
}

/// Whether the content of a path is in snapshots. A missing file counts as known.
fn is_captured(node: Option<&Node>) -> bool {
    node.is_none_or(|node| match &node.kind {
        Kind::File(bytes) => bytes.len() <= MAX_CAPTURED_BYTES,
        Kind::Link(_) => true,
        Kind::Folder | Kind::Special => false,
    })
}

fn shown(node: Option<&Node>) -> String {
    match node.map(|node| (&node.kind, node.mode)) {
        None => "nothing".to_owned(),
        Some((Kind::File(bytes), mode)) => {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
            format!("a file {mode:o} of {} bytes {start:?}", bytes.len())
        }
        Some((kind, mode)) => format!("{kind:?} {mode:o}"),
    }
}

fn compare(
    ran: &CommandRun,
    path: &Path,
    expected: Option<&Node>,
    found: Option<&Node>,
) -> Result<(), StepError> {
    let plain = |node: Option<&Node>| node.map(|node| (node.kind.clone(), node.mode & 0o777));
    let report = reported(&ran.output.answer).unwrap_or_default();
    let reported = report.iter().find(|reported| reported.path == path);
    if plain(expected) != plain(found) {
        return Err(StepError::Broken(format!(
            "{} does not have the content from before the undone operations: expected {}, found {}, reported {reported:?}",
            path.display(),
            shown(expected),
            shown(found)
        )));
    }
    let bits = |node: Option<&Node>| node.map_or(0, |node| node.mode & 0o7000);
    if bits(expected) & !bits(found) != 0 && !reported.is_some_and(|reported| reported.note) {
        return Err(StepError::Broken(format!(
            "{} was restored without a special bit, which is not reported",
            path.display()
        )));
    }
    Ok(())
}
