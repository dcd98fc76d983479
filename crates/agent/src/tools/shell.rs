//! `shell`: runs a command.
//!
//! ```text
//!   setsid ─► /bin/sh -c COMMAND ─┬─► child ─► child       a new session and process group, no terminal
//!                                 └─► child &
//!        one pipe ◄── output of all processes, in order
//! ```
//!
//! The call ends when the shell exits, times out or is interrupted. It never waits for a process that only
//! keeps the pipe open. Remaining processes of the group are then killed, because their file changes would be
//! attributed to a later call. A process that must outlive its call has to leave the group (`setsid`, or a
//! service manager).

mod environment;
pub(super) mod group;
mod output_buffer;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::openat::SymlinkPolicy;
use super::text::{Decoder, capped};
use super::{Output, Progress, Tool, ToolAccess, ToolContext, ToolError, ToolPath, ToolRun, input, openat};
use group::ProcessGroup;
use output_buffer::OutputBuffer;

pub(super) const TOOL: Tool = Tool {
    name: "shell",
    description: "Run a command with /bin/sh in the project folder. There is no terminal and no input. \
                  Background processes are stopped when the command ends.",
    access: ToolAccess::Runs,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command line.
    command: String,
    /// The folder to run it in; the project folder if not given.
    directory: Option<String>,
    /// Seconds until it is stopped; 120 if not given, 600 at most.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let input: Input = input::parse(input)?;
    if input.command.trim().is_empty() || input.command.contains('\0') {
        return Err(ToolError("The command is empty or contains a zero byte.".to_owned()));
    }
    let limits = &run.context.limits;
    let time = input
        .timeout
        .map_or(limits.time, |seconds| Duration::from_secs(seconds.max(1)))
        .min(limits.longest_time);
    let tool_path = run.context.tool_path(input.directory.as_deref().unwrap_or("."))?;
    let mut running = RunningCommand::start(&input.command, &tool_path, run.context)?;
    let end = running.watch(run, Instant::now() + time);
    let (status, left) = running.close(run, end);
    let kept = std::mem::take(&mut running.kept);
    Ok(report(kept, status, left, end, time, run.context))
}

/// Why a command ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandEnd {
    Exited,
    TimedOut,
    Interrupted,
}

/// A running command.
struct RunningCommand {
    child: Child,
    group: ProcessGroup,
    /// The non-blocking read end of the pipe; `None` after end of file.
    pipe: Option<File>,
    buffer: Vec<u8>,
    decoder: Decoder,
    kept: OutputBuffer,
}

/// Poll interval of cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Grace period for remaining processes after the shell exits.
const EXIT_GRACE: Duration = Duration::from_millis(100);

impl RunningCommand {
    fn start(command: &str, tool_path: &ToolPath, context: &ToolContext) -> Result<Self, ToolError> {
        let folder = openat::folder(&context.root, tool_path, SymlinkPolicy::Follow)?;
        let (reader, writer) = io::pipe()?;
        let reader = OwnedFd::from(reader);
        let flags = rustix::fs::fcntl_getfl(&reader)?;
        rustix::fs::fcntl_setfl(&reader, flags | OFlags::NONBLOCK)?;
        let mut prepared = group::in_new_group();
        prepared
            .args(["-c", "--", command])
            .current_dir(directory(&folder, tool_path, context))
            .env_clear()
            .envs(environment::visible(context))
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = prepared
            .spawn()
            .map_err(|error| ToolError(format!("The command cannot be started: {error}.")))?;
        // Drop it, because it holds the write end of the pipe.
        drop(prepared);
        let group = ProcessGroup::of_leader(child.id());
        let kept = OutputBuffer::new(context.limits.whole);
        let (pipe, buffer, decoder) = (Some(File::from(reader)), vec![0; 64 * 1024], Decoder::default());
        Ok(Self { child, group, pipe, buffer, decoder, kept })
    }

    /// Reads output until the command ends.
    fn watch(&mut self, run: &mut ToolRun<'_>, deadline: Instant) -> CommandEnd {
        let mut pause = Duration::from_millis(1);
        loop {
            self.drain(run);
            if self.has_exited() {
                return CommandEnd::Exited;
            }
            if run.cancel.is_set() {
                return CommandEnd::Interrupted;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return CommandEnd::TimedOut;
            }
            if let Some(pipe) = &self.pipe {
                wait_for(pipe, POLL_INTERVAL.min(left));
            } else {
                // End of output: usually the shell exits at once.
                run.cancel.wait_timeout(pause.min(left));
                pause = (pause * 2).min(POLL_INTERVAL);
            }
        }
    }

    /// Kills remaining processes and reads the rest of the output; returns whether any remained.
    fn close(&mut self, run: &mut ToolRun<'_>, end: CommandEnd) -> (Option<ExitStatus>, bool) {
        // Processes of a pipeline may end slightly after the shell and still write.
        let by_itself = end == CommandEnd::Exited && self.wait_for_exit(run, EXIT_GRACE);
        if !by_itself {
            let limits = &run.context.limits;
            let grace = if end == CommandEnd::Interrupted { limits.interrupted_grace } else { limits.grace };
            self.group.ask_to_stop();
            if !self.wait_for_exit(run, grace) {
                self.kill();
            }
        }
        let status = self.child.wait().ok();
        self.drain(run);
        let rest = std::mem::take(&mut self.decoder).finish();
        report_output(run, rest);
        (status, !by_itself)
    }

    /// Waits for all processes to end; returns whether they did in time.
    fn wait_for_exit(&mut self, run: &mut ToolRun<'_>, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            self.drain(run);
            if self.has_exited() && !self.group.is_alive() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the shell has exited.
    fn has_exited(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    fn kill(&mut self) {
        self.group.kill();
        // A command interrupted at its start may not have a group yet.
        let _ = self.child.kill();
    }

    /// Reads available output, with a limit, because a command may write faster than this reads.
    fn drain(&mut self, run: &mut ToolRun<'_>) {
        const MOST: usize = 64;
        for _ in 0..MOST {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(&mut self.buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    self.kept.push(&self.buffer[..length]);
                    report_output(run, self.decoder.push(&self.buffer[..length]));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
    }
}

impl Drop for RunningCommand {
    /// The progress callback may panic; do not leave the command running.
    fn drop(&mut self) {
        if !self.has_exited() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn report_output(run: &ToolRun<'_>, chunk: String) {
    if !chunk.is_empty() {
        run.report(Progress { chunk, ..Progress::default() });
    }
}

/// Waits until the pipe is readable.
fn wait_for(pipe: &File, longest: Duration) {
    let mut wanted = [PollFd::new(pipe, PollFlags::IN)];
    let timeout = Timespec::try_from(longest).unwrap_or_default();
    // The next read shows the result.
    let _ = rustix::event::poll(&mut wanted, Some(&timeout));
}

/// A path to the open folder, through its descriptor if possible, so that it cannot be replaced before the
/// command starts.
fn directory(folder: &OwnedFd, tool_path: &ToolPath, context: &ToolContext) -> PathBuf {
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()));
    if by_descriptor.exists() {
        return by_descriptor;
    }
    match tool_path.path() {
        None => context.directory.clone(),
        Some(path) => {
            use std::os::unix::ffi::OsStrExt as _;
            context.directory.join(Path::new(std::ffi::OsStr::from_bytes(&path.bytes())))
        }
    }
}

fn report(
    kept: OutputBuffer,
    status: Option<ExitStatus>,
    left: bool,
    end: CommandEnd,
    time: Duration,
    context: &ToolContext,
) -> Output {
    // Possibly megabytes: avoid a copy if the text is unchanged.
    let mut output = match String::from_utf8(kept.into_bytes()) {
        Ok(text) => capped(text, context.limits.text),
        Err(bad) => {
            let shown = capped(String::from_utf8_lossy(bad.as_bytes()).into_owned(), context.limits.text);
            Output { whole: Some(bad.into_bytes()), ..shown }
        }
    };
    if !output.text.is_empty() && !output.text.ends_with('\n') {
        output.text.push('\n');
    }
    output.failed = end != CommandEnd::Exited || !status.is_some_and(|status| status.success());
    let how = match (end, status) {
        (CommandEnd::TimedOut, _) => format!("[Stopped after {} seconds: out of time]", time.as_secs()),
        (CommandEnd::Interrupted, _) => "[Interrupted]".to_owned(),
        (CommandEnd::Exited, Some(status)) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("[Exit code {code}]"),
            (None, Some(signal)) => format!("[Ended by signal {signal}]"),
            (None, None) => "[Ended]".to_owned(),
        },
        (CommandEnd::Exited, None) => "[Ended; the status is unknown]".to_owned(),
    };
    output.text.push_str(&how);
    if left && end == CommandEnd::Exited {
        output.text.push_str("\n[Its background processes were stopped]");
    }
    output
}
