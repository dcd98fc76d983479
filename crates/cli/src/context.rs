//! State shared by all commands: configuration, timeline, project, target resolution and output.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::path::PathBuf;

use jiff::tz::TimeZone;
use retake_model::environment::{Environment, recorded_environment};
use retake_model::id::{TakeId, ThreadId};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::time::Timestamp;
use retake_store::{BudgetState, ThreadRow};
use retake_timeline::{
    Caller, ChangeOutcome, Command, PendingMove, Project, ProjectChange, Reader, Rules, Timeline, Worktree,
};
use retake_workspace::folder::path_to_text;
use retake_workspace::git::{self, GitFacts};
use serde::Serialize;

use crate::arguments::{Effect, GlobalOptions, Target};
use crate::config::{Config, Size};
use crate::describe;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;
use crate::ui::json;
use crate::ui::lock_watch;
use crate::ui::pager::{Pager, Paging, ignore_closed_pipe};
use crate::ui::progress::ProgressMode;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::screen::Screen;
use crate::ui::style::{StreamEnvironment as Streams, Styles, decide, stderr};
use crate::ui::time::relative;

pub(crate) struct Context {
    pub(crate) general: GlobalOptions,
    pub(crate) config: Config,
    pub(crate) styles: Styles,
    pub(crate) screen: Screen,
    pub(crate) zone: TimeZone,
    directory: PathBuf,
    timeline: OnceCell<Timeline>,
    project: OnceCell<Project>,
    project_or_create: OnceCell<Project>,
    worktree: OnceCell<Option<Worktree>>,
}

/// The thread and take that a command refers to, with the thread's state.
pub(crate) struct ResolvedTarget {
    pub(crate) thread: ThreadRow,
    pub(crate) state: ThreadState,
    /// The roles offered for new entries.
    pub(crate) roles: Vec<String>,
    pub(crate) take: Take,
}

impl Context {
    pub(crate) fn new(general: GlobalOptions) -> Result<Self, Failure> {
        Self::with(general, Config::load()?)
    }

    /// For commands that need no configuration.
    pub(crate) fn unconfigured(general: GlobalOptions) -> Result<Self, Failure> {
        Self::with(general, Config::default())
    }

    fn with(general: GlobalOptions, config: Config) -> Result<Self, Failure> {
        let directory = match &general.directory {
            Some(directory) => directory
                .canonicalize()
                .map_err(|error| Failure::new(Code::NotFound, format!("{}: {error}", directory.display())))?,
            None => std::env::current_dir().map_err(|error| {
                Failure::new(Code::NotFound, format!("the current folder cannot be used: {error}"))
            })?,
        };
        Ok(Self {
            config,
            styles: Styles::new(),
            screen: Screen::detect(),
            zone: TimeZone::system(),
            directory,
            timeline: OnceCell::new(),
            project: OnceCell::new(),
            project_or_create: OnceCell::new(),
            worktree: OnceCell::new(),
            general,
        })
    }

    /// The timeline, opened on first use.
    pub(crate) fn timeline(&self) -> Result<&Timeline, Failure> {
        if let Some(timeline) = self.timeline.get() {
            return Ok(timeline);
        }
        let history = &self.config.history;
        let depth = (history.depth > 0).then_some(history.depth);
        let rules = Rules { typing_pause: history.typing_pause_ms, depth };
        let folder = self.config.folder()?;
        self.watch(&folder);
        let timeline = Timeline::open(&folder, rules)?;
        if let Some(lost) = timeline.store().lost_log_end()? {
            self.warn(&format!(
                "{lost}. `retake verify` shows details; `retake repair` continues with the remaining data."
            ))?;
        }
        if self.general.effect == Effect::Change {
            self.clean_up(&timeline);
        }
        Ok(self.timeline.get_or_init(|| timeline))
    }

    /// Removes leftovers of worktrees and purges after a crash. Failures are ignored: they must not block the command.
    fn clean_up(&self, timeline: &Timeline) {
        if let Ok(true) = timeline.store().finish_erasure() {
            let _ = self.note("Finished an interrupted purge or redaction.");
        }
        let Ok(cleaned) = timeline.clean_up() else { return };
        if cleaned.is_empty() {
            return;
        }
        if self.general.json {
            let mut out = stderr(self.general.color);
            let _ = json::write(&mut out, &serde_json::json!({"cleaned_up": cleaned}))
                .and_then(|()| writeln!(out));
            return;
        }
        for path in &cleaned.removed {
            let _ = self.note(&format!("Finished the interrupted removal of {path}."));
        }
        for path in &cleaned.temporary {
            let _ = self.note(&format!("Removed {path}, left by a killed command."));
        }
    }

    /// Reports if another process blocks this one.
    fn watch(&self, folder: &std::path::Path) {
        if self.general.quiet || self.general.json || !std::io::IsTerminal::is_terminal(&io::stderr()) {
            return;
        }
        let (colour, style) = (self.general.color, self.styles.muted);
        lock_watch::watch(folder.join("writer.lock"), move |text| {
            // A closed standard error is ignored.
            let _ = writeln!(stderr(colour), "{style}{text}{style:#}");
        });
    }

    /// The folder in which the command was started.
    pub(crate) fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    /// The project of the current folder. Does not create one.
    pub(crate) fn project(&self) -> Result<&Project, Failure> {
        if let Some(project) = self.project_or_create.get().or_else(|| self.project.get()) {
            return Ok(project);
        }
        let project = match self.worktree_project()? {
            Some(project) => project,
            None => self.timeline()?.project_if_known(&self.directory)?,
        };
        self.report_noticed(&project.folder_change)?;
        Ok(self.project.get_or_init(|| project))
    }

    /// The project of the current folder, created if necessary.
    pub(crate) fn project_or_create(&self) -> Result<&Project, Failure> {
        if let Some(project) = self.project_or_create.get() {
            return Ok(project);
        }
        let project = match self.worktree_project()? {
            Some(project) => project,
            None => self.timeline()?.project(&self.directory)?,
        };
        if self.project.get().is_none() {
            self.report_noticed(&project.folder_change)?;
        }
        Ok(self.project_or_create.get_or_init(|| project))
    }

    /// The worktree that contains the current folder, if any.
    pub(crate) fn worktree(&self) -> Result<Option<&Worktree>, Failure> {
        if self.worktree.get().is_none() {
            let found = self.timeline()?.recognise_worktree(&self.directory)?;
            let _ = self.worktree.set(found);
        }
        Ok(self.worktree.get().and_then(Option::as_ref))
    }

    /// The project of that worktree; commands in it refer to its take.
    fn worktree_project(&self) -> Result<Option<Project>, Failure> {
        Ok(self.timeline()?.project_of_worktree(&self.directory)?)
    }

    /// The reference time for relative times.
    pub(crate) fn now(&self) -> Timestamp {
        self.timeline.get().map_or_else(Timestamp::default, Timeline::now)
    }

    /// Formats a time relative to now.
    pub(crate) fn ago(&self, moment: Timestamp) -> String {
        relative(self.now(), moment, &self.zone)
    }

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
        self.change(thread, command, expect).map_err(|failure| failure.preserving_if(written))
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

    /// Prints a warning, in text and JSON mode.
    fn warn(&self, text: &str) -> Result<(), Failure> {
        if self.general.quiet {
            return Ok(());
        }
        let style = self.styles.warning;
        Ok(writeln!(stderr(self.general.color), "{style}warning:{style:#} {text}")?)
    }

    /// Reports file moves of crashed commands that this command finished.
    pub(crate) fn report_recovered(&self) {
        let recovered = self.timeline.get().map(Timeline::take_recovered).unwrap_or_default();
        let mut out = stderr(self.general.color);
        for recovered in &recovered {
            // The change succeeded: a failing report must not look like a failed change.
            let _ = if self.general.json {
                json::write(&mut out, &serde_json::json!({"recovered": recovered}))
                    .and_then(|()| writeln!(out))
            } else {
                describe::files::write_recovered(&mut out, self, recovered)
            };
        }
        let emptied = self.timeline.get().map(Timeline::take_emptied).unwrap_or_default();
        if !emptied.is_empty() {
            let _ = if self.general.json {
                json::write(&mut out, &serde_json::json!({"emptied": emptied})).and_then(|()| writeln!(out))
            } else {
                describe::files::write_emptied(&mut out, self, &emptied)
            };
        }
    }

    /// Unfinished file moves of the selected threads. Text output warns about each; JSON output includes them.
    pub(crate) fn pending_moves(&self, of: impl Fn(ThreadId) -> bool) -> Result<Vec<PendingMove>, Failure> {
        let mut moves = self.timeline()?.pending_moves()?;
        moves.retain(|pending| of(pending.thread));
        if self.general.json {
            return Ok(moves);
        }
        for PendingMove { thread, kind, time, folder, running, next, .. } in &moves {
            let what = if *running { "is in progress" } else { "was interrupted" };
            let kind = serde_json::to_value(kind).unwrap_or_default();
            let kind = kind["type"].as_str().unwrap_or("a move").replace('_', " ");
            let text = format!(
                "a file move in {folder} {what} (thread {}, {kind}, {}); {next}",
                thread.short(),
                self.ago(*time)
            );
            self.warn(&sanitize(&text, LineBreaks::Fold))?;
        }
        Ok(moves)
    }

    /// Finds the named thread, or the current one. Refuses a take, which would be ignored.
    pub(crate) fn thread(&self, reader: &Reader<'_>, named: Option<&str>) -> Result<ThreadRow, Failure> {
        let (thread, take) = self.find_target(reader, named)?;
        match named.filter(|_| take.is_some()) {
            None => Ok(thread),
            Some(text) => {
                let message = format!(
                    "{text:?} names a take, but this command applies to the whole thread; use {}",
                    thread.summary.id.short()
                );
                Err(Failure::new(Code::Usage, message))
            }
        }
    }

    /// The thread and take for an undo or redo: the named take, or the take of the current worktree; `None` for the
    /// active take.
    pub(crate) fn view(
        &self,
        reader: &Reader<'_>,
        target: &Target,
    ) -> Result<(ThreadRow, Option<TakeId>), Failure> {
        let (thread, named) = self.find_target(reader, target.thread.as_deref())?;
        let take = match &target.take {
            Some(text) => Some(reader.find_take(&thread, text)?.summary.id),
            None => named,
        };
        let take = match take {
            None => self.worktree_of(thread.summary.id)?,
            take => take,
        };
        Ok((thread, take))
    }

    /// Resolves the thread and take of a command.
    pub(crate) fn resolve(&self, reader: &Reader<'_>, target: &Target) -> Result<ResolvedTarget, Failure> {
        let (thread, take) = self.view(reader, target)?;
        let state = reader.state(thread.summary.id)?;
        let take = state
            .take(&reader.queries(), take.unwrap_or(state.active))
            .map_err(retake_timeline::ReadError::from)?;
        let take = take.ok_or_else(|| Failure::new(Code::NotFound, "the take was deleted"))?;
        let roles = reader.effective_roles(thread.summary.id)?;
        Ok(ResolvedTarget { thread, state, roles, take })
    }

    /// Fails while a turn or a command is running in one of these threads, since it would keep writing.
    pub(crate) fn check_no_turn(&self, threads: &[ThreadId]) -> Result<(), Failure> {
        let timeline = self.timeline()?;
        let (reader, leases) = (timeline.read()?, timeline.store().turn_leases());
        for thread in threads {
            let row = reader.thread(*thread)?;
            for take in reader.queries().takes_of(row.number)? {
                if leases.is_turn_running(take.summary.id)? {
                    let text = format!(
                        "a turn is running in take {} of {}; stop it with `retake stop` and try again",
                        take.summary.name, row.summary.title
                    );
                    return Err(Failure::new(Code::Refused, text));
                }
            }
            if let Some(folder) = reader.running_command(*thread, &leases)? {
                return Err(retake_timeline::ChangeError::CommandRuns(folder).into());
            }
        }
        Ok(())
    }

    /// The title of the current thread, read from the store.
    pub(crate) fn current_title(&self) -> Option<String> {
        let reader = self.timeline().ok()?.read().ok()?;
        let current = reader.queries().project(self.project().ok()?.id).ok()??.current?;
        reader.thread(current).ok().map(|row| row.summary.title)
    }

    /// The last deleted thread, if the deletion was the last operation in this project and no thread is named.
    pub(crate) fn just_deleted(&self, reader: &Reader<'_>) -> Result<Option<ThreadRow>, Failure> {
        let chosen = environment("RETAKE_THREAD").is_some_and(|text| !text.trim().is_empty());
        if chosen || self.worktree()?.is_some() {
            return Ok(None);
        }
        Ok(reader.just_deleted(self.project()?.id)?)
    }

    fn find_target(
        &self,
        reader: &Reader<'_>,
        named: Option<&str>,
    ) -> Result<(ThreadRow, Option<TakeId>), Failure> {
        let project = self.project()?;
        let chosen = environment("RETAKE_THREAD").filter(|text| !text.trim().is_empty());
        if let Some(text) = named.or(chosen.as_deref()) {
            let found = reader.find(Some(project.id), text)?;
            return Ok((found.thread, found.take.map(|take| take.summary.id)));
        }
        let current = project.current.and_then(|id| reader.thread(id).ok());
        match current.filter(|row| row.summary.deleted.is_none()) {
            Some(row) => Ok((row, None)),
            None => Err(no_current_thread()),
        }
    }

    /// Prints the answer: JSON with `--json`, otherwise text.
    pub(crate) fn answer(
        &self,
        value: &impl Serialize,
        text: impl FnOnce(&mut dyn Write, &Styles) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let paging = if self.general.no_pager || self.general.json || !self.config.output.pager {
            Paging::Off
        } else {
            Paging::Allowed
        };
        let mut out = Pager::new(self.screen, paging, self.colours(), &environment);
        let written = if self.general.json {
            json::write(&mut out, value).and_then(|()| writeln!(out))
        } else {
            text(&mut out, &self.styles)
        };
        Ok(out.finish(written)?)
    }

    pub(crate) fn colours(&self) -> anstream::ColorChoice {
        decide(self.general.color, Streams::of_stdout())
    }

    /// Prints text byte for byte, without pager or colours.
    pub(crate) fn answer_verbatim(&self, value: &impl Serialize, text: &str) -> Result<(), Failure> {
        if self.general.json {
            return self.answer(value, |_, _| Ok(()));
        }
        Ok(ignore_closed_pipe(io::stdout().write_all(text.as_bytes()))?)
    }

    /// Prints the result of a change, unless `--quiet` is set.
    pub(crate) fn report(
        &self,
        value: &impl Serialize,
        text: impl FnOnce(&mut dyn Write, &Styles) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.general.quiet && !self.general.json {
            return Ok(());
        }
        self.answer(value, text)
    }

    /// Prints a note on standard error, in text mode.
    pub(crate) fn note(&self, text: &str) -> Result<(), Failure> {
        if self.general.quiet || self.general.json {
            return Ok(());
        }
        let style = self.styles.muted;
        let text = sanitize(text, LineBreaks::Keep);
        Ok(writeln!(stderr(self.general.color), "{style}{text}{style:#}")?)
    }

    /// Notes that another thread of the project has the same title. Titles are unique when set, but an undo, a jump or
    /// a restore can bring back a duplicate.
    pub(crate) fn note_same_titles(&self, thread: ThreadId) {
        if !self.general.quiet && !self.general.json {
            // The change succeeded: a failing note is ignored.
            let _ = self.try_to_note_same_titles(thread);
        }
    }

    fn try_to_note_same_titles(&self, thread: ThreadId) -> Result<(), Failure> {
        let reader = self.timeline()?.read()?;
        let row = reader.thread(thread)?;
        let title = &row.summary.title;
        let same = |other: &&ThreadRow| {
            other.number != row.number && other.home == row.home && other.summary.deleted.is_none()
        };
        let others = reader.queries().threads_with_title(title)?;
        match others.iter().find(same).filter(|_| row.summary.deleted.is_none()) {
            None => Ok(()),
            Some(other) => self.note(&format!(
                "Thread {} has the same title {title:?}; refer to this one as {}, or rename it.",
                other.summary.id.short(),
                row.summary.id.short(),
            )),
        }
    }

    /// Whether to show a progress bar.
    pub(crate) fn observer(&self) -> ProgressMode {
        if self.general.quiet || self.general.json { ProgressMode::Nobody } else { ProgressMode::detect() }
    }

    pub(crate) fn report_noticed(&self, folder_change: &ProjectChange) -> Result<(), Failure> {
        match folder_change {
            ProjectChange::Nothing | ProjectChange::New => Ok(()),
            ProjectChange::Moved { from } => {
                self.note(&format!("This project moved here from {from}, with its threads."))
            }
            ProjectChange::Copied { of } => self.note(&format!(
                "This folder is a copy of another project and starts without threads; `retake project adopt {}` moves its threads here.",
                of.short()
            )),
            ProjectChange::Replaced { formerly } => self.note(&format!(
                "Another folder was here before. If this is the same project, run `retake project adopt {}` to use its threads.",
                formerly.short()
            )),
        }
    }
}

fn no_current_thread() -> Failure {
    Failure::new(
        Code::NotFound,
        "this project has no current thread; `retake thread new` creates one, `retake thread switch` selects one",
    )
}
