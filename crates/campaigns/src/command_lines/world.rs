//! The world that commands run in, and how they are run, observed and recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use retake_model::operation::OperationKind;
use retake_store::{DeletedFilter, StoredOperation, ThreadFilter};
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

use super::check;
use super::effects::FileEffect;
use super::mistake::ProgramFault;
use super::observe::{Observation, Tree};
use super::run::CommandsSummary;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::BoxError;

/// Larger files are not captured. Small enough that scripts exceed it.
pub(super) const MAX_CAPTURED_BYTES: usize = 4096;

/// The initial folders.
pub(super) const PROJECTS: [&str; 3] = ["a", "b", "c"];
pub(super) const PLAIN_FOLDERS: [&str; 2] = ["e", "outside"];

/// Tables that change when a folder is recorded.
const SNAPSHOT_TABLES: [&str; 10] = [
    "facet",
    "folder",
    "object",
    "object_index",
    "object_recent",
    "operation",
    "pack",
    "packed",
    "tally",
    "thread",
];

const CONFIG: &str = "[files]\nlargest = 4096\n[agent]\nattempts = 1\n";

/// A broken rule, or an error of the campaign itself.
#[derive(Debug)]
pub(super) enum StepError {
    Broken(String),
    Trouble(BoxError),
}

impl<E: Into<BoxError>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Trouble(error.into())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct CommandLine {
    /// The current folder.
    pub(super) place: String,
    pub(super) arguments: Vec<String>,
    /// The only folder that it may change; `None` for commands that only change the conversation.
    pub(super) may_change: Option<String>,
    /// Whether a failure may leave changes, such as those of a program that failed later.
    pub(super) failure_may_change: bool,
    /// Whether it must fail.
    pub(super) must_fail: bool,
    /// Whether it must change nothing.
    pub(super) reads: bool,
}

impl CommandLine {
    pub(super) fn new(place: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { place: place.to_owned(), arguments, ..Self::default() }
    }

    pub(super) fn changing(self, folder: &str) -> Self {
        Self { may_change: Some(folder.to_owned()), ..self }
    }

    /// Adds arguments at the end, or before `--`.
    pub(super) fn with(mut self, more: &[&str]) -> Self {
        let at = self.arguments.iter().position(|argument| argument == "--").unwrap_or(self.arguments.len());
        let more = more.iter().map(|argument| (*argument).to_owned());
        self.arguments.splice(at..at, more);
        self
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == option)
    }

    pub(super) fn is_dry(&self) -> bool {
        self.has("--dry-run")
    }

    pub(super) fn is_exec(&self) -> bool {
        self.arguments.first().is_some_and(|first| first == "exec")
    }

    /// Whether it moves files along the history and reports each path.
    pub(super) fn is_move(&self) -> bool {
        let words: Vec<&str> = self.arguments.iter().take(2).map(String::as_str).collect();
        matches!(words[..], ["undo" | "redo" | "jump" | "restore", ..])
            || matches!(words[..], ["take", "switch" | "branch" | "fork"])
    }

    fn as_shell(&self) -> String {
        let words: Vec<String> = self.arguments.iter().map(|argument| quoted(argument)).collect();
        format!("(cd \"$W/world/{}\" && retake {})", self.place, words.join(" "))
    }
}

/// Quotes text for a shell.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=+".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[derive(Debug)]
pub(super) struct Output {
    pub(super) code: Option<i32>,
    pub(super) answer: Value,
    pub(super) text: String,
    pub(super) errors: String,
}

/// An executed command line, with the world before and after.
#[derive(Debug)]
pub(super) struct CommandRun {
    pub(super) output: Output,
    pub(super) before: Observation,
    pub(super) after: Observation,
}

impl CommandRun {
    pub(super) fn succeeded(&self) -> bool {
        self.output.code == Some(0)
    }

    /// The files of a folder before and after.
    pub(super) fn folder(&self, name: &str) -> (Tree, Tree) {
        let of = |observed: &Observation| observed.folders.get(name).cloned().unwrap_or_default();
        (of(&self.before), of(&self.after))
    }
}

/// A thread with a unique title.
#[derive(Clone, Debug)]
pub(super) struct ThreadRecord {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) project: String,
    pub(super) takes: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Worktree {
    pub(super) thread: String,
    pub(super) take: String,
    pub(super) folder: String,
}

pub(super) struct World {
    scratch: ScratchDir,
    program: PathBuf,
    pub(super) rng: Rng,
    pub(super) mistake: Option<ProgramFault>,
    /// Everything that was done, as a shell script.
    pub(super) script: Vec<String>,
    /// The current state of the world.
    pub(super) observed: Observation,
    pub(super) threads: Vec<ThreadRecord>,
    pub(super) worktrees: Vec<Worktree>,
    /// Changes made by `exec`, by thread and version.
    pub(super) effects: BTreeMap<(String, u64), FileEffect>,
    /// Files that the user created while several programs ran, by folder.
    pub(super) made_during_overlap: BTreeSet<(String, PathBuf)>,
    /// The key of the provider that repeats its headers.
    pub(super) key: Option<String>,
    pub(super) summary: CommandsSummary,
    numbers: u64,
}

impl World {
    pub(super) fn new(rng: Rng, mistake: Option<ProgramFault>) -> Result<Self, StepError> {
        let scratch = ScratchDir::for_files()?;
        let mut this = Self {
            scratch,
            program: crate::files::retake()?.path,
            rng,
            mistake,
            script: Vec::new(),
            observed: Observation::default(),
            threads: Vec::new(),
            worktrees: Vec::new(),
            effects: BTreeMap::new(),
            made_during_overlap: BTreeSet::new(),
            key: None,
            summary: CommandsSummary::default(),
            numbers: 0,
        };
        fs::create_dir_all(this.scratch.path().join("signals"))?;
        for name in PROJECTS.iter().chain(&PLAIN_FOLDERS) {
            fs::create_dir_all(this.folder(name))?;
        }
        fs::write(this.config(), CONFIG)?;
        this.by_hand("outside", "echo precious > f0; echo precious > x")?;
        this.by_hand("c", "mkdir -p .git/refs/heads .git/objects; echo 'ref: refs/heads/main' > .git/HEAD")?;
        for project in PROJECTS {
            this.by_hand(project, "echo 0 > f0; mkdir d; echo 0 > d/x")?;
            this.new_thread(project)?;
        }
        for project in PROJECTS {
            this.new_thread(project)?;
        }
        Ok(this)
    }

    /// A script that recreates this world and repeats all steps.
    pub(super) fn as_script(&self) -> String {
        let config = CONFIG.replace('\n', "\\n");
        let head = format!(
            "W=$(mktemp -d); export W HOME=$W RETAKE_HOME=$W/home RETAKE_CONFIG=$W/config.toml\n\
             mkdir -p $W/signals $W/world/{{a,b,c,e,outside}}; printf '{config}' > $RETAKE_CONFIG"
        );
        format!("{head}\n{}", self.script.join("\n"))
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.scratch.path().join("world").join(name)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.scratch.path().join("config.toml")
    }

    pub(super) fn store(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub(super) fn signals(&self) -> PathBuf {
        self.scratch.path().join("signals")
    }

    /// A unique number.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn observe(&self) -> Result<Observation, BoxError> {
        Observation::of(&self.scratch.path().join("world"), &self.store())
    }

    /// Changes a folder as a user does.
    pub(super) fn by_hand(&mut self, place: &str, script: &str) -> Result<(), StepError> {
        // The subshell keeps a partially pasted script from running in another folder.
        self.script.push(format!("(cd \"$W/world/{place}\" && {{ {script}; }})"));
        self.run_unrecorded(place, script)?;
        self.observed = self.observe()?;
        Ok(())
    }

    /// Runs a script without recording or observing it.
    pub(super) fn run_unrecorded(&self, place: &str, script: &str) -> Result<(), BoxError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.folder(place)).env("W", self.scratch.path());
        let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.code().is_some() { Ok(()) } else { Err(format!("{script:?} was killed").into()) }
    }

    pub(super) fn command(&self, place: &str, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--json")
            .args(arguments)
            .current_dir(self.folder(place))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("W", self.scratch.path())
            .env("HOME", self.scratch.path())
            .env("RETAKE_HOME", self.store())
            .env("RETAKE_CONFIG", self.config())
            .stdin(Stdio::null());
        command
    }

    pub(super) fn execute(&self, place: &str, arguments: &[String]) -> Result<Output, BoxError> {
        Ok(Output::of(&self.command(place, arguments).output()?))
    }

    /// Runs a command line and checks the rules for all commands.
    pub(super) fn run(&mut self, line: &CommandLine) -> Result<CommandRun, StepError> {
        self.script.push(line.as_shell());
        let arguments =
            self.mistake.map_or_else(|| line.arguments.clone(), |mistake| mistake.arguments(line));
        let mut output = self.execute(&line.place, &arguments)?;
        self.apply_fault(line, &mut output)?;
        let after = self.observe()?;
        let before = std::mem::replace(&mut self.observed, after.clone());
        let ran = CommandRun { output, before, after };
        self.summary.count(line, &ran);
        let seen_only = !ran.succeeded() && self.only_recorded_hand_edits(&ran)?;
        check::general(line, &ran, seen_only)?;
        Ok(ran)
    }

    /// Whether the command only recorded the user's earlier file changes, which even a refused command may do.
    fn only_recorded_hand_edits(&self, ran: &CommandRun) -> Result<bool, BoxError> {
        let changed = ran.before.changed_tables(&ran.after);
        if changed.is_empty() || changed.iter().any(|table| !SNAPSHOT_TABLES.contains(&table.as_str())) {
            return Ok(false);
        }
        let rows = |observed: &Observation| observed.store.get("operation").map_or(0, BTreeSet::len);
        let added = rows(&ran.after) - rows(&ran.before);
        if added == 0 {
            return Ok(!changed.contains(&"thread".to_owned()));
        }
        let timeline = Timeline::open(&self.store(), Rules::default())?;
        let reader = timeline.read()?;
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let mut newest: Option<StoredOperation> = None;
        for row in reader.threads(&filter)? {
            let head = reader.head(row.summary.id)?;
            if newest.as_ref().is_none_or(|known| known.sequence < head.sequence) {
                newest = Some(head);
            }
        }
        let kind = newest.map(|head| head.operation.kind);
        Ok(added == 1 && matches!(kind, Some(OperationKind::ExternalEdits { .. })))
    }

    /// Creates a thread, which becomes current.
    pub(super) fn new_thread(&mut self, project: &str) -> Result<(), StepError> {
        let title = format!("thread-{}", self.number());
        let ran = self.run(&CommandLine::new(project, &["thread", "new", &title]))?;
        let id = ran.output.answer["thread"].as_str().unwrap_or_default().to_owned();
        if !ran.succeeded() || id.is_empty() {
            return Err(StepError::Trouble(format!("no thread was created: {}", ran.output.errors).into()));
        }
        self.threads.push(ThreadRecord {
            id,
            title,
            project: project.to_owned(),
            takes: vec!["main".to_owned()],
        });
        Ok(())
    }

    /// Starts the program in the background, and records it in the script.
    pub(super) fn start(&mut self, line: &CommandLine) -> Result<std::process::Child, BoxError> {
        self.script.push(format!("{} &", line.as_shell()));
        let mut command = self.command(&line.place, &line.arguments);
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }
}

impl Output {
    pub(super) fn of(output: &std::process::Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Programs under `exec` may print before the answer, which is the last line.
        let answer = text.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), answer, text, errors }
    }
}
