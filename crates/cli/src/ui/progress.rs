//! A progress bar for long operations.
//!
//! Shown on standard error, only on a terminal, and only after half a second: a bar that flashes briefly is worse than
//! none.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::sanitize::{Lines, sanitize};

const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    Person,
    /// `--quiet`, `--json`, or standard error is not a terminal.
    Nobody,
}

impl Audience {
    pub(crate) fn detect() -> Self {
        if io::stderr().is_terminal() { Self::Person } else { Self::Nobody }
    }
}

/// A running operation. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Yes,
    NotBefore(Instant),
    Never,
}

impl Progress {
    /// Starts an operation whose total is not known yet.
    pub(crate) fn begin(what: &str, audience: Audience) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = "{msg} {wide_bar} {human_pos}/{human_len} {eta}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template above is well formed"));
        bar.set_message(sanitize(what, Lines::Fold).into_owned());
        let shown = match audience {
            Audience::Person => Shown::NotBefore(Instant::now() + PATIENCE),
            Audience::Nobody => Shown::Never,
        };
        Self { bar, shown }
    }

    pub(crate) fn reach(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.shown = match self.shown {
            Shown::NotBefore(moment) if Instant::now() >= moment => {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
                Shown::Yes
            }
            other => other,
        };
    }

    /// Starts the next stage of the operation.
    pub(crate) fn turn_to(&mut self, what: &str) {
        self.bar.set_message(sanitize(what, Lines::Fold).into_owned());
        self.bar.set_position(0);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_work_shows_nothing() {
        let mut progress = Progress::begin("Verifying", Audience::Person);
        progress.reach(2, 3);
        assert!(matches!(progress.shown, Shown::NotBefore(_)));
        assert_eq!(progress.bar.position(), 2);
    }

    #[test]
    fn long_work_shows_a_bar_only_on_a_terminal() {
        for (audience, wanted) in [(Audience::Person, Shown::Yes), (Audience::Nobody, Shown::Never)] {
            let mut progress = Progress::begin("Verifying", audience);
            if let Shown::NotBefore(moment) = &mut progress.shown {
                *moment = Instant::now();
            }
            progress.reach(1, 2);
            assert_eq!(progress.shown, wanted);
        }
    }
}
