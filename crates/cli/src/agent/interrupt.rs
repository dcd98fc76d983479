//! Ctrl-C while a turn runs: the first ends the turn, the second the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use retake_agent::Cancel;
use signal_hook::{SigId, flag, low_level};

use crate::ui::signals::{ENDING, Held};

/// How often it is looked whether Ctrl-C was pressed.
const GLANCE: Duration = Duration::from_millis(30);

/// While this is held, Ctrl-C ends the turn and not the program.
pub(crate) struct Interruptible {
    cancel: Cancel,
    over: Arc<AtomicBool>,
    signals: Vec<SigId>,
    held: Option<Held>,
}

impl Interruptible {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (pressed, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let held = Held::new()?;
        let mut signals = Vec::new();
        // A terminal that goes away ends the turn as Ctrl-C does.
        for signal in ENDING {
            // In this order: the second press finds the flag that the first one set.
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
                thread::sleep(GLANCE);
            }
        });
        Ok(Self { cancel, over, signals, held: Some(held) })
    }

    /// What the turn looks at.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // First, so that no signal falls between the two and has no effect.
        self.held = None;
        for signal in self.signals.drain(..) {
            low_level::unregister(signal);
        }
    }
}
