//! Ctrl-C while a turn runs: the first press stops the turn, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use retake_agent::Cancel;
use signal_hook::{SigId, flag, low_level};

use crate::ui::signals::{SignalHold, TERMINATION_SIGNALS};

const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// While this value is alive, Ctrl-C stops the turn instead of ending the program.
pub(crate) struct InterruptGuard {
    cancel: Cancel,
    over: Arc<AtomicBool>,
    signals: Vec<SigId>,
    hold: Option<SignalHold>,
}

impl InterruptGuard {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (pressed, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let hold = SignalHold::new()?;
        let mut signals = Vec::new();
        // Closing the terminal stops the turn, as Ctrl-C does.
        for signal in TERMINATION_SIGNALS {
            // The order matters: the second press must find the flag set by the first.
            signals.push(flag::register_conditional_shutdown(signal, 130, Arc::clone(&pressed))?);
            signals.push(flag::register(signal, Arc::clone(&pressed))?);
        }
        let cancel = Cancel::new();
        let (watched, ended) = (cancel.clone(), Arc::clone(&over));
        thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                if pressed.load(Ordering::SeqCst) {
                    watched.set();
                    return;
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
