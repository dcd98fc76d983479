//! Targeted steps at the edges of commands: folders that are refused, the last thread, forged exports, short ids, empty
//! takes and presets.

use std::io::Cursor;

use retake_store::{DeletedFilter, ThreadFilter};
use retake_timeline::{ImportMode, Rules, Timeline};
use retake_workspace::folder::path_to_text;
use serde_json::{Value, json};

use super::mistake::ProgramFault;
use super::world::{CommandLine, StepError, World};

/// The home folder of the world, and the root of the system.
const REFUSED: [&str; 2] = ["..", "/"];

impl World {
    pub(super) fn edge(&mut self) -> Result<(), StepError> {
        // A control needs the step that shows its fault.
        let chosen = self.mistake.and_then(ProgramFault::edge);
        match chosen.unwrap_or_else(|| self.rng.below(5)) {
            0 => self.refused_folder(),
            1 => self.last_threads(),
            2 => self.forged_export(),
            3 => self.short_ids(),
            _ => self.preset(),
        }
    }

    /// Commands that need a project are refused in the home folder and in `/`, and register nothing.
    fn refused_folder(&mut self) -> Result<(), StepError> {
        let lines: [&[&str]; 5] = [
            &["run", "--approve", "all", "create astray with x"],
            &["thread", "new", "Astray"],
            &["exec", "--", "true"],
            &["project", "init"],
            &["snapshot", "take"],
        ];
        let (place, arguments) = (REFUSED[self.rng.index(2)], lines[self.rng.index(lines.len())]);
        self.run(&CommandLine { must_fail: true, ..CommandLine::new(place, arguments) })?;
        // The folders below stay usable.
        let project = self.some_project();
        let ran = self.run(&CommandLine { reads: true, ..CommandLine::new(project, &["thread", "list"]) })?;
        if ran.succeeded() {
            Ok(())
        } else {
            Err(StepError::Broken(format!("{project}: {}", ran.output.errors)))
        }
    }

    /// A deleted thread comes back with `undo`, another one is current meanwhile, and the last one is not deleted.
    fn last_threads(&mut self) -> Result<(), StepError> {
        let project = self.some_project();
        let list = |this: &mut Self| -> Result<Value, StepError> {
            let line = CommandLine { reads: true, ..CommandLine::new(project, &["thread", "list"]) };
            Ok(this.run(&line)?.output.answer)
        };
        let before = list(self)?;
        let mut left = before["threads"].as_array().map_or(0, Vec::len);
        let mut deleted = Vec::new();
        loop {
            let found = list(self)?;
            let current = found["current"].as_str().or(found["threads"][0]["id"].as_str());
            let current = current.unwrap_or_default().to_owned();
            let line = CommandLine::new(project, &["thread", "delete", &current]);
            if left == 1 {
                self.run(&CommandLine { must_fail: true, ..line })?;
                break;
            }
            // A thread with a worktree is refused, which changes nothing.
            if !self.run(&line)?.succeeded() {
                break;
            }
            left -= 1;
            deleted.push(current.clone());
            let now = list(self)?["current"].clone();
            if now.is_null() || now == current.as_str() {
                return Err(StepError::Broken(format!(
                    "the current thread is {now} after {current} was deleted"
                )));
            }
        }
        for thread in deleted.iter().rev() {
            let undone = self.run(&CommandLine::new(project, &["undo", "-t", thread]))?;
            if !undone.succeeded() {
                let restored = self.run(&CommandLine::new(project, &["thread", "restore", thread]))?;
                if !restored.succeeded() {
                    let errors = restored.output.errors;
                    return Err(StepError::Broken(format!("{thread} does not come back: {errors}")));
                }
            }
            self.run(&CommandLine::new(project, &["thread", "switch", thread]))?;
        }
        let ids = |list: &Value| {
            let threads = list["threads"].as_array().cloned().unwrap_or_default();
            let mut ids: Vec<String> = threads.iter().map(|thread| thread["id"].to_string()).collect();
            ids.sort();
            ids
        };
        let after = list(self)?;
        let same = ids(&before) == ids(&after) && before["current"] == after["current"];
        if same {
            Ok(())
        } else {
            Err(StepError::Broken(format!("threads before: {before}, after: {after}")))
        }
    }

    /// An export without one of its lines is refused by another store, which stays empty.
    fn forged_export(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let name = format!("../../export-{}", self.number());
        let line = CommandLine::new(&thread.project, &["export", &thread.title, "-o", &name]);
        let ran = self.run(&line)?;
        if !ran.succeeded() {
            return Err(StepError::Broken(format!("no export of {}: {}", thread.title, ran.output.errors)));
        }
        let path = self.folder(&thread.project).join(&name);
        let text = std::fs::read_to_string(&path)?;
        std::fs::remove_file(&path)?;
        self.observed = self.observe()?;
        let mut lines: Vec<&str> = text.lines().collect();
        let removed = self.rng.index(lines.len());
        let gone = lines.remove(removed);
        self.script.push(format!("# The same export without line {}.", removed + 1));
        let scratch = crate::scratch::ScratchDir::for_files()?;
        let (store, folder) = (scratch.path().join("store"), scratch.path().join("project"));
        std::fs::create_dir(&folder)?;
        let timeline = Timeline::open(&store, Rules::default())?;
        let project = timeline.project(&folder)?.id;
        let text = if self.mistake == Some(ProgramFault::CompletesImports) {
            text.clone()
        } else {
            lines.join("\n")
        };
        let imported = timeline.import(Cursor::new(text.into_bytes()), project, ImportMode::Same, |_, _| ());
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let found = timeline.read()?.threads(&filter)?.len();
        self.summary.forgeries += 1;
        if imported.is_err() && found == 0 {
            return Ok(());
        }
        let (start, place) = (gone.chars().take(80).collect::<String>(), path_to_text(&store));
        Err(StepError::Broken(format!("an export without the line {start:?} was imported into {place}")))
    }

    /// Prefixes of ids under four characters are refused, and a take without entries gets its first one by position.
    fn short_ids(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let length = 1 + self.rng.index(3);
        let prefix = &thread.id[..length];
        let lines: [&[&str]; 3] = [
            &["thread", "switch", prefix],
            &["thread", "rename", "astray", "-t", prefix],
            &["undo", "-t", prefix],
        ];
        let line = CommandLine::new(&thread.project, lines[self.rng.index(lines.len())]);
        self.run(&CommandLine { must_fail: true, ..line })?;
        self.new_thread(&thread.project)?;
        let empty = self.threads.last().map(|new| new.title.clone()).unwrap_or_default();
        let ran =
            self.run(&CommandLine::new(&thread.project, &["entry", "insert", "1", "first", "-t", &empty]))?;
        if ran.succeeded() {
            return Ok(());
        }
        Err(StepError::Broken(format!("no first entry in {empty}: {}", ran.output.errors)))
    }

    /// A preset that is saved, changed and loaded brings back its files, and one that was deleted is gone.
    fn preset(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let (place, title) = (thread.project.clone(), thread.title.clone());
        let name = format!("preset-{}", self.number());
        let mut run =
            |arguments: &[&str]| self.run(&CommandLine::new(&place, arguments).with(&["-t", &title]));
        run(&["context", "add", "f0"])?;
        let files = run(&["context", "list"])?.output.answer["files"].clone();
        if !run(&["context", "preset", "save", &name])?.succeeded() || files == json!([]) {
            return Ok(());
        }
        run(&["context", "remove", "f0"])?;
        let loaded = run(&["context", "preset", "load", &name])?;
        let now = run(&["context", "list"])?.output.answer["files"].clone();
        let deleted = run(&["context", "preset", "delete", &name])?;
        let again = CommandLine::new(&place, &["context", "preset", "load", &name, "-t", &title]);
        self.run(&CommandLine { must_fail: true, ..again })?;
        self.summary.presets += 1;
        if loaded.succeeded() && deleted.succeeded() && files == now {
            return Ok(());
        }
        Err(StepError::Broken(format!("preset {name}: saved {files}, loaded {now}")))
    }
}
