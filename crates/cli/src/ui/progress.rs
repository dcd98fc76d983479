//! Progress of work that takes long enough to wonder about.
//!
//! A bar on standard error, only where a person sees it, and only once the work has taken half a second: most
//! commands end before, and a bar that flashes up is worse than none.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::sanitize::{Lines, sanitize};

const PATIENCE: Duration = Duration::from_millis(500);

/// Whether there is anyone to show progress to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    Person,
    /// `--quiet`, `--json`, or standard error is not a terminal.
    Nobody,
}

impl Audience {
    /// A person, if standard error is a terminal.
    pub(crate) fn detect() -> Self {
        if io::stderr().is_terminal() { Self::Person } else { Self::Nobody }
    }
}

/// One piece of work under way. Dropping it takes the bar away.
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
    /// Work that begins now, on a number of things that becomes known on the way.
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

    /// That many things are done now, of that many.
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

    /// The work goes on with other things.
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
    fn long_work_is_shown_to_a_person_only() {
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
