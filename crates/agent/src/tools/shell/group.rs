//! The processes of one command, all together.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal};

/// The group that a command and its children are in, unless they leave it.
pub(in crate::tools) struct Group(Option<Pid>);

/// Where the program is that starts another in a session of its own. Not looked for along `PATH`: a project may
/// have put its own folders there.
const SETSID: [&str; 2] = ["/usr/bin/setsid", "/bin/setsid"];

/// A shell that will be in a group of its own; in a session of its own too, without a terminal, where the system
/// has the program for that. To do it without one would take code between fork and exec, which is not safe code.
pub(super) fn of_its_own() -> Command {
    const SHELL: &str = "/bin/sh";
    if let Some(program) = SETSID.iter().find(|program| Path::new(program).exists()) {
        let mut command = Command::new(program);
        command.arg(SHELL);
        command
    } else {
        let mut command = Command::new(SHELL);
        command.process_group(0);
        command
    }
}

impl Group {
    /// The group that the process with that number leads, or is about to.
    pub(in crate::tools) fn led_by(process: u32) -> Self {
        Self(i32::try_from(process).ok().and_then(Pid::from_raw))
    }

    /// Whether anyone in it still runs. The number stays theirs as long as someone is in it.
    pub(in crate::tools) fn is_alive(&self) -> bool {
        let Some(leader) = self.0 else { return false };
        // Those who are dead count as long as nobody has asked how they died. In a container there is often no
        // one who does, so that only looking at each tells.
        rustix::process::test_kill_process_group(leader).is_ok() && any_runs(leader).unwrap_or(true)
    }

    /// Asks all of them to stop.
    pub(super) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
        // One that stands still hears nothing until it goes on.
        self.signal(Signal::CONT);
    }

    /// Stops all of them.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let Some(leader) = self.0 else { return };
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Whether any process of a group is not dead yet, where the system tells by files.
fn any_runs(leader: Pid) -> io::Result<bool> {
    for process in fs::read_dir("/proc")? {
        let process = process?;
        if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        // One that is gone by now does not run.
        let Ok(text) = fs::read(process.path().join("stat")) else { continue };
        if runs_in(&String::from_utf8_lossy(&text), leader.as_raw_pid()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a line such as `7 (name) S 1 7 7 …` is about a process of that group that is not dead. The name may
/// hold anything, so the last bracket counts.
fn runs_in(line: &str, group: i32) -> bool {
    let mut fields = line.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let state = fields.next().unwrap_or("X");
    let its_group = fields.nth(1).and_then(|number| number.parse().ok());
    !matches!(state, "Z" | "X" | "x") && its_group == Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_do_not_run() {
        let check = |line: &str, expected: bool| assert_eq!(runs_in(line, 7), expected, "{line}");
        check("8 (sleep) S 1 7 7 0 -1", true);
        check("8 (a) b) R (c) T 1 7 7 0 -1", true);
        check("8 (sleep) Z 1 7 7 0 -1", false);
        check("8 (sleep) S 7 8 7 0 -1", false);
        check("8 (Z) 7) S 1 9 7 0 -1", false);
        check("", false);
    }
}
