//! Targeted steps: refusals, missing folders, commits, permission bits, keys and clocks.

use std::fs;
use std::sync::Arc;

use retake_model::entry::EntryVersion;
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use retake_testing::fault_server::{FaultServer, Request, Script};
use retake_timeline::{Caller, Clock, Command, InsertPosition, Rules, SeededClock, Timeline};

use super::mistake::ProgramFault;
use super::observe::Kind;
use super::world::{CommandLine, MAX_CAPTURED_BYTES, StepError, World};
use crate::secrets::places;

/// Invalid times in milliseconds.
const WRONG_TIMES: [i64; 5] = [i64::MIN, -86_400_000, -1, 253_402_300_800_000, i64::MAX];

/// Header formats that contain a key.
const HEADERS: [(&str, &str); 4] = [
    ("x-api-key", "KEY"),
    ("authorization", "Bearer KEY"),
    ("cookie", "session=KEY; theme=dark"),
    ("x-auth", "Token token=\"KEY\""),
];

struct FixedClock(i64, SeededClock);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }

    fn random(&self) -> [u8; 10] {
        self.1.random()
    }
}

impl World {
    /// Commands that must fail.
    pub(super) fn failing(&mut self) -> Result<(), StepError> {
        let anywhere: [&[&str]; 19] = [
            &["run", "--provider", "nosuch", "hello"],
            &["run", "--provider", "nosuch", "--new", "hello"],
            &["undo", "-t", "nosuch"],
            &["jump", "999999"],
            &["restore", "999999"],
            &["restore", "1", "../outside/f0"],
            &["take", "switch", "nosuch"],
            &["take", "branch", "999999"],
            &["take", "fork", "999999"],
            &["entry", "edit", "999999", "x"],
            &["entry", "delete", "999999"],
            &["import", "nosuch.retake"],
            &["exec", "--", "/nosuch/program"],
            &["undo", "--expect", "999999"],
            &["entry", "add", "x", "--expect", "999999"],
            &["exec", "--expect", "999999", "--", "touch", "astray"],
            &["settings", "set", "nosuch", "1"],
            &["thread", "switch", "nosuch"],
            &["worktree", "add", "main", "../outside"],
        ];
        let without_project: [&[&str]; 9] = [
            &["run", "--provider", "nosuch", "hello"],
            &["exec", "--", "touch", "astray"],
            &["resume"],
            &["snapshot", "take"],
            &["status"],
            &["entry", "add", "x"],
            &["undo"],
            &["restore", "1"],
            &["take", "branch"],
        ];
        let line = if self.rng.once_in(3) {
            CommandLine::new("e", without_project[self.rng.index(without_project.len())])
        } else {
            CommandLine::new(self.some_project(), anywhere[self.rng.index(anywhere.len())])
        };
        self.run(&CommandLine { must_fail: true, ..line }).map(drop)
    }

    /// Moves a folder away, and puts another one in its place.
    pub(super) fn folder_gone(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let (project, title) = (thread.project.clone(), thread.title.clone());
        self.by_hand("outside", &format!("mv ../{project} ../{project}-away"))?;
        for again in [false, true] {
            if again {
                self.by_hand("outside", &format!("mkdir ../{project}; echo theirs > ../{project}/f0"))?;
            }
            let place = if self.rng.once_in(2) { "e" } else { "outside" };
            let refused: [&[&str]; 5] = [
                &["exec", "--", "sh", "-c", "echo astray > astray"],
                &["snapshot", "take"],
                &["status"],
                &["restore", "1"],
                &["run", "--approve", "all", "create f0 with astray"],
            ];
            let line = CommandLine::new(place, refused[self.rng.index(refused.len())]).with(&["-t", &title]);
            self.run(&CommandLine { must_fail: true, ..line })?;
            // An undo without files is allowed; no folder may change.
            self.run(&CommandLine::new(place, &["undo", "-t", &title]))?;
        }
        self.by_hand("outside", &format!("rm -rf ../{project}; mv ../{project}-away ../{project}"))
    }

    /// A new take must have the commit at which its source was last changed.
    pub(super) fn anchor(&mut self) -> Result<(), StepError> {
        let Some(thread) = self.threads.iter().rfind(|thread| thread.project == "c").cloned() else {
            return Ok(());
        };
        let commits = [self.commit(), self.commit()];
        let head = |commit: &str| format!("echo {commit} > .git/refs/heads/main");
        self.by_hand("c", &head(&commits[0]))?;
        self.run(&CommandLine::new("c", &["snapshot", "take", "-t", &thread.title]))?;
        let number = self.number().to_string();
        let added = self.run(&CommandLine::new("c", &["entry", "add", &number, "-t", &thread.title]))?;
        self.by_hand("c", &head(&commits[1]))?;
        let name = format!("take-{number}");
        let line =
            CommandLine::new("c", &["take", "branch", "--name", &name, "-t", &thread.title]).changing("c");
        let ran = self.run(&line)?;
        if !added.succeeded() || !ran.succeeded() {
            return Ok(());
        }
        self.add_take(&ran, &name);
        let timeline = Timeline::open(&self.store(), Rules::default())?;
        let reader = timeline.read()?;
        let id: ThreadId = thread.id.parse().map_err(|_| "not the id of a thread")?;
        let takes = reader.state(id)?.all_takes(&reader.queries())?;
        let take = takes.into_iter().find(|take| take.name == name).ok_or("the new take is not there")?;
        let found = take.git_commit.filter(|_| self.mistake != Some(ProgramFault::ForgetsTheCommit));
        self.summary.anchors += 1;
        if found.as_ref() == Some(&commits[0]) {
            return Ok(());
        }
        let expected = &commits[0];
        Err(StepError::Broken(format!(
            "the take {name} has the commit {found:?}, and its source was changed at {expected}"
        )))
    }

    fn commit(&mut self) -> String {
        let mut half = || u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64());
        format!("{:032x}{:032x}", half(), half())[..40].to_owned()
    }

    /// Setuid, setgid and sticky bits must be listed as not captured.
    pub(super) fn special_bits(&mut self) -> Result<(), StepError> {
        let thread = self.some_thread();
        let script = "for i in f0 run.sh; do [ -f $i ] || rm -rf $i; echo 1 > $i; done; chmod 4755 f0; chmod 2711 run.sh";
        self.by_hand(&thread.project, script)?;
        let line = CommandLine::new(&thread.project, &["status", "--excluded", "-t", &thread.title]);
        let ran = self.run(&line)?;
        if !ran.succeeded() {
            return Ok(());
        }
        let list = ran.output.answer["excluded"].as_array().cloned().unwrap_or_default();
        let (_, after) = ran.folder(&thread.project);
        for name in ["f0", "run.sh"] {
            let captured = after.get(std::path::Path::new(name)).is_some_and(|node| {
                node.mode & 0o7000 != 0
                    && matches!(&node.kind, Kind::File(bytes) if bytes.len() <= MAX_CAPTURED_BYTES)
            });
            let hidden = self.mistake == Some(ProgramFault::HidesBits);
            let listed =
                !hidden && list.iter().any(|left| left["path"] == name && left["reason"] == "mode_bits");
            if captured && !listed {
                return Err(StepError::Broken(format!(
                    "the mode bits of {name} are not listed as excluded: {list:?}"
                )));
            }
        }
        Ok(())
    }

    /// A key that the server repeats in an error must not be stored.
    pub(super) fn header_key(&mut self) -> Result<(), StepError> {
        let key = format!("key-{:016x}{:016x}", self.rng.next_u64(), self.rng.next_u64());
        let (header, value) = HEADERS[self.rng.index(HEADERS.len())];
        let status = self.rng.pick(&[400, 401, 403, 404, 422, 500]).copied().unwrap_or(400);
        let repeat = move |request: &Request, _: usize| {
            let value = request.header(header).unwrap_or_default();
            let body = serde_json::json!({ "error": { "type": "error", "message": format!("not allowed: {value}") } });
            Script::status(status, &body.to_string()).with_header("x-seen", value)
        };
        let server = FaultServer::start(repeat)?;
        let kept = fs::read_to_string(self.config())?;
        let value = value.replace("KEY", &key);
        let provider = format!(
            "[providers.echo]\nwire = \"chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nheaders = {{ {header} = '{value}' }}\n",
            server.url()
        );
        fs::write(self.config(), format!("{kept}{provider}"))?;
        self.script.push(format!("# A provider that repeats the header {header} with status {status}:"));
        self.key = Some(key.clone());
        let target = self.target();
        let line = target.line(&["run", "--provider", "echo", "hello"]);
        let ran = self.run(&CommandLine { failure_may_change: true, may_change: None, ..line });
        fs::write(self.config(), kept)?;
        self.key = None;
        let ran = ran?;
        self.summary.keys += 1;
        if ran.output.text.contains(&key) || ran.output.errors.contains(&key) {
            return Err(StepError::Broken(format!("the key in {header} is shown: {}", ran.output.errors)));
        }
        match places(&self.store(), key.as_bytes())?.first() {
            Some(place) => Err(StepError::Broken(format!("the key in {header} is in {place}"))),
            None => Ok(()),
        }
    }

    /// A wrong clock must not produce a damaged store.
    pub(super) fn wrong_clock(&mut self) -> Result<(), StepError> {
        let millis = WRONG_TIMES[self.rng.index(WRONG_TIMES.len())];
        let thread = self.some_thread();
        let id: ThreadId = thread.id.parse().map_err(|_| "not the id of a thread")?;
        let clock = Arc::new(FixedClock(millis, SeededClock::new(self.rng.next_u64())));
        let timeline = Timeline::open_with(&self.store(), Rules::default(), clock)?;
        let take = timeline.read()?.state(id)?.active;
        let entry = EntryVersion::from_text("User", "at another time", timeline.now());
        let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
        self.script.push(format!(
            "# An entry in {} by the library, with a clock that shows {millis} ms.",
            thread.title
        ));
        let done = timeline.change(id, add, Caller::human());
        let mut time = timeline.read()?.head(id)?.operation.time;
        drop(timeline);
        self.observed = self.observe()?;
        if self.mistake == Some(ProgramFault::WritesAnyTime) {
            time = Timestamp::from_millis(millis);
        }
        if done.is_ok() && !time.is_plausible_clock_time() {
            return Err(StepError::Broken(format!("the time {} was written", time.millis())));
        }
        self.verify()
    }

    /// The store verifies.
    pub(super) fn verify(&mut self) -> Result<(), StepError> {
        let ran = self.run(&CommandLine { reads: true, ..CommandLine::new("a", &["verify"]) })?;
        if ran.succeeded() {
            Ok(())
        } else {
            Err(StepError::Broken(format!("verify: {}{}", ran.output.text, ran.output.errors)))
        }
    }
}
