//! Deletes the replaced files and makes the result durable.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use retake_model::path::FileName;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::super::inspect::{Identity, inspect, is_still};
use super::super::plan::{Placement, Removal};
use super::super::recover::keep_aside;
use super::super::stage::FEW_FILES;
use super::super::walk::{names as names_in, open_folder, remove_all};
use super::super::{ApplyError, Cause, Leftover, StageState};
use super::{CompletedStep, Mover};

impl Mover<'_> {
    /// After this, only another move can restore the old files. Returns files of others that stay aside.
    pub(super) fn finish(&mut self) -> Result<Vec<Leftover>, ApplyError> {
        let left = match self.return_late_work().and_then(|()| self.clear_up()) {
            Ok(left) => left,
            Err(errno) => return Err(self.changed(Cause::Root(errno.into()))),
        };
        // The content was durable before the move, so only the names remain to be synced.
        self.sync_names().map_err(|errno| self.changed(Cause::Sync(errno.into())))?;
        Ok(left)
    }

    fn changed(&self, cause: Cause) -> ApplyError {
        let indexes = self.done.iter().filter_map(CompletedStep::index);
        ApplyError { cause, not_put_back: indexes.map(|index| self.steps[index].path.clone()).collect() }
    }

    fn clear_up(&mut self) -> Result<Vec<Leftover>, Errno> {
        let full = self.request.token.folder(StageState::Full);
        if self.kept_aside.is_empty() {
            remove_all(self.request.root.as_fd(), full.as_bytes())?;
            return Ok(Vec::new());
        }
        let kept_aside = std::mem::take(&mut self.kept_aside);
        keep_aside(self.request, self.steps, self.stage, &full, kept_aside)
    }

    /// A program may have opened a file or folder before it was moved aside and have written to it after the check.
    /// Moves such files back.
    fn return_late_work(&mut self) -> Result<(), Errno> {
        self.return_folders()?;
        let moved: Vec<(usize, String, Identity)> =
            self.done.iter().filter_map(|done| self.moved_aside(done)).collect();
        for (index, aside, seen) in moved {
            if is_still(self.stage, aside.as_bytes(), &seen)? {
                continue;
            }
            let found = inspect(self.stage, aside.as_bytes(), |_| None)?.found;
            if found.matches(self.steps[index].before.as_ref()) {
                continue;
            }
            if aside.starts_with('x') {
                self.outcomes[index] = Some(self.swap_back(index)?);
            } else if matches!(self.actions[index].placement, Placement::Nothing) {
                let outcome = self.return_to_place(index, &aside)?;
                // A file that has to stay aside is gone from its path, as wanted.
                if self.kept_aside.last().is_none_or(|(kept, _)| *kept != index) {
                    self.outcomes[index] = Some(outcome);
                }
            } else {
                // Our new content occupies its path.
                self.kept_aside.push((index, aside.into_bytes()));
            }
        }
        Ok(())
    }

    /// The file or link that a move put aside: its step, its name there, and its identity.
    fn moved_aside(&self, done: &CompletedStep) -> Option<(usize, String, Identity)> {
        match *done {
            CompletedStep::Out(index) => match (&self.actions[index].removal, &self.actions[index].placement)
            {
                (Removal::File(seen), _) | (_, Placement::Swap(seen)) => {
                    Some((index, format!("r{index}"), *seen))
                }
                _ => None,
            },
            CompletedStep::Swapped(index, seen) => Some((index, format!("x{index}"), seen)),
            _ => None,
        }
    }

    /// Moves back folders that someone added files to, outermost first, since the others are inside.
    fn return_folders(&mut self) -> Result<(), Errno> {
        let mut folders: Vec<(usize, u16)> = self
            .done
            .iter()
            .filter_map(|done| match *done {
                CompletedStep::OutFolder(index, mode) => Some((index, mode)),
                _ => None,
            })
            .collect();
        folders.sort_unstable();
        for (index, mode) in folders {
            let aside = format!("r{index}");
            let folder = match open_folder(self.stage, aside.as_bytes()) {
                // It already moved back together with an inner folder.
                Err(Errno::NOENT) => continue,
                other => other?,
            };
            if names_in(folder.as_fd())?.is_empty() {
                continue;
            }
            self.done.retain(|done| !matches!(done, CompletedStep::OutFolder(other, _) if *other == index));
            self.done.push(CompletedStep::Made(self.steps[index].path.names().to_vec(), 0));
            let outcome = self.return_folder(index, &aside)?;
            rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode.into()))?;
            if matches!(self.actions[index].placement, Placement::Nothing) {
                self.outcomes[index] = Some(outcome);
            }
        }
        Ok(())
    }

    fn sync_names(&mut self) -> Result<(), Errno> {
        let folders: BTreeSet<&[FileName]> = self
            .done
            .iter()
            .filter_map(|done| match done {
                CompletedStep::Made(names, _) => Some(names.as_slice()),
                // Its name was made durable before its folder was moved.
                CompletedStep::Within(_) => None,
                _ => done.index().map(|index| self.steps[index].path.parents()),
            })
            .collect();
        let root = self.request.root.as_fd();
        let many = folders.len() > FEW_FILES
            || self.done.iter().any(|done| matches!(done, CompletedStep::Made(..) | CompletedStep::Mode(..)));
        if many {
            return rustix::fs::syncfs(root);
        }
        for names in folders {
            let synced = self.walker.folder(names).and_then(rustix::fs::fsync);
            if synced.is_err() {
                // The folder is gone or cannot be listed: sync the file system instead.
                return rustix::fs::syncfs(root);
            }
        }
        // The temporary folder was removed from the root.
        rustix::fs::fsync(root)
    }
}
