//! The current thread of each terminal, so that two terminals in one project do not switch each other's thread.
//!
//! ```text
//!   terminal A ── thread switch X ──► A: X    project: X
//!   terminal B ── run ──────────────► B: Y             the thread of its last run or switch
//!   terminal C, scripts ───────────────────── project: X
//! ```
//!
//! The store has one current thread per project. A terminal that used a thread remembers it in a small file beside the
//! database, named by a hash of the terminal's identity. Nothing depends on it: without the file, the current thread is that of
//! the project.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use retake_model::content::{ContentId, Kind};
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_timeline::{Caller, Project};
use serde::{Deserialize, Serialize};

use super::Context;
use crate::failure::Failure;
use crate::ui::command::environment;

/// The folder of these files in the store.
const FOLDER: &str = "terminals";
/// Files of terminals that were not used for so long are removed.
const EXPIRY: Duration = Duration::from_hours(30 * 24);
/// Longer files are not read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The terminal in which a command runs.
pub(crate) struct Terminal {
    file: PathBuf,
}

/// The threads that a terminal uses, by project.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Threads(BTreeMap<String, UsedThread>);

/// A thread that a terminal uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsedThread {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// The project's current thread when the terminal last saw it.
    pub(crate) shared: Option<ThreadId>,
}

impl Context {
    /// The project with the thread that this terminal uses as the current one.
    pub(super) fn with_thread_of_terminal(&self, project: Project) -> Result<Project, Failure> {
        let Some(used) = self.terminal()?.and_then(|terminal| terminal.used(project.id)) else {
            return Ok(project);
        };
        let row = self.timeline()?.read()?.thread(used.thread).ok();
        let in_use = row.is_some_and(|row| row.summary.deleted.is_none() && row.home == project.id);
        Ok(if in_use { Project { current: Some(used.thread), ..project } } else { project })
    }

    /// Makes a thread the current one, of its project and of this terminal.
    pub(crate) fn switch_thread(&self, thread: ThreadId, caller: Caller) -> Result<(), Failure> {
        self.timeline()?.work_on(thread, caller)?;
        self.use_in_terminal(thread)
    }

    /// Makes a thread the current one of this terminal.
    pub(crate) fn use_in_terminal(&self, thread: ThreadId) -> Result<(), Failure> {
        let Some(terminal) = self.terminal()? else { return Ok(()) };
        let reader = self.timeline()?.read()?;
        let home = reader.thread(thread)?.home;
        let shared = reader.queries().project(home)?.and_then(|project| project.current);
        // Without the file, the terminal uses the thread of the project.
        let _ = terminal.remember(home, UsedThread { thread, shared });
        Ok(())
    }

    /// Reports where a turn ran, and whether another terminal made another thread the current one of the project.
    pub(crate) fn report_place(&self, thread: ThreadId, take: TakeId) -> Result<(), Failure> {
        let reader = self.timeline()?.read()?;
        let row = reader.thread(thread)?;
        let takes = reader.queries().takes_of(row.number)?;
        let take =
            takes.iter().find(|found| found.summary.id == take).map(|found| found.summary.name.as_str());
        let title = &row.summary.title;
        self.note(&format!("{title}/{}", take.unwrap_or_default()))?;
        if self.project()?.current != Some(thread) || self.worktree()?.is_some() {
            return Ok(());
        }
        let seen = self.terminal()?.and_then(|terminal| terminal.used(row.home)).map(|used| used.shared);
        let shared = reader.queries().project(row.home)?.and_then(|project| project.current);
        let other =
            shared.filter(|shared| *shared != thread && seen.is_some_and(|seen| seen != Some(*shared)));
        if let Some(other) = other.and_then(|other| reader.thread(other).ok()) {
            let (other, short) = (&other.summary.title, other.summary.id.short());
            self.note(&format!(
                "Another terminal switched the project to {other}; this one stays in {title}. `retake switch {short}` \
                 follows it."
            ))?;
        }
        drop(reader);
        self.use_in_terminal(thread)
    }

    fn terminal(&self) -> Result<Option<&Terminal>, Failure> {
        if self.terminal.get().is_none() {
            let found = Terminal::of_process(self.timeline()?.store().folder());
            let _ = self.terminal.set(found);
        }
        Ok(self.terminal.get().and_then(Option::as_ref))
    }
}

impl Terminal {
    /// The terminal of this process, if it has one.
    pub(crate) fn of_process(store: &Path) -> Option<Self> {
        let identity = identity(&environment, session)?;
        let name = ContentId::of(Kind::Blob, identity.as_bytes()).short();
        Some(Self { file: store.join(FOLDER).join(name) })
    }

    /// The thread that the terminal uses in a project.
    pub(crate) fn used(&self, project: ProjectId) -> Option<UsedThread> {
        self.read().0.get(&project.to_string()).copied()
    }

    /// Remembers the thread that the terminal uses in a project.
    pub(crate) fn remember(&self, project: ProjectId, used: UsedThread) -> io::Result<()> {
        let mut threads = self.read();
        threads.0.insert(project.to_string(), used);
        let folder = self.file.parent().expect("it is in a folder");
        fs::create_dir_all(folder)?;
        remove_expired(folder);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(&threads)?)?;
        file.persist(&self.file)?;
        Ok(())
    }

    fn read(&self) -> Threads {
        let small = fs::metadata(&self.file).is_ok_and(|found| found.len() <= MAX_BYTES);
        let bytes = if small { fs::read(&self.file).unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

fn remove_expired(folder: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|found| found.modified()).ok();
        if age.and_then(|modified| now.duration_since(modified).ok()).is_some_and(|age| age > EXPIRY) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What distinguishes this terminal from others: a name that the user or a terminal program gives, or its session.
fn identity(
    environment: &dyn Fn(&str) -> Option<String>,
    session: impl Fn() -> Option<String>,
) -> Option<String> {
    let set = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
    if let Some(name) = set("RETAKE_TERMINAL") {
        return Some(format!("name {name}"));
    }
    // A program without a terminal, such as a script in the background, uses the project's thread.
    let session = session()?;
    let pane = set("TMUX").zip(set("TMUX_PANE")).map(|(server, pane)| format!("tmux {server} {pane}"));
    let tab = || set("TERM_SESSION_ID").map(|tab| format!("tab {tab}"));
    Some(pane.or_else(tab).unwrap_or(session))
}

/// The session of this process, if one of its streams is a terminal. A session's number is used again after it ended, so its start
/// belongs to it.
fn session() -> Option<String> {
    let terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    if !terminal {
        return None;
    }
    let session = rustix::process::getsid(None).ok()?.as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{session}/stat")).unwrap_or_default();
    // The name of the program is in parentheses, and may contain anything.
    let fields = status.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let start = fields.split_whitespace().nth(19).unwrap_or_default();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("session {session} {start} {}", boot.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_told_apart() {
        let check = |variables: &[(&str, &str)], session: Option<&str>, expected: Option<&str>| {
            let read = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let found = identity(&read, || session.map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{variables:?}");
        };
        check(&[], None, None);
        check(&[], Some("session 7"), Some("session 7"));
        check(&[("TMUX_PANE", "%3")], Some("session 7"), Some("session 7"));
        check(&[("TMUX", "/tmp/t,1,0"), ("TMUX_PANE", "%3")], Some("s"), Some("tmux /tmp/t,1,0 %3"));
        check(&[("TMUX", "/tmp/t,1,0"), ("TMUX_PANE", "%3")], None, None);
        check(&[("TERM_SESSION_ID", "w0t1")], Some("s"), Some("tab w0t1"));
        check(&[("RETAKE_TERMINAL", "left"), ("TERM_SESSION_ID", "w0t1")], None, Some("name left"));
        check(&[("RETAKE_TERMINAL", " ")], None, None);
    }
}
