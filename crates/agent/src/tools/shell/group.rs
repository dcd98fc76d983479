//! The process group of a command.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal};

/// The process group of a command and its children.
pub(in crate::tools) struct ProcessGroup(Option<Pid>);

/// Absolute paths of `setsid`, because `PATH` may contain folders of the project.
const SETSID: [&str; 2] = ["/usr/bin/setsid", "/bin/setsid"];

/// A shell in a new process group and, if `setsid` exists, a new session without a terminal. Without that
/// program it would need unsafe code between fork and exec.
pub(super) fn in_new_group() -> Command {
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

impl ProcessGroup {
    /// The group with this leader.
    pub(in crate::tools) fn of_leader(process: u32) -> Self {
        Self(i32::try_from(process).ok().and_then(Pid::from_raw))
    }

    /// Whether any process of the group is running. The id is not reused while one exists.
    pub(in crate::tools) fn is_alive(&self) -> bool {
        let Some(leader) = self.0 else { return false };
        // Zombies count as members until they are reaped, which containers often never do, so check each
        // process.
        rustix::process::test_kill_process_group(leader).is_ok() && any_running(leader).unwrap_or(true)
    }

    /// Sends SIGTERM to the group.
    pub(super) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
        // A stopped process handles the signal only after SIGCONT.
        self.signal(Signal::CONT);
    }

    /// Kills the group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let Some(leader) = self.0 else { return };
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Whether any process of a group is alive, according to `/proc`.
fn any_running(leader: Pid) -> io::Result<bool> {
    for process in fs::read_dir("/proc")? {
        let process = process?;
        if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        // The process may have ended meanwhile.
        let Ok(text) = fs::read(process.path().join("stat")) else { continue };
        if is_running_in(&String::from_utf8_lossy(&text), leader.as_raw_pid()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a stat line such as `7 (name) S 1 7 7 …` shows a live process of the group. Names may contain
/// anything, so search for the last bracket.
fn is_running_in(line: &str, group: i32) -> bool {
    let mut fields = line.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let state = fields.next().unwrap_or("X");
    let its_group = fields.nth(1).and_then(|number| number.parse().ok());
    !matches!(state, "Z" | "X" | "x") && its_group == Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombies_do_not_count_as_running() {
        let check = |line: &str, expected: bool| assert_eq!(is_running_in(line, 7), expected, "{line}");
        check("8 (sleep) S 1 7 7 0 -1", true);
        check("8 (a) b) R (c) T 1 7 7 0 -1", true);
        check("8 (sleep) Z 1 7 7 0 -1", false);
        check("8 (sleep) S 7 8 7 0 -1", false);
        check("8 (Z) 7) S 1 9 7 0 -1", false);
        check("", false);
    }
}
