//! Exchanges whenever something changes, here or on the remote.

use std::time::{Duration, Instant};

use retake_store::Tail;

use crate::config::SyncLock;
use crate::session::{Retry, Round, RoundError, Session};

/// How often to look at the log here.
const LOOK: Duration = Duration::from_millis(300);
/// How often to look at the remote, if it does not wait itself.
const POLL: Duration = Duration::from_secs(5);

/// Exchanges, then waits for changes here and there, and exchanges again: until `is_stopped`, or until nothing has
/// changed for `linger`. Ends at once if another process does the same for this remote.
///
/// A change that comes while this ends is not missed: after the lock is free, the log is read once more.
pub fn watch(
    session: &Session<'_>,
    linger: Duration,
    is_stopped: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Result<Round, RoundError>),
) -> Result<(), RoundError> {
    let mut tail = session.timeline.store().tail()?;
    loop {
        let Some(lock) = session.remotes.try_watch(session.name)? else { return Ok(()) };
        let seen = exchange_until_quiet(session, linger, is_stopped, each, (&mut tail, lock))?;
        if is_stopped() || tail.last()? == seen {
            return Ok(());
        }
    }
}

fn exchange_until_quiet(
    session: &Session<'_>,
    linger: Duration,
    is_stopped: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Result<Round, RoundError>),
    (tail, lock): (&mut Tail, SyncLock),
) -> Result<i64, RoundError> {
    let mut quiet_since = Instant::now();
    loop {
        let seen = tail.last()?;
        let now = session.timeline.now().millis();
        let round = {
            let _lock = session.remotes.lock(session.name)?;
            session.round(Retry::Due, now, &mut |_, _| {})
        };
        // What the exchange itself appended is not a change.
        let seen = if round.as_ref().is_ok_and(|round| round.threads.iter().any(|thread| thread.pulled > 0)) {
            tail.last()?
        } else {
            seen
        };
        let failed = round.is_err();
        if !matches!(round, Err(RoundError::Waiting(_))) {
            // A thread that fails again and again is no reason to stay.
            let moved = |round: &Round| round.threads.iter().any(|it| it.pushed > 0 || it.pulled > 0);
            if round.as_ref().is_ok_and(moved) {
                quiet_since = Instant::now();
            }
            each(round);
        }
        let mut polled = Instant::now();
        loop {
            if is_stopped() || quiet_since.elapsed() >= linger || (failed && linger != Duration::MAX) {
                drop(lock);
                return Ok(seen);
            }
            std::thread::sleep(LOOK);
            if tail.last()? != seen {
                quiet_since = Instant::now();
                break;
            }
            if polled.elapsed() >= POLL {
                polled = Instant::now();
                if failed || session.wait(Duration::ZERO).unwrap_or(false) {
                    break;
                }
            }
        }
    }
}
