//! Standard output that waits for a slow reader, but not beyond the wish to stop.
//!
//! A pipe that nobody reads makes a write wait for ever, in the middle of a turn. Output is therefore written in
//! pieces that fit into what the system says is free, with a look in between at whether the turn is to end. Then the
//! reader has a last moment, and is given up.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use retake_agent::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A pipe that is ready takes this much without waiting.
const PIECE: usize = 4096;
/// How often the wish to stop is looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long a reader has to read on once the turn is to end.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Standard output of a turn.
pub(crate) struct PatientStdout<'a> {
    cancel: &'a Cancel,
    /// When the reader is given up.
    until: Option<Instant>,
}

impl<'a> PatientStdout<'a> {
    pub(crate) fn new(cancel: &'a Cancel) -> Self {
        Self { cancel, until: None }
    }

    /// Waits until something can be written; fails if the reader is given up.
    fn wait(&mut self) -> io::Result<()> {
        let output = io::stdout();
        loop {
            let mut wanted = [PollFd::new(&output, PollFlags::OUT)];
            match poll(&mut wanted, Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                // Ready, or broken, which the write reports.
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.cancel.is_set() {
                let until = *self.until.get_or_insert_with(|| Instant::now() + LAST_MOMENT);
                if Instant::now() >= until {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }
}

impl Write for PatientStdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait()?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        let mut output = io::stdout().lock();
        // Past the buffer of standard output, which would wait until it has written all of it.
        output.flush()?;
        Ok(rustix::io::write(&output, piece)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
