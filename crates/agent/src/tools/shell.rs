//! `shell`: runs a command.
//!
//! ```text
//!   setsid ─► /bin/sh -c COMMAND ─┬─► child ─► child       a new session and process group, no terminal
//!                                 └─► child &
//!        one pipe ◄── output of all processes, in order
//! ```
//!
//! The call ends when the shell exits, times out or is interrupted. It never waits for a process that only keeps the pipe
//! open. Remaining processes of the group are then killed, because their file changes would be attributed to a later
//! call. A process that must outlive its call has to leave the group (`setsid`, or a service manager).

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

/// Why a command ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    Interrupted,
}

/// A running command.
struct Running {
    child: Child,
    group: Group,
    /// The non-blocking read end of the pipe; `None` after end of file.
    pipe: Option<File>,
    buffer: Vec<u8>,
    decoder: Decoder,
    kept: Kept,
}

/// Poll interval of cancellation.
const PULSE: Duration = Duration::from_millis(20);
/// Grace period for remaining processes after the shell exits.
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
        // Drop it, because it holds the write end of the pipe.
        drop(prepared);
        let group = Group::led_by(child.id());
        let kept = Kept::new(room.limits.whole);
        let (pipe, buffer, decoder) = (Some(File::from(reader)), vec![0; 64 * 1024], Decoder::default());
        Ok(Self { child, group, pipe, buffer, decoder, kept })
    }

    /// Reads output until the command ends.
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
                // End of output: usually the shell exits at once.
                bench.cancel.wait_timeout(pause.min(left));
                pause = (pause * 2).min(PULSE);
            }
        }
    }

    /// Kills remaining processes and reads the rest of the output; returns whether any remained.
    fn close(&mut self, bench: &mut Bench<'_>, end: End) -> (Option<ExitStatus>, bool) {
        // Processes of a pipeline may end slightly after the shell and still write.
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

    /// Waits for all processes to end; returns whether they did in time.
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

    /// Whether the shell has exited.
    fn is_over(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    fn kill(&mut self) {
        self.group.kill();
        // A command interrupted at its start may not have a group yet.
        let _ = self.child.kill();
    }

    /// Reads available output, with a limit, because a command may write faster than this reads.
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
    /// The progress callback may panic; do not leave the command running.
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

/// Waits until the pipe is readable.
fn wait_for(pipe: &File, longest: Duration) {
    let mut wanted = [PollFd::new(pipe, PollFlags::IN)];
    let timeout = Timespec::try_from(longest).unwrap_or_default();
    // The next read shows the result.
    let _ = rustix::event::poll(&mut wanted, Some(&timeout));
}

/// A path to the open folder, through its descriptor if possible, so that it cannot be replaced before the command
/// starts.
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
    // Possibly megabytes: avoid a copy if the text is unchanged.
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
