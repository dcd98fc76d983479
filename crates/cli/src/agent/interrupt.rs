//! Signals while a turn runs: Ctrl-C ends the turn, SIGTERM and the end of the terminal leave it to be resumed. A second signal
//! ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use retake_agent::Cancel;
use signal_hook::consts::SIGINT;
use signal_hook::{SigId, flag, low_level};

use crate::ui::signals::{SignalHold, TERMINATION_SIGNALS};

const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// While this value is alive, signals stop the turn instead of ending the program.
pub(crate) struct InterruptGuard {
    cancel: Cancel,
    over: Arc<AtomicBool>,
    signals: Vec<SigId>,
    hold: Option<SignalHold>,
}

impl InterruptGuard {
    pub(crate) fn new() -> std::io::Result<Self> {
        let flag = || Arc::new(AtomicBool::new(false));
        let (received, exiting, over) = (flag(), flag(), flag());
        let hold = SignalHold::new()?;
        let mut signals = Vec::new();
        for signal in TERMINATION_SIGNALS {
            // The order matters: the second signal must find the flag set by the first, and whoever sees that flag must see
            // the reason.
            signals.push(flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&received))?);
            if signal != SIGINT {
                signals.push(flag::register(signal, Arc::clone(&exiting))?);
            }
            signals.push(flag::register(signal, Arc::clone(&received))?);
        }
        let cancel = Cancel::new();
        let (watched, ended) = (cancel.clone(), Arc::clone(&over));
        thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                if received.load(Ordering::SeqCst) {
                    let exits = exiting.load(Ordering::SeqCst);
                    return if exits { watched.shut_down() } else { watched.set() };
                }
                thread::sleep(POLL_INTERVAL);
            }
        });
        Ok(Self { cancel, over, signals, hold: Some(hold) })
    }

    /// The cancellation flag that the turn polls.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Dropped first, so that no signal is lost between the two handlers.
        self.hold = None;
        for signal in self.signals.drain(..) {
            low_level::unregister(signal);
        }
    }
}
