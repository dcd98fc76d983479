//! Jumps: move the chains in view to their positions after an operation.
//!
//! A jump passes the steps of the thread one by one, and follows the takes that were active on the way:
//!
//! ```text
//!   thread   1 created A      3 branched B      4 switched to A
//!   take A            2
//!   take B                                                       5
//!
//!   jump to 2 from the end:  4  5  3        and to 5 from there:  3  4, then B moves to 5
//! ```
//!
//! Other takes do not change.

use super::super::{OperationLog, common, contains, next_on, take_position, thread_position};
use super::{Chain, Direction, HistoryCursor};
use crate::id::TakeId;
use crate::operation::{ChainPosition, Version};

impl HistoryCursor {
    /// Moves the chains in view to their positions after the operation with that version.
    pub fn jump<L: OperationLog>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        let target = thread_position(&log.step(version)?, version).position;
        let meeting = common(log, self.thread.position, target)?;
        if !self.view.worktree || self.thread_is_free(log, meeting, target)? {
            while self.thread.position != meeting {
                let last = self.thread.position;
                self.take_back_to(log, last)?;
                self.pass(log, last, Chain::Thread, Direction::Back)?;
            }
            while let Some(next) = next_on(log, self.thread.position, target)? {
                self.take_to_version(log, next - 1)?;
                self.pass(log, next, Chain::Thread, Direction::Forward)?;
            }
        }
        self.take_to_version(log, version)?;
        self.others_to_version(log, version)?;
        self.keep_tips(log)
    }

    /// Moves the takes that the jump followed and left again to their positions after that version. This
    /// adds nothing to the route, because their files are not in the folder.
    fn others_to_version<L: OperationLog>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        let left = |take: &TakeId| *take != self.view.take && !self.view.worktrees.contains(take);
        let others: Vec<TakeId> = self.takes.keys().copied().filter(left).collect();
        let (seen, passed) = (self.view.take, self.route.len());
        for other in others {
            self.view.take = other;
            self.take_to_version(log, version)?;
        }
        self.view.take = seen;
        self.route.truncate(passed);
        Ok(())
    }

    /// Whether all steps of the thread on the way can move here (see `is_blocked`).
    fn thread_is_free<L: OperationLog>(
        &self,
        log: &L,
        meeting: Version,
        target: Version,
    ) -> Result<bool, L::Error> {
        for (from, direction) in [(self.thread.position, Direction::Back), (target, Direction::Forward)] {
            let mut version = from;
            while version != meeting {
                if self.is_blocked(log, version, direction)? {
                    return Ok(false);
                }
                version = log.step(version)?.place.parent;
            }
        }
        Ok(true)
    }

    /// Undoes the take's changes after a version.
    fn take_back_to<L: OperationLog>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        loop {
            let last = self.take(log)?.position;
            if last <= version {
                return Ok(());
            }
            self.pass(log, last, Chain::Take, Direction::Back)?;
        }
    }

    /// Moves the take's chain to its position after that version.
    fn take_to_version<L: OperationLog>(&mut self, log: &L, version: Version) -> Result<(), L::Error> {
        let target = take_position(log, version, self.view.take)?.position;
        let at = self.take(log)?;
        let meeting = common(log, at.position, target)?;
        while self.take(log)?.position != meeting {
            let last = self.take(log)?.position;
            self.pass(log, last, Chain::Take, Direction::Back)?;
        }
        while let Some(next) = next_on(log, self.take(log)?.position, target)? {
            self.pass(log, next, Chain::Take, Direction::Forward)?;
        }
        Ok(())
    }

    /// Keeps the redo steps after a jump backwards on the current branch; discards them after a jump to
    /// another branch.
    fn keep_tips<L: OperationLog>(&mut self, log: &L) -> Result<(), L::Error> {
        let kept = |at: ChainPosition| -> Result<ChainPosition, L::Error> {
            let ahead = contains(log, at.tip, at.position)?;
            Ok(if ahead { at } else { ChainPosition { tip: at.position, undone: 0, ..at } })
        };
        self.thread = kept(self.thread)?;
        for at in self.takes.values_mut() {
            *at = kept(*at)?;
        }
        Ok(())
    }
}
