//! Output that waits for a slow reader until the turn is cancelled.
//!
//! Writing to a pipe or terminal whose reader has stopped blocks forever, in the middle of a turn. Output is
//! therefore written in chunks that fit into the free buffer, checking for cancellation in between. After
//! cancellation the reader gets a short grace period.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use retake_agent::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// A pipe that polls as ready accepts this much without blocking.
const CHUNK_BYTES: usize = 4096;
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Delay before retrying a terminal that is ready but has too little space for the next character.
const FULL_TERMINAL_DELAY: Duration = Duration::from_millis(10);
const READER_GRACE: Duration = Duration::from_secs(2);

/// Standard output or standard error of a turn.
pub(crate) struct CancellableOutput<'a> {
    stream: Stream,
    cancel: &'a Cancel,
    /// The end of the grace period.
    until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl<'a> CancellableOutput<'a> {
    pub(crate) fn stdout(cancel: &'a Cancel) -> Self {
        Self { stream: Stream::Output, cancel, until: None }
    }

    pub(crate) fn stderr(cancel: &'a Cancel) -> Self {
        Self { stream: Stream::Error, cancel, until: None }
    }

    /// Waits until the stream is writable; fails after the grace period.
    fn wait(&mut self, output: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let mut wanted = [PollFd::new(&output, PollFlags::OUT)];
            match poll(&mut wanted, Some(&POLL_INTERVAL)) {
                Ok(0) | Err(Errno::INTR) => self.check_deadline()?,
                // Ready, or closed, which the write reports.
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn check_deadline(&mut self) -> io::Result<()> {
        if self.cancel.is_set() {
            let until = *self.until.get_or_insert_with(|| Instant::now() + READER_GRACE);
            if Instant::now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    fn write_piece(&mut self, output: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(output)?;
            match rustix::io::write(output, &bytes[..bytes.len().min(CHUNK_BYTES)]) {
                Err(Errno::AGAIN) => {
                    self.check_deadline()?;
                    std::thread::sleep(FULL_TERMINAL_DELAY);
                }
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }
}

impl Stream {
    /// The same terminal, opened in non-blocking mode: a terminal polls as ready as soon as it accepts one byte. The
    /// standard streams themselves stay blocking, since other processes share them.
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

impl Write for CancellableOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let terminal = self.stream.terminal();
        match self.stream {
            Stream::Output => {
                // Bypasses the buffer, whose flush would block.
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
