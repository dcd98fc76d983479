//! Changes of threads by the user.

use retake_model::environment::{Environment, recorded_environment};
use retake_model::id::ThreadId;
use retake_store::BudgetState;
use retake_timeline::{Caller, ChangeOutcome, Command};
use retake_workspace::folder::path_to_text;
use retake_workspace::git::{self, GitFacts};

use super::Context;
use crate::config::Size;
use crate::describe;
use crate::failure::{self, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

impl Context {
    /// The user as author of a change. Records the folder and git state of the thread's project, wherever the command
    /// was started.
    pub(crate) fn caller(&self, thread: ThreadId, expect: Option<u64>) -> Result<Caller, Failure> {
        let timeline = self.timeline()?;
        let reader = timeline.read()?;
        let home = reader.thread(thread)?.home;
        let is_here = match self.worktree()? {
            Some(worktree) => worktree.thread == thread,
            None => self.project()?.id == home,
        };
        if is_here {
            return self.caller_here(expect);
        }
        let facts = timeline.folder_of_project(home).map(|folder| git::observe(&folder)).unwrap_or_default();
        let project = reader.queries().project(home)?.filter(|project| !project.path.is_empty());
        Ok(self.caller_in(project.map(|project| project.path), facts, expect))
    }

    /// The user as author, with the current folder's git state.
    pub(crate) fn caller_here(&self, expect: Option<u64>) -> Result<Caller, Failure> {
        Ok(self.caller_in(Some(self.project()?.path.clone()), git::observe(&self.directory), expect))
    }

    fn caller_in(&self, root: Option<String>, facts: GitFacts, expect: Option<u64>) -> Caller {
        let environment = Environment {
            workspace_root: root,
            working_directory: Some(path_to_text(&self.directory)),
            program_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            git_branch: facts.branch,
            git_commit: facts.commit,
            git_remote: facts.remote,
            git_dirty: facts.dirty,
            environment: recorded_environment(|name| std::env::var(name).ok()),
        };
        Caller { environment: Some(environment), expected: expect, ..Caller::human() }
    }

    /// Changes a thread.
    pub(crate) fn change(
        &self,
        thread: ThreadId,
        command: Command,
        expect: Option<u64>,
    ) -> Result<ChangeOutcome, Failure> {
        let done = self.timeline()?.change(thread, command, self.caller(thread, expect)?)?;
        self.warn_of_budget();
        Ok(done)
    }

    /// Changes a thread with text that the user typed, which is saved to a file if the change is refused.
    pub(crate) fn change_preserving(
        &self,
        thread: ThreadId,
        command: Command,
        expect: Option<u64>,
        written: Option<&str>,
    ) -> Result<ChangeOutcome, Failure> {
        self.change(thread, command, expect).map_err(|failure| failure::preserve(failure, written))
    }

    /// Changes a thread and reports the result.
    pub(crate) fn change_and_report(
        &self,
        thread: ThreadId,
        command: Command,
        expect: Option<u64>,
    ) -> Result<(), Failure> {
        let done = self.change(thread, command, expect)?;
        self.report_done(&done)
    }

    /// Reports a change.
    pub(crate) fn report_done(&self, done: &ChangeOutcome) -> Result<(), Failure> {
        self.report(done, |out, styles| {
            let muted = styles.muted;
            write!(out, "{}", sanitize(&describe::done(done), LineBreaks::Fold))?;
            if done.undoable {
                let undo = self.undo_command(done);
                write!(out, " {muted}version {}; `{undo}` undoes it{muted:#}", done.version)?;
            }
            writeln!(out)
        })
    }

    /// Warns when the store approaches `storage.budget`. Nothing is deleted.
    pub(crate) fn warn_of_budget(&self) {
        let Some(Size(budget)) = self.config.storage.budget else { return };
        // The change is durable: a failing warning must not look like a failed change.
        let Ok(Ok(state)) = self.timeline().map(|timeline| timeline.store().budget_state(budget)) else {
            return;
        };
        let percent = match state {
            BudgetState::Fine => return,
            BudgetState::Near { percent } | BudgetState::Over { percent } => percent,
        };
        let _ = self.warn(&format!(
            "the store uses {percent} % of storage.budget; `retake usage` shows details, \
             `retake gc` and `retake purge` free space"
        ));
    }
}
