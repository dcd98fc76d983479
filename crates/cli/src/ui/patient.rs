//! Output that waits for a slow reader, but not beyond the wish to stop.
//!
//! A pipe or a terminal that nobody reads makes a write wait for ever, in the middle of a turn. Output is therefore
//! written in pieces that fit into what the system says is free, with a look in between at whether the turn is to end.
//! Then the reader has a last moment, and is given up.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use retake_agent::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// A pipe that is ready takes this much without waiting.
const PIECE: usize = 4096;
/// How often the wish to stop is looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long to wait for a terminal that is ready, but not for as much as the next character needs.
const NEARLY_FULL: Duration = Duration::from_millis(10);
/// How long a reader has to read on once the turn is to end.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Standard output or standard error of a turn.
pub(crate) struct PatientOutput<'a> {
    stream: Stream,
    cancel: &'a Cancel,
    /// When the reader is given up.
    until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl<'a> PatientOutput<'a> {
    pub(crate) fn stdout(cancel: &'a Cancel) -> Self {
        Self { stream: Stream::Output, cancel, until: None }
    }

    pub(crate) fn stderr(cancel: &'a Cancel) -> Self {
        Self { stream: Stream::Error, cancel, until: None }
    }

    /// Waits until something can be written; fails if the reader is given up.
    fn wait(&mut self, output: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let mut wanted = [PollFd::new(&output, PollFlags::OUT)];
            match poll(&mut wanted, Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => self.check_given_up()?,
                // Ready, or broken, which the write reports.
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn check_given_up(&mut self) -> io::Result<()> {
        if self.cancel.is_set() {
            let until = *self.until.get_or_insert_with(|| Instant::now() + LAST_MOMENT);
            if Instant::now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    fn write_piece(&mut self, output: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(output)?;
            match rustix::io::write(output, &bytes[..bytes.len().min(PIECE)]) {
                Err(Errno::AGAIN) => {
                    self.check_given_up()?;
                    std::thread::sleep(NEARLY_FULL);
                }
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }
}

impl Stream {
    /// The same terminal, opened so that a write never waits: a terminal is ready as soon as it takes one byte. Only this
    /// one is opened so, since the others are shared with the programs around.
    fn terminal(self) -> Option<BorrowedFd<'static>> {
        static TERMINALS: [OnceLock<Option<OwnedFd>>; 2] = [OnceLock::new(), OnceLock::new()];
        let open = || {
            let name = match self {
                Self::Output => rustix::termios::ttyname(io::stdout(), Vec::new()),
                Self::Error => rustix::termios::ttyname(io::stderr(), Vec::new()),
            };
            let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(name.ok()?, flags, Mode::empty()).ok()
        };
        TERMINALS[usize::from(self == Self::Error)].get_or_init(open).as_ref().map(AsFd::as_fd)
    }
}

impl Write for PatientOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let terminal = self.stream.terminal();
        match self.stream {
            Stream::Output => {
                // Past its buffer, which would wait until it has written all of it.
                let mut output = io::stdout();
                output.flush()?;
                self.write_piece(terminal.unwrap_or(output.as_fd()), bytes)
            }
            Stream::Error => self.write_piece(terminal.unwrap_or(io::stderr().as_fd()), bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
