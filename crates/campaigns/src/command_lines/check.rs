//! Rules for all command lines.

use std::collections::BTreeSet;
use std::path::Path;

use super::observe::{Kind, Observation, Tree, differences};
use super::report::{aside, reported};
use super::world::{CommandLine, CommandRun, StepError};

/// The data folders of version control systems, in any letter case.
const PROTECTED: [&str; 7] = [".git", ".hg", ".svn", ".jj", ".bzr", "cvs", "_darcs"];

/// Exit codes for a damaged store, a failed disk and a panic, which must not occur.
const FORBIDDEN_EXIT_CODES: [i32; 3] = [6, 7, 101];

/// Checks a command. A failed command may have recorded the user's earlier file changes, but nothing else.
pub(super) fn general(
    line: &CommandLine,
    ran: &CommandRun,
    recorded_hand_edits: bool,
) -> Result<(), StepError> {
    let broken = |what: String| {
        Err(StepError::Broken(format!(
            "{what} (exit code {:?}: {})",
            ran.output.code,
            ran.output.errors.trim()
        )))
    };
    // The exit code of `exec` does not tell its own failures apart.
    let damage = [r#""code":"damaged""#, r#""code":"storage""#];
    let panicked = ran.output.errors.contains("panicked at")
        || (line.is_exec() && damage.iter().any(|code| ran.output.errors.contains(code)));
    if panicked || ran.output.code.is_none_or(|code| FORBIDDEN_EXIT_CODES.contains(&code)) {
        return broken("the command panicked, or took something for damage or a failed disk".into());
    }
    if line.must_fail && ran.succeeded() {
        return broken("the command was carried out, and must be refused".into());
    }
    let unchanged = if line.is_dry() {
        Some("a dry run")
    } else if line.reads {
        Some("a command that reads")
    } else if !ran.succeeded() && !line.failure_may_change {
        Some("a command that failed")
    } else {
        None
    };
    if let Some(kind) = unchanged
        && let Some(difference) = difference(&ran.before, &ran.after, recorded_hand_edits && !line.is_dry())
    {
        return broken(format!("{kind} changed {difference}"));
    }
    let names: BTreeSet<&String> = ran.before.folders.keys().chain(ran.after.folders.keys()).collect();
    for name in names {
        let (before, after) = ran.folder(name);
        let may_change = line.may_change.as_ref() == Some(name);
        let appeared = !ran.before.folders.contains_key(name) || !ran.after.folders.contains_key(name);
        if !may_change && (appeared || before != after) {
            let what = differences(&before, &after);
            return broken(format!("the folder {name} changed instead of the requested one: {what:?}"));
        }
        if !line.is_exec() {
            protected(&before, &after).or_else(|what| broken(format!("in the folder {name}, {what}")))?;
        }
        let leftover = after.keys().find(|path| path.to_string_lossy().contains(".retake-tmp"));
        if let Some(leftover) = leftover {
            return broken(format!("the temporary file {} was not removed", leftover.display()));
        }
    }
    if let Some(folder) =
        line.may_change.as_ref().filter(|_| line.is_move() && ran.succeeded() && !line.is_dry())
    {
        moved(ran, folder).or_else(|what| broken(format!("in the folder {folder}, {what}")))?;
    }
    Ok(())
}

/// Describes the first difference of two worlds.
fn difference(before: &Observation, after: &Observation, without_store: bool) -> Option<String> {
    let names: BTreeSet<&String> = before.folders.keys().chain(after.folders.keys()).collect();
    for name in names {
        match (before.folders.get(name), after.folders.get(name)) {
            (Some(was), Some(is)) if was == is => {}
            (Some(was), Some(is)) => return Some(format!("files of {name}: {:?}", differences(was, is))),
            _ => return Some(format!("the folder {name} appeared or disappeared")),
        }
    }
    if without_store { None } else { before.store_difference(after) }
}

/// The data of version control systems must not change.
fn protected(before: &Tree, after: &Tree) -> Result<(), String> {
    let changed = differences(before, after).into_iter().find(|path| is_protected(path));
    changed.map_or(Ok(()), |path| Err(format!("{} belongs to version control and changed", path.display())))
}

/// Whether a path is the data of a version control system, or inside it.
pub(super) fn is_protected(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        PROTECTED.contains(&name.as_str())
    })
}

/// A move must report exactly the files that it changed, and each lost permission bit.
fn moved(ran: &CommandRun, folder: &str) -> Result<(), String> {
    let (before, after) = ran.folder(folder);
    let Some(report) = reported(&ran.output.answer) else {
        let changed = differences(&before, &after);
        return if changed.is_empty() {
            Ok(())
        } else {
            Err(format!("{changed:?} changed without a report"))
        };
    };
    let aside = aside(&ran.output.answer);
    let is_folder = |path: &Path| {
        let kind = |tree: &Tree| tree.get(path).is_none_or(|node| node.kind == Kind::Folder);
        kind(&before) && kind(&after)
    };
    let changed: BTreeSet<&Path> = differences(&before, &after)
        .into_iter()
        .filter(|path| !is_folder(path) && !aside.contains(*path))
        .collect();
    let named: BTreeSet<&Path> = report
        .iter()
        .filter(|path| path.is_change())
        .map(|path| path.path.as_path())
        .filter(|path| !is_folder(path))
        .collect();
    if let Some(path) = changed.difference(&named).next() {
        return Err(format!("{} changed and is not reported", path.display()));
    }
    if let Some(path) = named.difference(&changed).next() {
        return Err(format!("{} is reported as changed, but is unchanged", path.display()));
    }
    for (path, node) in &before {
        let lost = after.get(path).is_some_and(|now| node.mode & 0o7000 & !now.mode != 0);
        let noted = report.iter().any(|reported| reported.path == *path && reported.note);
        if lost && !noted {
            return Err(format!("{} lost a special bit, which is not reported", path.display()));
        }
    }
    Ok(())
}
