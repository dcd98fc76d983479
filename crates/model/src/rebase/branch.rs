//! A log that shares its beginning with a stored one, and continues in memory.

use std::collections::BTreeSet;

use super::RebaseError;
use crate::history::{LogStep, OperationLog};
use crate::id::TakeId;
use crate::object::{Objects, load};
use crate::operation::{Operation, Version};
use crate::state::ThreadState;

/// The common operations, and those of one side.
pub(super) struct BranchLog<'log, L> {
    base: &'log L,
    pub(super) common: Version,
    steps: Vec<(LogStep, TakeId)>,
}

impl<'log, L: OperationLog<Error: std::error::Error>> BranchLog<'log, L> {
    pub(super) fn new(
        base: &'log L,
        objects: &impl Objects,
        common: Version,
        operations: &[Operation],
    ) -> Result<Self, RebaseError<L::Error>> {
        let mut log = Self { base, common, steps: Vec::new() };
        for operation in operations {
            log.append(operation, objects)?;
        }
        Ok(log)
    }

    pub(super) fn append(
        &mut self,
        operation: &Operation,
        objects: &impl Objects,
    ) -> Result<(), RebaseError<L::Error>> {
        let state: ThreadState = load(objects, operation.after)?;
        self.steps.push((LogStep::of(operation), state.active));
        Ok(())
    }

    pub(super) fn head(&self) -> Version {
        self.common + self.steps.len() as Version
    }

    /// The takes whose chains the operations of this side moved.
    pub(super) fn moved_takes(&self) -> BTreeSet<TakeId> {
        let mut moved = BTreeSet::new();
        for (step, _) in &self.steps {
            let Some(chains) = &step.chains else { continue };
            moved.extend(chains.take.filter(|_| !step.is_not_undoable));
            moved.extend(chains.takes.iter().map(|moved| moved.take));
        }
        moved
    }

    fn own(&self, version: Version) -> Option<&(LogStep, TakeId)> {
        let number = version.checked_sub(self.common + 1)?;
        Some(self.steps.get(number as usize).expect("a branch is asked only for versions that it has"))
    }
}

impl<L: OperationLog> OperationLog for BranchLog<'_, L>
where
    L::Error: std::error::Error,
{
    type Error = L::Error;

    fn step(&self, version: Version) -> Result<LogStep, L::Error> {
        match self.own(version) {
            Some((step, _)) => Ok(step.clone()),
            None => self.base.step(version),
        }
    }

    fn active(&self, version: Version) -> Result<TakeId, L::Error> {
        match self.own(version) {
            Some((_, active)) => Ok(*active),
            None => self.base.active(version),
        }
    }
}
