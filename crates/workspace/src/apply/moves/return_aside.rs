//! Returns files that turned out to be someone's changes after they were moved aside.
//!
//! ```text
//!   its folder exists             back to its path
//!   its folder was removed too    restore the folder first: the one that was moved aside, or a new one
//!   its path is occupied          stays aside, in a folder that nothing deletes, and the report names it
//! ```

use std::os::fd::{AsFd, BorrowedFd};

use retake_model::path::FileName;
use rustix::io::Errno;

use super::super::inspect::inspect;
use super::super::plan::inspect_step;
use super::super::rename::{EntryLocation, Renames, SwapOutcome};
use super::super::walk::{names as names_in, open_folder};
use super::super::{Cause, DiskNode, ErrorClass, Outcome, SkipReason, classify, path_failed};
use super::{CompletedStep, Mover, in_folder};

impl Mover<'_> {
    /// Returns a file or link. If the path is occupied again, its owner has written a newer version, which wins.
    pub(super) fn return_to_place(&mut self, index: usize, aside: &str) -> Result<Outcome, Errno> {
        let returned = self.try_return(index, aside);
        self.or_keep(index, aside, returned)
    }

    /// Returns the entry that was removed for new content that could then not be placed: the path is reported as left
    /// unchanged.
    pub(super) fn return_if_skipped(&mut self, index: usize) -> Result<(), Cause> {
        if !matches!(self.outcomes[index], Some(Outcome::Skipped(_))) {
            return Ok(());
        }
        let is_this = |done: &CompletedStep| matches!(done, CompletedStep::Out(out) | CompletedStep::OutFolder(out, _) if *out == index);
        let Some(place) = self.done.iter().rposition(is_this) else { return Ok(()) };
        let returned = match self.done.remove(place) {
            CompletedStep::OutFolder(_, mode) => self.put_out_back(index, Some(mode)).map(drop),
            _ => self.return_to_place(index, &format!("r{index}")).map(drop),
        };
        returned.map_err(|errno| path_failed(&self.steps[index].path, errno))
    }

    fn try_return(&mut self, index: usize, aside: &str) -> Result<Outcome, Errno> {
        let step = self.steps[index];
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let found = inspect(from.folder, from.name, |_| None)?.found;
        let renames = &self.request.root.renames;
        let put = self.in_folder_of(index, |folder| {
            renames.put(from, EntryLocation { folder, name: step.path.name().bytes() })
        });
        match put {
            Ok(()) => Ok(Outcome::Kept(found)),
            Err(Errno::EXIST) => Ok(Outcome::Kept(inspect_step(self.request, &mut self.walker, step)?.found)),
            Err(errno) => Err(errno),
        }
    }

    /// Returns a folder that someone added files to. If the folder exists again, moves the files into it.
    pub(super) fn return_folder(&mut self, index: usize, aside: &str) -> Result<Outcome, Errno> {
        let returned = self.try_return_folder(index, aside);
        self.or_keep(index, aside, returned)
    }

    fn try_return_folder(&mut self, index: usize, aside: &str) -> Result<Outcome, Errno> {
        let name = self.steps[index].path.name().bytes();
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        let put =
            self.in_folder_of(index, |folder| match renames.put(from, EntryLocation { folder, name }) {
                Err(Errno::EXIST) => {
                    let (ours, theirs) = (open_folder(from.folder, from.name)?, open_folder(folder, name)?);
                    move_contents(renames, ours.as_fd(), theirs.as_fd())
                }
                other => other,
            });
        put.map(|()| Outcome::Skipped(SkipReason::NotEmpty))
    }

    /// Swaps until the removed content is ours: then the newest version of the owner is in place.
    pub(super) fn swap_back(&mut self, index: usize) -> Result<Outcome, Errno> {
        let aside = format!("x{index}");
        let swapped = self.try_swap_back(index, &aside);
        self.or_keep(index, &aside, swapped)
    }

    fn try_swap_back(&mut self, index: usize, aside: &str) -> Result<Outcome, Errno> {
        let step = self.steps[index];
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        // The content that we put in: ours at first, then whatever we found aside.
        let mut put: Option<DiskNode> = None;
        loop {
            let existing = inspect(from.folder, from.name, |_| None)?.found;
            let swapped = self.in_folder_of(index, |folder| {
                let to = EntryLocation { folder, name: step.path.name().bytes() };
                match renames.swap(from, to) {
                    // The owner removed our file in the meantime.
                    Err(Errno::NOENT) => renames.put(from, to).map(|()| SwapOutcome::Unknown),
                    other => other,
                }
            })?;
            if matches!(swapped, SwapOutcome::Unknown) {
                return Ok(Outcome::Kept(existing));
            }
            let came = inspect(from.folder, from.name, |_| None)?.found;
            let ours = put.as_ref().map_or_else(|| came.matches(step.after.as_ref()), |put| came == *put);
            if ours {
                return Ok(Outcome::Kept(existing));
            }
            put = Some(existing);
        }
    }

    /// Keeps a file aside that cannot be returned. Only disk errors are failures.
    fn or_keep(
        &mut self,
        index: usize,
        aside: &str,
        returned: Result<Outcome, Errno>,
    ) -> Result<Outcome, Errno> {
        match returned.map_err(classify) {
            Ok(outcome) => Ok(outcome),
            Err(ErrorClass::Skip(skip)) => {
                self.kept_aside.push((index, aside.as_bytes().to_vec()));
                Ok(Outcome::Skipped(skip))
            }
            Err(ErrorClass::Fatal(errno)) => Err(errno),
        }
    }

    /// Runs an action in the folder of a path, restoring the folder first if necessary.
    fn in_folder_of<T>(
        &mut self,
        index: usize,
        action: impl Fn(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let parents = self.steps[index].path.parents();
        match in_folder(&mut self.walker, parents, &action) {
            Err(Errno::NOENT) => {
                self.walker.forget();
                self.bring_folders_back(parents)?;
                in_folder(&mut self.walker, parents, action)
            }
            other => other,
        }
    }

    /// Restores missing parent folders: those that we moved aside, or else new ones.
    fn bring_folders_back(&mut self, names: &[FileName]) -> Result<(), Errno> {
        for length in 1..=names.len() {
            match self.walker.folder(&names[..length]) {
                Err(Errno::NOENT) => {}
                other => {
                    other?;
                    continue;
                }
            }
            let is_this = |done: &CompletedStep| matches!(done, CompletedStep::OutFolder(index, _) if self.steps[*index].path.names() == &names[..length]);
            let made = match self.done.iter().position(is_this).map(|place| self.done.remove(place)) {
                Some(CompletedStep::OutFolder(index, mode)) => {
                    self.put_out_back(index, Some(mode))?;
                    self.outcomes[index] = Some(Outcome::Skipped(SkipReason::NotEmpty));
                    0
                }
                _ => self.walker.make(&names[..length])?,
            };
            self.done.push(CompletedStep::Made(names[..length].to_vec(), made));
        }
        Ok(())
    }
}

/// Moves the content of one folder to another; existing files of the same name are newer and stay.
fn move_contents(renames: &Renames, from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    for name in names_in(from)? {
        match renames
            .put(EntryLocation { folder: from, name: &name }, EntryLocation { folder: to, name: &name })
        {
            Err(Errno::EXIST) if open_folder(from, &name).is_err() => {}
            other => other?,
        }
    }
    Ok(())
}
