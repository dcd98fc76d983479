//! One random step.

use super::scripts::{changes, changes_by_hand};
use super::world::{CommandLine, PLAIN_FOLDERS, PROJECTS, StepError, ThreadRecord, World};

/// Where a command starts, its thread, and the folder of that thread's files.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) place: String,
    /// The named thread; `None` for the current one.
    pub(super) thread: Option<String>,
    pub(super) folder: String,
    pub(super) is_worktree: bool,
}

impl Target {
    /// A command line for this thread that may change its folder.
    pub(super) fn line(&self, arguments: &[&str]) -> CommandLine {
        let line = CommandLine::new(&self.place, arguments).changing(&self.folder);
        match &self.thread {
            Some(title) => line.with(&["-t", title]),
            None => line,
        }
    }

    /// A command line that may only change the conversation.
    fn words(&self, arguments: &[&str]) -> CommandLine {
        CommandLine { may_change: None, ..self.line(arguments) }
    }
}

impl World {
    pub(super) fn step(&mut self) -> Result<(), StepError> {
        // Controls need the rare steps more often.
        if self.mistake == Some(super::mistake::ProgramFault::JumpsShort) && self.rng.once_in(3) {
            let (target, version) = (self.target(), (1 + self.rng.below(12)).to_string());
            return self.journey(&target, &version);
        }
        if self.mistake.and_then(super::mistake::ProgramFault::edge).is_some() && self.rng.once_in(3) {
            return self.edge();
        }
        let rare = self.mistake.is_some() && self.rng.once_in(3);
        let chosen = if rare { 86 + self.rng.below(13) } else { self.rng.below(100) };
        match chosen {
            0..14 => self.edit_by_hand(),
            14..30 => self.exec(),
            30..32 | 98 => self.edge(),
            32..38 => self.talk(),
            38..64 => self.random_move(),
            64..70 => self.worktree(),
            70..73 => self.threads(),
            73..78 => self.turn(),
            78..86 => self.failing(),
            86..89 => self.overlap(),
            89..92 => self.folder_gone(),
            92..94 => self.anchor(),
            94..96 => self.special_bits(),
            96 => self.header_key(),
            97 => self.wrong_clock(),
            _ => self.maintenance(),
        }
    }

    pub(super) fn some_thread(&mut self) -> ThreadRecord {
        // Prefers the first threads, which have more to undo.
        let among = if self.rng.once_in(4) { self.threads.len() } else { 3 };
        self.threads[self.rng.index(among)].clone()
    }

    pub(super) fn some_project(&mut self) -> &'static str {
        PROJECTS[self.rng.index(PROJECTS.len())]
    }

    /// A random thread, named or not, from a random folder.
    pub(super) fn target(&mut self) -> Target {
        let thread = self.some_thread();
        let mut places: Vec<String> =
            PROJECTS.iter().chain(&PLAIN_FOLDERS).map(|place| (*place).to_owned()).collect();
        places.extend(self.worktrees.iter().map(|worktree| worktree.folder.clone()));
        // Half of all commands start in the thread's folder.
        let place = if self.rng.once_in(2) {
            thread.project.clone()
        } else {
            places[self.rng.index(places.len())].clone()
        };
        let worktree = self.worktrees.iter().find(|worktree| worktree.folder == place).cloned();
        let at_home = place == thread.project || worktree.is_some();
        if at_home && self.rng.once_in(2) {
            return Target { folder: place.clone(), place, thread: None, is_worktree: worktree.is_some() };
        }
        let is_worktree = worktree.is_some_and(|worktree| worktree.thread == thread.title);
        let folder = if is_worktree { place.clone() } else { thread.project };
        Target { place, thread: Some(thread.title), folder, is_worktree }
    }

    fn edit_by_hand(&mut self) -> Result<(), StepError> {
        let mut places: Vec<String> = PROJECTS.iter().map(|place| (*place).to_owned()).collect();
        places.extend(self.worktrees.iter().map(|worktree| worktree.folder.clone()));
        let place = places[self.rng.index(places.len())].clone();
        let script = changes_by_hand(&mut self.rng);
        self.by_hand(&place, &script)
    }

    fn exec(&mut self) -> Result<(), StepError> {
        let target = self.target();
        let script = changes(&mut self.rng);
        let line = target.line(&["exec", "--", "sh", "-c", &script]);
        // The exit code is that of the script.
        let ran = self.run(&CommandLine { failure_may_change: true, ..line })?;
        self.remember(&ran, &target.folder);
        Self::check_exec(&ran, &target.folder)?;
        if self.rng.once_in(2) {
            return Ok(());
        }
        // Often undoes the change, sometimes after the user changed other files.
        if self.rng.once_in(2) {
            let script = changes_by_hand(&mut self.rng);
            self.by_hand(&target.folder, &script)?;
        }
        self.undo(&target.line(&["undo"]), &target.folder)
    }

    fn talk(&mut self) -> Result<(), StepError> {
        let (target, number) = (self.target(), self.number().to_string());
        let line = match self.rng.below(5) {
            0 => target.words(&["draft", "set", &number]),
            1 => target.words(&["thread", "tag", &number]),
            2 => target.words(&["entry", "edit", "1", &number]),
            _ => target.words(&["entry", "add", &number]),
        };
        self.run(&line).map(drop)
    }

    fn worktree(&mut self) -> Result<(), StepError> {
        if self.worktrees.len() < 2 && !self.rng.once_in(3) {
            return self.open_worktree();
        }
        let Some(worktree) = self.rng.pick(&self.worktrees).cloned() else { return Ok(()) };
        let mut line = CommandLine::new(&worktree.folder, &["worktree", "remove"]).changing(&worktree.folder);
        if self.rng.once_in(2) {
            let project = self.threads.iter().find(|thread| thread.title == worktree.thread);
            let place = project.map_or_else(|| "a".to_owned(), |thread| thread.project.clone());
            line = CommandLine::new(&place, &["worktree", "remove", &worktree.take, "-t", &worktree.thread])
                .changing(&worktree.folder);
        }
        if self.rng.once_in(2) {
            line = line.with(&["--delete-files"]);
        }
        if self.rng.once_in(2) {
            self.run(&line.clone().with(&["--dry-run"]))?;
        }
        if self.run(&line)?.succeeded() {
            self.worktrees.retain(|known| known.folder != worktree.folder);
            self.made_during_overlap.retain(|(folder, _)| *folder != worktree.folder);
            self.by_hand("outside", &format!("rm -rf ../{}", worktree.folder))?;
        }
        Ok(())
    }

    fn open_worktree(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let Some(take) = self.rng.pick(&thread.takes).cloned() else { return Ok(()) };
        let folder = format!("w{}", self.number());
        let place = if self.rng.once_in(2) { thread.project.as_str() } else { "e" };
        let worktree = format!("../{folder}");
        let line = CommandLine::new(place, &["worktree", "add", &take, &worktree, "-t", &thread.title]);
        let line = line.changing(&folder);
        if self.rng.once_in(2) {
            self.run(&line.clone().with(&["--dry-run"]))?;
        }
        if self.run(&line)?.succeeded() {
            self.worktrees.push(super::world::Worktree { thread: thread.title, take, folder });
        }
        Ok(())
    }

    fn threads(&mut self) -> Result<(), StepError> {
        let project = self.some_project();
        if self.rng.once_in(3) {
            return self.new_thread(project);
        }
        let thread = self.some_thread();
        let place = if self.rng.once_in(3) { project } else { thread.project.as_str() };
        // Another project's thread must not become current here, and no file may move.
        self.run(&CommandLine::new(place, &["thread", "switch", &thread.title])).map(drop)
    }

    /// A turn of the offline assistant that writes a file, which may be a protected one.
    fn turn(&mut self) -> Result<(), StepError> {
        let paths =
            ["f1", "note.txt", ".git/x", ".GIT/x", "d/.svn/y", "CVS/Root", "d/x", "_DARCS/x", "l", "x.log"];
        let path = self.rng.pick(&paths).copied().unwrap_or("f1");
        let (target, number) = (self.target(), self.number());
        let prompt = format!("create {path} with {number}");
        let line = target.line(&["run", "--approve", "all", &prompt]);
        self.run(&CommandLine { failure_may_change: true, ..line }).map(drop)
    }

    /// Read-only commands, and dry runs of maintenance commands.
    fn maintenance(&mut self) -> Result<(), StepError> {
        let target = self.target();
        let lines: [&[&str]; 10] = [
            &["thread", "list", "--all"],
            &["tree"],
            &["project", "list"],
            &["gc", "--dry-run"],
            &["purge", "--deleted", "--dry-run"],
            &["history"],
            &["take", "list"],
            &["snapshot", "list"],
            &["thread", "show"],
            &["thread", "info"],
        ];
        let at = self.rng.index(lines.len());
        let line = if at < 5 { CommandLine::new(&target.place, lines[at]) } else { target.words(lines[at]) };
        self.run(&CommandLine { reads: true, ..line }).map(drop)
    }
}
