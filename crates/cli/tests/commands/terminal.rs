//! The program on a real terminal that a test types on and reads.

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::Sandbox;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(30);

/// Rows and columns of the terminal.
const SIZE: (u16, u16) = (40, 80);

/// The program on a terminal, and its screen.
pub(crate) struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::program(env!("CARGO_BIN_EXE_retake"), sandbox, arguments, variables)
    }

    /// Starts another program, such as a shell.
    pub(crate) fn program(
        name: &str,
        sandbox: &Sandbox,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let size = PtySize { rows: SIZE.0, cols: SIZE.1, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("the system has a terminal left");
        let mut command = CommandBuilder::new(name);
        command.args(arguments);
        command.cwd(sandbox.project());
        command.env_clear();
        for (name, value) in sandbox.environment() {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program was just built");
        let mut reader = pair.master.try_clone_reader().expect("the terminal can be read");
        let keyboard = pair.master.take_writer().expect("the terminal can be written to");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let screen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                screen.lock().expect("no panic").extend_from_slice(&piece[..count]);
            }
        });
        Self { master: pair.master, keyboard, child, shown }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}\n"));
    }

    /// Types keys, without Enter.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("someone listens");
    }

    /// Everything that was written, with its escape sequences.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("no panic")).into_owned()
    }

    /// The lines on the screen.
    pub(crate) fn screen(&self) -> Vec<String> {
        let size = |number| NonZero::new(number).expect("a terminal has a size");
        let mut parser = vt100::Parser::new(size(SIZE.0), size(SIZE.1), 0);
        parser.process(&self.shown.lock().expect("no panic"));
        let mut lines: Vec<String> =
            parser.screen().rows(0, SIZE.1).map(|line| line.trim_end().to_owned()).collect();
        lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        lines
    }

    /// Waits until the last line on the screen is this one.
    pub(crate) fn wait_for_last(&self, line: &str) {
        self.wait_until_last(|last| last == line);
    }

    /// Waits until the last line on the screen is accepted.
    pub(crate) fn wait_until_last(&self, accepts: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !self.screen().last().is_some_and(|last| accepts(last)) {
            assert!(Instant::now() < until, "the last line is not as expected: {:#?}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The exit code, within a few seconds.
    pub(crate) fn exit_code(&mut self) -> u32 {
        assert!(self.ends(), "it goes on: {:#?}", self.screen());
        self.child.try_wait().expect("a child can be asked").expect("it has ended").exit_code()
    }

    /// Waits until a text was shown this many times.
    pub(crate) fn wait_for(&self, text: &str, times: usize) {
        let seen = || self.shown().matches(text).count() >= times;
        wait_until(&format!("{text:?} is shown"), seen);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.process_id().expect("it runs");
        kill_process(process(id), signal).expect("it runs");
    }

    /// Whether it ends within a few seconds.
    pub(crate) fn ends(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.child.try_wait().expect("a child can be asked").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        false
    }

    pub(crate) fn echoes(&self) -> bool {
        let modes = self.master.get_termios().expect("a terminal has modes");
        // Other flags start with the same letters.
        format!("{:?}", modes.local_flags)
            .split(|mark: char| !mark.is_alphanumeric())
            .any(|flag| flag == "ECHO")
    }
}

pub(crate) fn process(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("a process number")).expect("a process number")
}

pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
