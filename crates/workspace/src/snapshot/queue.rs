//! A work-sharing queue for tasks that create more tasks.
//!
//! Each worker processes its own tasks, newest first, so that few folders are open at once. When another worker is
//! idle, it hands over the oldest half, which usually is the larger part of the work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Queue<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    idle: AtomicUsize,
}

struct State<T> {
    tasks: Vec<T>,
    working: usize,
    stopped: bool,
}

/// Runs tasks until none is left or one fails. Returns the workers.
pub(super) fn run<T, W, E>(
    workers: usize,
    first: T,
    make: impl Fn() -> W + Sync,
    handle: impl Fn(&mut W, T, &mut Vec<T>) -> Result<(), E> + Sync,
) -> Result<Vec<W>, E>
where
    T: Send,
    W: Send,
    E: Send,
{
    let queue = Queue {
        state: Mutex::new(State { tasks: vec![first], working: workers, stopped: false }),
        wake: Condvar::new(),
        idle: AtomicUsize::new(0),
    };
    let work = || {
        let _leave = WorkerGuard(&queue);
        let mut worker = make();
        let mut own = Vec::new();
        while let Some(task) = own.pop().or_else(|| queue.wait()) {
            handle(&mut worker, task, &mut own)?;
            if own.len() > 1 && queue.idle.load(Ordering::Relaxed) > 0 {
                queue.share(&mut own);
            }
        }
        Ok(worker)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut done = vec![work()];
        for other in others {
            match other.join() {
                Ok(result) => done.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done.into_iter().collect()
    })
}

/// Stops the other workers when one ends, by an error or a panic.
struct WorkerGuard<'queue, T>(&'queue Queue<T>);

impl<T> Drop for WorkerGuard<'_, T> {
    fn drop(&mut self) {
        self.0.lock().stopped = true;
        self.0.wake.notify_all();
    }
}

impl<T> Queue<T> {
    /// A task from another worker; `None` when all are done.
    fn wait(&self) -> Option<T> {
        let mut state = self.lock();
        state.working -= 1;
        loop {
            if state.stopped {
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.working += 1;
                return Some(task);
            }
            if state.working == 0 {
                return None;
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn share(&self, own: &mut Vec<T>) {
        let half = own.len() / 2;
        self.lock().tasks.extend(own.drain(..half));
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once_and_a_failure_stops_all() {
        let count = |workers: usize, depth: u32| -> Result<u64, u32> {
            let done = run(
                workers,
                depth,
                || 0_u64,
                |seen, task, more| {
                    *seen += 1;
                    if task == 99 {
                        return Err(task);
                    }
                    more.extend(std::iter::repeat_n(task.saturating_sub(1), if task > 0 { 3 } else { 0 }));
                    Ok(())
                },
            )?;
            Ok(done.into_iter().sum())
        };
        for workers in [1, 2, 5] {
            assert_eq!(count(workers, 0), Ok(1));
            assert_eq!(count(workers, 6), Ok((3_u64.pow(7) - 1) / 2));
            assert_eq!(count(workers, 99), Err(99));
        }
    }
}
