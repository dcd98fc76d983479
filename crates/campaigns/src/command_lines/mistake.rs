//! Programs with an injected fault: the controls.

use std::path::Path;

use serde_json::Value;

use super::observe::Kind;
use super::world::{CommandLine, Output, World};
use crate::violation::BoxError;

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFault {
    /// A command for another project's thread also writes to the current folder.
    WritesWhereItStarted,
    /// A dry run is executed.
    DropsDryRun,
    /// A failed command leaves a file.
    WritesAfterFailure,
    /// A failed command leaves an entry.
    AddsAnEntryAfterFailure,
    /// A preview omits a path.
    ShortensPreview,
    /// A preview omits what is moved aside.
    HidesAside,
    /// The answer of `exec` omits a path.
    ShortensExec,
    /// An undo reverts two steps and reports one.
    UndoesTwice,
    /// An undo skips one file.
    UndoesAllButOneFile,
    /// An undo reverts shared changes without `--shared`.
    UndoesSharedChanges,
    /// A move writes to version control data.
    WritesProtected,
    /// A move clears a setuid bit without reporting it.
    ClearsBits,
    /// Special bits are missing in the list of excluded content.
    HidesBits,
    /// The message of a failed turn contains the key.
    ShowsTheKey,
    /// A new take has no git commit.
    ForgetsTheCommit,
    /// A folder that replaced another one is used.
    UsesAnotherFolder,
    /// An invalid time is written.
    WritesAnyTime,
    /// A jump leads to the version before the requested one.
    JumpsShort,
    /// The home folder becomes a project.
    AcceptsTheHomeFolder,
    /// After a deletion no thread is current.
    SelectsNoThread,
    /// An incomplete export is imported.
    CompletesImports,
    /// A prefix of one to three characters names a thread.
    AcceptsShortIds,
    /// A preset loses its files.
    EmptiesPresets,
}

impl ProgramFault {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::WritesWhereItStarted,
        Self::DropsDryRun,
        Self::WritesAfterFailure,
        Self::AddsAnEntryAfterFailure,
        Self::ShortensPreview,
        Self::HidesAside,
        Self::ShortensExec,
        Self::UndoesTwice,
        Self::UndoesAllButOneFile,
        Self::UndoesSharedChanges,
        Self::WritesProtected,
        Self::ClearsBits,
        Self::HidesBits,
        Self::ShowsTheKey,
        Self::ForgetsTheCommit,
        Self::UsesAnotherFolder,
        Self::WritesAnyTime,
        Self::JumpsShort,
        Self::AcceptsTheHomeFolder,
        Self::SelectsNoThread,
        Self::CompletesImports,
        Self::AcceptsShortIds,
        Self::EmptiesPresets,
    ];

    /// The number of the step at the edges of commands that shows the fault.
    pub(super) fn edge(self) -> Option<u64> {
        match self {
            Self::AcceptsTheHomeFolder => Some(0),
            Self::SelectsNoThread => Some(1),
            Self::CompletesImports => Some(2),
            Self::AcceptsShortIds => Some(3),
            Self::EmptiesPresets => Some(4),
            _ => None,
        }
    }

    /// The arguments that are really passed.
    pub(super) fn arguments(self, line: &CommandLine) -> Vec<String> {
        let mut arguments = line.arguments.clone();
        let is_undo = arguments.first().is_some_and(|first| first == "undo");
        match self {
            Self::DropsDryRun => arguments.retain(|argument| argument != "--dry-run"),
            Self::UndoesSharedChanges if is_undo && !line.has("--shared") => {
                arguments.push("--shared".into());
            }
            _ => {}
        }
        arguments
    }
}

impl World {
    /// Applies the fault to the world or to the output.
    pub(super) fn apply_fault(&mut self, line: &CommandLine, output: &mut Output) -> Result<(), BoxError> {
        let Some(mistake) = self.mistake else { return Ok(()) };
        let failed = output.code != Some(0);
        let moved = line.is_move() && !failed && !line.is_dry();
        let folder = line.may_change.clone().unwrap_or_else(|| line.place.clone());
        let elsewhere = line.may_change.as_ref().is_some_and(|name| *name != line.place);
        let is_undo = line.arguments.first().is_some_and(|first| first == "undo");
        let gone = self.observed.folders.keys().any(|name| name.ends_with("-away"));
        match mistake {
            ProgramFault::WritesWhereItStarted if elsewhere && !failed && !line.is_dry() => {
                self.run_unrecorded(&line.place, "echo astray > astray")
            }
            ProgramFault::WritesAfterFailure if failed && !line.is_dry() => {
                self.run_unrecorded(&folder, "echo astray > astray")
            }
            ProgramFault::AddsAnEntryAfterFailure if failed && !line.is_dry() => {
                self.execute("a", &["entry".into(), "add".into(), "astray".into()]).map(drop)
            }
            ProgramFault::ShortensPreview if line.is_dry() => {
                paths_of(output).map(Vec::pop);
                Ok(())
            }
            ProgramFault::HidesAside if line.is_dry() => {
                if let Some(files) = output.answer["files"].as_object_mut() {
                    files.remove("aside");
                }
                Ok(())
            }
            ProgramFault::ShortensExec if line.is_exec() => {
                paths_of(output).map(Vec::pop);
                Ok(())
            }
            ProgramFault::UndoesTwice if moved && is_undo => {
                self.execute(&line.place, &line.arguments).map(drop)
            }
            ProgramFault::UndoesAllButOneFile if is_undo && !failed => {
                self.leave_one_file(line, &folder, output)
            }
            ProgramFault::WritesProtected if moved => {
                self.run_unrecorded(&folder, "mkdir -p .Git/refs && echo astray > .Git/refs/astray")
            }
            ProgramFault::ClearsBits if moved => {
                for path in paths_of(output).into_iter().flatten() {
                    path["note"] = Value::Null;
                }
                self.run_unrecorded(&folder, "find . -perm /7000 -exec chmod 755 {} +")
            }
            ProgramFault::UsesAnotherFolder if line.must_fail && gone => {
                output.code = Some(0);
                Ok(())
            }
            ProgramFault::AcceptsTheHomeFolder if line.must_fail && line.place == ".." => {
                output.code = Some(0);
                Ok(())
            }
            ProgramFault::AcceptsShortIds
                if line.must_fail && line.arguments.iter().any(|text| text.len() < 4) =>
            {
                output.code = Some(0);
                Ok(())
            }
            ProgramFault::SelectsNoThread if output.answer.get("threads").is_some() => {
                output.answer["current"] = Value::Null;
                Ok(())
            }
            ProgramFault::EmptiesPresets
                if !failed && line.arguments.get(1).is_some_and(|word| word == "preset") =>
            {
                let clear = ["context".to_owned(), "remove".to_owned(), "f0".to_owned()];
                let title = line.arguments.iter().skip_while(|argument| *argument != "-t").cloned();
                self.execute(&line.place, &clear.into_iter().chain(title).collect::<Vec<_>>()).map(drop)
            }
            ProgramFault::ShowsTheKey => {
                if let Some(key) = &self.key {
                    output.errors.push_str(key);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Restores the last file of an undo, and removes it from the answer and the preview.
    fn leave_one_file(&self, line: &CommandLine, folder: &str, output: &mut Output) -> Result<(), BoxError> {
        let Some(path) = paths_of(output).and_then(Vec::pop) else { return Ok(()) };
        if line.is_dry() {
            return Ok(());
        }
        let name = path["path"].as_str().unwrap_or_default();
        let place = self.folder(folder).join(name);
        let before = self.observed.folders.get(folder).and_then(|tree| tree.get(Path::new(name)));
        match before.map(|node| &node.kind) {
            Some(Kind::File(bytes)) => Ok(std::fs::write(place, bytes)?),
            None if place.is_file() => Ok(std::fs::remove_file(place)?),
            _ => Ok(()),
        }
    }
}

fn paths_of(output: &mut Output) -> Option<&mut Vec<Value>> {
    output.answer["files"]["paths"].as_array_mut()
}
