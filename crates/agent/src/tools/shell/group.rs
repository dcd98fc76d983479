//! The processes of one command, all together.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal};

/// The group that a command and its children are in, unless they leave it.
pub(super) struct Group(Option<Pid>);

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
    /// The group that a child leads, or is about to.
    pub(super) fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(Pid::from_raw))
    }

    /// Whether anyone is in it. The number stays theirs as long as someone is.
    pub(super) fn is_alive(&self) -> bool {
        self.0.is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
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
