//! A progress bar for long operations.
//!
//! Shown on standard error, only on a terminal, and only after half a second: a bar that flashes briefly is worse than
//! none.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::sanitize::{LineBreaks, sanitize};

const SHOW_AFTER: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    Person,
    /// `--quiet`, `--json`, or standard error is not a terminal.
    Nobody,
}

impl ProgressMode {
    pub(crate) fn detect() -> Self {
        if io::stderr().is_terminal() { Self::Person } else { Self::Nobody }
    }
}

/// A running operation. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: BarState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarState {
    Yes,
    NotBefore(Instant),
    Never,
}

impl Progress {
    /// Starts an operation whose total is not known yet.
    pub(crate) fn begin(what: &str, observer: ProgressMode) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = "{msg} {wide_bar} {human_pos}/{human_len} {eta}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template above is well formed"));
        bar.set_message(sanitize(what, LineBreaks::Fold).into_owned());
        let shown = match observer {
            ProgressMode::Person => BarState::NotBefore(Instant::now() + SHOW_AFTER),
            ProgressMode::Nobody => BarState::Never,
        };
        Self { bar, shown }
    }

    pub(crate) fn set_progress(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.shown = match self.shown {
            BarState::NotBefore(moment) if Instant::now() >= moment => {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
                BarState::Yes
            }
            other => other,
        };
    }

    /// Starts the next stage of the operation.
    pub(crate) fn set_stage(&mut self, what: &str) {
        self.bar.set_message(sanitize(what, LineBreaks::Fold).into_owned());
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
    fn quick_work_shows_no_progress() {
        let mut progress = Progress::begin("Verifying", ProgressMode::Person);
        progress.set_progress(2, 3);
        assert!(matches!(progress.shown, BarState::NotBefore(_)));
        assert_eq!(progress.bar.position(), 2);
    }

    #[test]
    fn long_work_shows_a_bar_only_on_a_terminal() {
        for (observer, wanted) in
            [(ProgressMode::Person, BarState::Yes), (ProgressMode::Nobody, BarState::Never)]
        {
            let mut progress = Progress::begin("Verifying", observer);
            if let BarState::NotBefore(moment) = &mut progress.shown {
                *moment = Instant::now();
            }
            progress.set_progress(1, 2);
            assert_eq!(progress.shown, wanted);
        }
    }
}
