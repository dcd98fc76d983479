//! `shell`: a command.
//!
//! ```text
//!   setsid ─► /bin/sh -c COMMAND ─┬─► child ─► child       one session and group of their own, no terminal
//!                                 └─► child &
//!        one pipe ◄── what all of them write, in the order in which they write it
//! ```
//!
//! It is over when the shell is over, or out of time, or interrupted, whichever comes first, and never waits for
//! somebody who only keeps the pipe open. Whatever is then left of the group is stopped: a process that goes on
//! writing files would do so in the name of a later call. One that has to outlive its call leaves the group
//! (`setsid`, or a service manager).

mod environment;
pub(super) mod group;
mod kept;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Value, json};

use super::beneath::Links;
use super::text::{Decoder, capped};
use super::{Bench, Failure, Output, Progress, Reach, Room, Spot, Tool, beneath, input};
use group::Group;
use kept::Kept;

pub(super) const TOOL: Tool = Tool {
    name: "shell",
    description: "Run a command with /bin/sh in the project folder. There is no terminal and no input. \
                  What the command leaves running in the background is stopped when it ends.",
    reach: Reach::Runs,
    schema,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    directory: Option<String>,
    timeout: Option<u64>,
}

fn schema() -> Value {
    input::object(
        &["command"],
        json!({
            "command": { "type": "string", "description": "The command line." },
            "directory": { "type": "string", "description": "The folder to run it in; the project folder if not given." },
            "timeout": { "type": "integer", "minimum": 1, "description": "Seconds until it is stopped; 120 if not given, 600 at most." },
        }),
    )
}

fn run(input: &Value, bench: &mut Bench<'_>) -> Result<Output, Failure> {
    let input: Input = input::parse(input)?;
    if input.command.trim().is_empty() || input.command.contains('\0') {
        return Err(Failure("The command is empty, or holds a zero byte.".to_owned()));
    }
    let limits = &bench.room.limits;
    let time = input
        .timeout
        .map_or(limits.time, |seconds| Duration::from_secs(seconds.max(1)))
        .min(limits.longest_time);
    let spot = bench.room.spot(input.directory.as_deref().unwrap_or("."))?;
    let mut running = Running::start(&input.command, &spot, bench.room)?;
    let end = running.watch(bench, Instant::now() + time);
    let (status, left) = running.close(bench, end);
    let kept = std::mem::take(&mut running.kept);
    Ok(report(kept, status, left, end, time, bench.room))
}

/// Why it was over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    Interrupted,
}

/// A command that runs.
struct Running {
    child: Child,
    group: Group,
    /// The end of the pipe that is read; never waits. None once everyone has closed the other end.
    pipe: Option<File>,
    buffer: Vec<u8>,
    decoder: Decoder,
    kept: Kept,
}

/// How often it is asked whether it should stop.
const PULSE: Duration = Duration::from_millis(20);
/// How long those have to end by themselves who are still there when the shell has ended.
const MOMENT: Duration = Duration::from_millis(100);

impl Running {
    fn start(command: &str, spot: &Spot, room: &Room) -> Result<Self, Failure> {
        let folder = beneath::folder(&room.root, spot, Links::Follow)?;
        let (reader, writer) = io::pipe()?;
        let reader = OwnedFd::from(reader);
        let flags = rustix::fs::fcntl_getfl(&reader)?;
        rustix::fs::fcntl_setfl(&reader, flags | OFlags::NONBLOCK)?;
        let mut prepared = group::of_its_own();
        prepared
            .args(["-c", "--", command])
            .current_dir(directory(&folder, spot, room))
            .env_clear()
            .envs(environment::visible(room))
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child =
            prepared.spawn().map_err(|error| Failure(format!("The command cannot be started: {error}.")))?;
        // It holds the other end of the pipe, which would never be closed.
        drop(prepared);
        let group = Group::led_by(child.id());
        let kept = Kept::new(room.limits.whole);
        let (pipe, buffer, decoder) = (Some(File::from(reader)), vec![0; 64 * 1024], Decoder::default());
        Ok(Self { child, group, pipe, buffer, decoder, kept })
    }

    /// Until it is over, for whatever reason.
    fn watch(&mut self, bench: &mut Bench<'_>, deadline: Instant) -> End {
        let mut pause = Duration::from_millis(1);
        loop {
            self.drain(bench);
            if self.is_over() {
                return End::Exited;
            }
            if bench.cancel.is_set() {
                return End::Interrupted;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return End::TimedOut;
            }
            if let Some(pipe) = &self.pipe {
                wait_for(pipe, PULSE.min(left));
            } else {
                // Everything is written, and as a rule the end comes at once.
                bench.cancel.wait_timeout(pause.min(left));
                pause = (pause * 2).min(PULSE);
            }
        }
    }

    /// Stops what is left, and takes the last of what was written. Whether anything was left.
    fn close(&mut self, bench: &mut Bench<'_>, end: End) -> (Option<ExitStatus>, bool) {
        // The other end of a pipe may be a moment behind the shell that began it, and still has something to say.
        let by_itself = end == End::Exited && self.ends_within(bench, MOMENT);
        if !by_itself {
            let limits = &bench.room.limits;
            let grace = if end == End::Interrupted { limits.interrupted_grace } else { limits.grace };
            self.group.ask_to_stop();
            if !self.ends_within(bench, grace) {
                self.kill();
            }
        }
        let status = self.child.wait().ok();
        self.drain(bench);
        let rest = std::mem::take(&mut self.decoder).finish();
        tell(bench, rest);
        (status, !by_itself)
    }

    /// Whether all of them are gone, sooner or later in that time.
    fn ends_within(&mut self, bench: &mut Bench<'_>, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            self.drain(bench);
            if self.is_over() && !self.group.is_alive() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the shell itself is gone.
    fn is_over(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    fn kill(&mut self) {
        self.group.kill();
        // Interrupted at its very start it may not have a group yet.
        let _ = self.child.kill();
    }

    /// Takes what is there to be read, but not for ever: there are those who write faster than anyone reads.
    fn drain(&mut self, bench: &mut Bench<'_>) {
        const MOST: usize = 64;
        for _ in 0..MOST {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(&mut self.buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    self.kept.push(&self.buffer[..length]);
                    tell(bench, self.decoder.push(&self.buffer[..length]));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
    }
}

impl Drop for Running {
    /// Whoever hears of the progress may break down, and must not leave a command behind that nobody knows of.
    fn drop(&mut self) {
        if !self.is_over() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn tell(bench: &Bench<'_>, chunk: String) {
    if !chunk.is_empty() {
        bench.report(Progress { chunk, ..Progress::default() });
    }
}

/// Waits until there is something to read.
fn wait_for(pipe: &File, longest: Duration) {
    let mut wanted = [PollFd::new(pipe, PollFlags::IN)];
    let timeout = Timespec::try_from(longest).unwrap_or_default();
    // Whether it came or not is seen by reading.
    let _ = rustix::event::poll(&mut wanted, Some(&timeout));
}

/// A path to the folder that is open: by its descriptor where there are such paths, so that it cannot be another
/// one by the time the command starts.
fn directory(folder: &OwnedFd, spot: &Spot, room: &Room) -> PathBuf {
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()));
    if by_descriptor.exists() {
        return by_descriptor;
    }
    match spot.path() {
        None => room.directory.clone(),
        Some(path) => {
            use std::os::unix::ffi::OsStrExt as _;
            room.directory.join(Path::new(std::ffi::OsStr::from_bytes(&path.bytes())))
        }
    }
}

fn report(
    kept: Kept,
    status: Option<ExitStatus>,
    left: bool,
    end: End,
    time: Duration,
    room: &Room,
) -> Output {
    // There may be megabytes of it: no copy is made where the text is kept as it is.
    let mut output = match String::from_utf8(kept.into_bytes()) {
        Ok(text) => capped(text, room.limits.text),
        Err(bad) => {
            let shown = capped(String::from_utf8_lossy(bad.as_bytes()).into_owned(), room.limits.text);
            Output { whole: Some(bad.into_bytes()), ..shown }
        }
    };
    if !output.text.is_empty() && !output.text.ends_with('\n') {
        output.text.push('\n');
    }
    output.failed = end != End::Exited || !status.is_some_and(|status| status.success());
    let how = match (end, status) {
        (End::TimedOut, _) => format!("[Stopped after {} seconds: out of time]", time.as_secs()),
        (End::Interrupted, _) => "[Interrupted before it was done]".to_owned(),
        (End::Exited, Some(status)) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("[Exit code {code}]"),
            (None, Some(signal)) => format!("[Ended by signal {signal}]"),
            (None, None) => "[Ended]".to_owned(),
        },
        (End::Exited, None) => "[Ended; how is not known]".to_owned(),
    };
    output.text.push_str(&how);
    if left && end == End::Exited {
        output.text.push_str("\n[What it left running in the background was stopped]");
    }
    output
}
