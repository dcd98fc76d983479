//! Termination signals, and child programs that own the terminal.
//!
//! ```text
//!   nothing under way      SIGHUP, SIGINT and SIGTERM end the program, as by default
//!   a turn runs            they stop the turn (`agent/interrupt.rs`)
//!   a pager, an editor or  SIGINT is for that program; SIGHUP and SIGTERM are passed on to it, the terminal is put
//!   a command has it       back as it was, and then the program ends by the same signal
//! ```
//!
//! An installed handler cannot be removed, and unregistering an action does not restore the default. The default is
//! therefore an action too, which is disabled while something is running.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

pub(crate) const TERMINATION_SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

const POLL_INTERVAL: Duration = Duration::from_millis(30);
/// How long a child has to exit after a signal.
const TERMINATION_GRACE: Duration = Duration::from_millis(500);

struct DefaultHandlers {
    /// Whether signals end the program.
    active: Arc<AtomicBool>,
    /// How many guards are alive.
    holds: AtomicUsize,
}

/// While this value is alive, signals do not end the program.
pub(crate) struct SignalHold(&'static DefaultHandlers);

impl SignalHold {
    pub(crate) fn new() -> io::Result<Self> {
        static DEFAULTS: OnceLock<DefaultHandlers> = OnceLock::new();
        let defaults = if let Some(defaults) = DEFAULTS.get() {
            defaults
        } else {
            let active = Arc::new(AtomicBool::new(false));
            for signal in TERMINATION_SIGNALS {
                flag::register_conditional_default(signal, Arc::clone(&active))?;
            }
            DEFAULTS.get_or_init(|| DefaultHandlers { active, holds: AtomicUsize::new(0) })
        };
        defaults.holds.fetch_add(1, Ordering::SeqCst);
        defaults.active.store(false, Ordering::SeqCst);
        Ok(Self(defaults))
    }
}

impl Drop for SignalHold {
    fn drop(&mut self) {
        if self.0.holds.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.active.store(true, Ordering::SeqCst);
        }
    }
}

/// A child program owns the terminal, from before it starts until it has ended.
pub(crate) struct Foreground {
    shared: Arc<Shared>,
    actions: Vec<SigId>,
    hold: Option<SignalHold>,
}

struct Shared {
    /// The received signal; 0 for none.
    received: Arc<AtomicUsize>,
    over: AtomicBool,
    /// The terminal settings before the child started.
    terminal: Option<Termios>,
    /// Runs before the signal ends the program. Whoever ends the program holds the lock until then.
    clean_up: Mutex<Option<CleanUp>>,
}

type CleanUp = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for Foreground {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Foreground")
    }
}

impl Foreground {
    /// Call before the child starts.
    pub(crate) fn begin() -> io::Result<Self> {
        let hold = SignalHold::new()?;
        let received = Arc::new(AtomicUsize::new(0));
        let mut actions = Vec::new();
        for signal in [SIGHUP, SIGTERM] {
            actions.push(flag::register_usize(
                signal,
                Arc::clone(&received),
                signal.unsigned_abs() as usize,
            )?);
        }
        let terminal = tcgetattr(io::stdin()).or_else(|_| tcgetattr(io::stdout())).ok();
        let shared =
            Arc::new(Shared { received, over: AtomicBool::new(false), terminal, clean_up: Mutex::default() });
        Ok(Self { shared, actions, hold: Some(hold) })
    }

    /// Registers an action to run before a signal ends the program.
    pub(crate) fn on_termination(&self, act: impl FnOnce() + Send + 'static) {
        *self.shared.clean_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
    }

    pub(crate) fn started(&self, process: u32) {
        let shared = Arc::clone(&self.shared);
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        thread::spawn(move || {
            while !shared.over.load(Ordering::SeqCst) {
                if shared.received.load(Ordering::SeqCst) != 0 {
                    if let Some(process) = process {
                        stop(process, &shared.over);
                    }
                    shared.end();
                    return;
                }
                thread::sleep(POLL_INTERVAL);
            }
        });
    }

    /// The child has ended. If a signal was received, this process ends with it.
    pub(crate) fn end(self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.end();
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Dropped first, so that no signal is lost between the two handlers.
        self.hold = None;
        for action in self.actions.drain(..) {
            low_level::unregister(action);
        }
    }
}

impl Shared {
    /// Ends the process with the received signal, if any.
    fn end(&self) {
        let Ok(signal @ 1..) = i32::try_from(self.received.load(Ordering::SeqCst)) else { return };
        let mut clean_up = self.clean_up.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(terminal) = &self.terminal {
            // The killed child may have disabled echo.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal)
                .or_else(|_| tcsetattr(io::stdout(), OptionalActions::Now, terminal));
        }
        if let Some(act) = clean_up.take() {
            act();
        }
        let _ = low_level::emulate_default_handler(signal);
    }
}

/// Terminates a child, forcibly after the grace period.
fn stop(process: Pid, over: &AtomicBool) {
    let _ = kill_process(process, Signal::TERM);
    let until = Instant::now() + TERMINATION_GRACE;
    while Instant::now() < until && !over.load(Ordering::SeqCst) {
        thread::sleep(POLL_INTERVAL);
    }
    if !over.load(Ordering::SeqCst) {
        let _ = kill_process(process, Signal::KILL);
        thread::sleep(POLL_INTERVAL);
    }
}
