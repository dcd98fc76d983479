//! State shared by all commands: configuration, timeline, project and worktree.

mod changes;
mod output;
mod recovery;
mod targets;
mod terminal;

use std::cell::{Cell, OnceCell};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::tz::TimeZone;
use retake_model::time::Timestamp;
use retake_timeline::{Project, Rules, Timeline, Worktree};

use crate::arguments::{Effect, GlobalOptions};
use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::ui::lock_watch;
use crate::ui::screen::Screen;
use crate::ui::style::{Styles, stderr};
use crate::ui::time::relative;

pub(crate) use targets::ResolvedTarget;
use terminal::Terminal;

/// Whether a watcher runs. A chat opens a context after each command; one watcher is enough.
static WATCHED: AtomicBool = AtomicBool::new(false);

pub(crate) struct Context {
    pub(crate) general: GlobalOptions,
    pub(crate) config: Config,
    pub(crate) styles: Styles,
    pub(crate) screen: Screen,
    pub(crate) zone: TimeZone,
    /// Whether the commands that are suggested are typed in a chat: `/undo`.
    pub(crate) in_chat: Cell<bool>,
    directory: PathBuf,
    timeline: OnceCell<Timeline>,
    project: OnceCell<Project>,
    project_or_create: OnceCell<Project>,
    worktree: OnceCell<Option<Worktree>>,
    terminal: OnceCell<Option<Terminal>>,
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
        if !directory.is_dir() {
            return Err(Failure::not_found(format!("{} is not a folder", directory.display())));
        }
        Ok(Self {
            config,
            styles: Styles::new(),
            screen: Screen::detect(),
            zone: TimeZone::system(),
            in_chat: Cell::new(false),
            directory,
            timeline: OnceCell::new(),
            project: OnceCell::new(),
            project_or_create: OnceCell::new(),
            worktree: OnceCell::new(),
            terminal: OnceCell::new(),
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

    /// The timeline, if the command opened it.
    pub(crate) fn opened_timeline(&self) -> Option<&Timeline> {
        self.timeline.get()
    }

    /// Reports if another process blocks this one.
    fn watch(&self, folder: &std::path::Path) {
        if self.general.quiet || self.general.json || !std::io::IsTerminal::is_terminal(&io::stderr()) {
            return;
        }
        if WATCHED.swap(true, Ordering::Relaxed) {
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
            None => self.with_thread_of_terminal(self.timeline()?.project_if_known(&self.directory)?)?,
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
            None => self.with_thread_of_terminal(self.timeline()?.project(&self.directory)?)?,
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
}
