//! Undo, redo, jump, restore and take commands, with and without a preview.

use super::report::{aside, reported};
use super::steps::Target;
use super::world::{CommandLine, CommandRun, StepError, World};

impl World {
    pub(super) fn random_move(&mut self) -> Result<(), StepError> {
        let target = self.target();
        let count = (1 + self.rng.below(3)).to_string();
        let version = (1 + self.rng.below(25)).to_string();
        match self.rng.below(12) {
            0..=4 => {
                let line = self.with_file_options(target.line(&["undo", &count]));
                let line = self.in_some_take(&target, line);
                let folder = line.may_change.clone().unwrap_or_default();
                self.undo(&line, &folder)
            }
            5 | 6 => {
                let line = self.with_file_options(target.line(&["redo", &count]));
                self.previewed(&line).map(drop)
            }
            7 if self.rng.once_in(2) => self.journey(&target, &version),
            7 => {
                let line = self.with_file_options(target.line(&["jump", &version]));
                self.previewed(&line).map(drop)
            }
            8 => {
                let path = self.rng.pick(&["f0", "d", "run.sh", ".gitignore"]).copied().unwrap_or("f0");
                // A path is relative to the current folder if that is inside the thread's.
                let paths: &[&str] = if self.rng.once_in(2) { &[] } else { &[path] };
                let line = target.line(&[&["restore", version.as_str()], paths].concat());
                self.previewed(&line).map(drop)
            }
            9 => self.switch(),
            _ => self.split(),
        }
    }

    /// Runs an undo, with or without a preview, and checks it.
    pub(super) fn undo(&mut self, line: &CommandLine, folder: &str) -> Result<(), StepError> {
        let ran = self.previewed(line)?;
        if ran.succeeded() { self.check_undo(line, &ran, folder) } else { Ok(()) }
    }

    fn with_file_options(&mut self, line: CommandLine) -> CommandLine {
        let is_undo = line.has("undo");
        match self.rng.below(12) {
            0 if is_undo => line.with(&["--step"]),
            1 if is_undo => line.with(&["--shared"]),
            2 => line.with(&["--files"]),
            3 => line.with(&["--conversation"]),
            4 => line.with(&["--conflicts", "take"]),
            5 => line.with(&["--conflicts", "mark"]),
            _ => line,
        }
    }

    /// Sometimes runs the command in a named take, whose files are in its worktree or in the project's folder.
    fn in_some_take(&mut self, target: &Target, line: CommandLine) -> CommandLine {
        let thread =
            self.threads.iter().find(|thread| Some(&thread.title) == target.thread.as_ref()).cloned();
        let Some(thread) = thread.filter(|_| self.rng.once_in(5)) else { return line };
        let Some(take) = self.rng.pick(&thread.takes).cloned() else { return line };
        let mut worktrees = self.worktrees.iter();
        let worktree = worktrees.find(|worktree| worktree.thread == thread.title && worktree.take == take);
        let folder = worktree.map_or(thread.project, |worktree| worktree.folder.clone());
        line.with(&["-k", &take]).changing(&folder)
    }

    fn switch(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let Some(take) = self.rng.pick(&thread.takes).cloned() else { return Ok(()) };
        let place = if self.rng.once_in(2) { thread.project.as_str() } else { "e" };
        let line = CommandLine::new(place, &["take", "switch", &take, "-t", &thread.title])
            .changing(&thread.project);
        self.previewed(&line).map(drop)
    }

    fn split(&mut self) -> Result<(), StepError> {
        let (target, name) = (self.target(), format!("take-{}", self.number()));
        let verb = if self.rng.once_in(2) { "branch" } else { "fork" };
        let mut line = target.line(&["take", verb]);
        if verb == "fork" || self.rng.once_in(2) {
            let entry = (1 + self.rng.below(3)).to_string();
            line = line.with(&[entry.as_str()]);
        }
        line = line.with(&["--name", &name]);
        if target.is_worktree {
            line.may_change = None;
        }
        let ran = self.previewed(&line)?;
        if ran.succeeded() {
            self.add_take(&ran, &name);
        }
        Ok(())
    }

    pub(super) fn add_take(&mut self, ran: &CommandRun, name: &str) {
        let id = ran.output.answer["thread"].as_str();
        if let Some(thread) = self.threads.iter_mut().find(|thread| Some(thread.id.as_str()) == id) {
            thread.takes.push(name.to_owned());
        }
    }

    /// Runs a command, half of the time after a dry run, which must predict it exactly.
    pub(super) fn previewed(&mut self, line: &CommandLine) -> Result<CommandRun, StepError> {
        if self.rng.once_in(2) {
            return self.run(line);
        }
        let dry = self.run(&line.clone().with(&["--dry-run"]))?;
        let real = self.run(line)?;
        self.summary.previews += 1;
        let preview = &dry.output.answer["preview"];
        let names_shared = !preview["shared"].is_null() && !line.has("--shared");
        if dry.succeeded() && !real.succeeded() && names_shared {
            return Ok(real);
        }
        if dry.succeeded() != real.succeeded() {
            return Err(StepError::Broken(format!(
                "the dry run and the command disagree: {:?} {} and {:?} {}",
                dry.output.code,
                dry.output.errors.trim(),
                real.output.code,
                real.output.errors.trim()
            )));
        }
        let (preview, did) = (reported(&dry.output.answer), reported(&real.output.answer));
        if real.succeeded() && preview.clone().unwrap_or_default() != did.clone().unwrap_or_default() {
            return Err(StepError::Broken(format!("the dry run said {preview:?}, and the command {did:?}")));
        }
        let (previewed, did) = (aside(&dry.output.answer), aside(&real.output.answer));
        if real.succeeded() && previewed != did {
            return Err(StepError::Broken(format!(
                "the dry run moved {previewed:?} aside, and the command {did:?}"
            )));
        }
        Ok(real)
    }
}
