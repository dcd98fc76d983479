//! Letting go of what was there, and making it all durable.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use retake_model::path::FileName;
use rustix::io::Errno;

use super::super::look::{is_still, look};
use super::super::plan::{Come, Out};
use super::super::stage::FEW;
use super::super::walk::remove_all;
use super::super::{ApplyError, Cause, Life};
use super::{Done, Mover};

impl Mover<'_> {
    /// From here on there is no way back but to move the files once more.
    pub(super) fn finish(&mut self) -> Result<(), ApplyError> {
        let changed = |mover: &Self, cause: Cause| ApplyError {
            cause,
            not_put_back: mover
                .done
                .iter()
                .filter_map(Done::index)
                .map(|i| mover.steps[i].path.clone())
                .collect(),
        };
        if let Err(errno) = self.return_late_work() {
            return Err(changed(self, Cause::Root(errno.into())));
        }
        let root = self.request.root.as_fd();
        if let Err(errno) = remove_all(root, self.request.token.folder(Life::Full).as_bytes()) {
            return Err(changed(self, Cause::Root(errno.into())));
        }
        // The new content was durable before it was moved, so the names are all that is left.
        self.sync_names().map_err(|errno| changed(self, Cause::Sync(errno.into())))
    }

    /// A program may have opened a file before it was moved aside, and have written to it after it was looked
    /// at. What was written so is put back.
    fn return_late_work(&mut self) -> Result<(), Errno> {
        for place in 0..self.done.len() {
            let (index, aside, seen) = match self.done[place] {
                Done::Out(index) => match (&self.actions[index].out, &self.actions[index].come) {
                    (Out::File(seen), _) | (_, Come::Swap(seen)) => (index, format!("r{index}"), *seen),
                    _ => continue,
                },
                Done::Swapped(index, seen) => (index, format!("x{index}"), seen),
                _ => continue,
            };
            if is_still(self.stage, aside.as_bytes(), &seen)? {
                continue;
            }
            let found = look(self.stage, aside.as_bytes(), |_| None)?.found;
            if found.is(self.steps[index].before.as_ref()) {
                continue;
            }
            let outcome = match self.done[place] {
                Done::Swapped(..) => self.swap_back(index)?,
                _ if matches!(self.actions[index].come, Come::Nothing) => {
                    self.return_to_place(index, &aside)?
                }
                // Its place is taken by what we put there instead of it.
                _ => continue,
            };
            self.outcomes[index] = Some(outcome);
        }
        Ok(())
    }

    fn sync_names(&mut self) -> Result<(), Errno> {
        let folders: BTreeSet<&[FileName]> = self
            .done
            .iter()
            .filter_map(|done| match done {
                Done::Made(names, _) => Some(names.as_slice()),
                // Its name in its folder was made durable before the folder was moved.
                Done::Within(_) => None,
                _ => done.index().map(|index| self.steps[index].path.parents()),
            })
            .collect();
        let root = self.request.root.as_fd();
        let many = folders.len() > FEW
            || self.done.iter().any(|done| matches!(done, Done::Made(..) | Done::Mode(..)));
        if many {
            return rustix::fs::syncfs(root);
        }
        for names in folders {
            let synced = self.walker.folder(names).and_then(rustix::fs::fsync);
            if synced.is_err() {
                // It is gone since, or may not be listed: the one sync that does not need it.
                return rustix::fs::syncfs(root);
            }
        }
        // The temporary folder went from there.
        rustix::fs::fsync(root)
    }
}
