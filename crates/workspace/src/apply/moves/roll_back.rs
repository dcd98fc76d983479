//! Rolls back after a failure. This writes nothing: all old content is still in the temporary folder.

use std::os::fd::AsFd;

use retake_model::path::TreePath;
use retake_model::tree::Node;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::super::StageState;
use super::super::inspect::inspect;
use super::super::rename::{EntryLocation, SwapOutcome};
use super::super::walk::{open_folder, remove_all};
use super::{CompletedStep, Mover, change_mode, in_folder};

impl Mover<'_> {
    /// Rolls everything back. Returns the paths where that failed or where someone changed the file first.
    pub(super) fn put_back(&mut self) -> Vec<TreePath> {
        self.walker.forget();
        let mut not_put_back = Vec::new();
        while let Some(done) = self.done.pop() {
            if !self.undo(&done).unwrap_or(false)
                && let Some(index) = done.index()
            {
                not_put_back.push(self.steps[index].path.clone());
            }
        }
        let kept_aside = self.kept_aside.iter().map(|(index, _)| self.steps[*index].path.clone());
        not_put_back.extend(kept_aside);
        not_put_back.sort();
        not_put_back.dedup();
        // The remaining content is ours or in the store. The next request with this token removes what cannot be
        // removed or synced now.
        let root = self.request.root.as_fd();
        if not_put_back.is_empty() {
            let _ = remove_all(root, self.request.token.folder(StageState::Full).as_bytes());
        }
        let _ = rustix::fs::syncfs(root);
        not_put_back
    }

    fn undo(&mut self, done: &CompletedStep) -> Result<bool, Errno> {
        match done {
            CompletedStep::Out(index) => self.put_out_back(*index, None),
            CompletedStep::OutFolder(index, mode) => self.put_out_back(*index, Some(*mode)),
            CompletedStep::New(index) | CompletedStep::Within(index) => self.take_new_back(*index),
            CompletedStep::Made(names, count) => {
                for length in (names.len() - count + 1..=names.len()).rev() {
                    let (name, above) = names[..length].split_last().expect("there is a name");
                    let folder = self.walker.folder(above)?;
                    rustix::fs::unlinkat(folder, name.bytes(), AtFlags::REMOVEDIR)?;
                }
                Ok(true)
            }
            CompletedStep::Swapped(index, _) => self.undo_swap(*index),
            CompletedStep::Mode(index, mode) => self.undo_mode(*index, *mode),
        }
    }

    pub(super) fn put_out_back(&mut self, index: usize, mode: Option<u16>) -> Result<bool, Errno> {
        let aside = format!("r{index}");
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        if let Some(mode) = mode {
            // The folder is moved before its mode is restored, because a closed folder could not be moved.
            let folder = open_folder(from.folder, from.name)?;
            self.put_one_back(index, from)?;
            rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode.into()))?;
            return Ok(true);
        }
        self.put_one_back(index, from).map(|()| true)
    }

    fn put_one_back(&mut self, index: usize, from: EntryLocation<'_>) -> Result<(), Errno> {
        let path = &self.steps[index].path;
        let renames = &self.request.root.renames;
        in_folder(&mut self.walker, path.parents(), |folder| {
            renames.put(from, EntryLocation { folder, name: path.name().bytes() })
        })
    }

    /// Removes new content again, unless someone has changed it.
    fn take_new_back(&mut self, index: usize) -> Result<bool, Errno> {
        let step = self.steps[index];
        let name = step.path.name().bytes();
        if step.after.as_ref().is_some_and(Node::is_folder) {
            // The cached path may lead into the folder that is removed.
            self.walker.forget();
            return in_folder(&mut self.walker, step.path.parents(), |folder| {
                rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
            })
            .map(|()| true);
        }
        let aside = format!("b{index}");
        let to = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        in_folder(&mut self.walker, step.path.parents(), |folder| {
            renames.put(EntryLocation { folder, name }, to)
        })?;
        if inspect(to.folder, to.name, |_| None)?.found.matches(step.after.as_ref()) {
            return Ok(true);
        }
        in_folder(&mut self.walker, step.path.parents(), |folder| {
            renames.put(to, EntryLocation { folder, name })
        })?;
        Ok(false)
    }

    fn undo_swap(&mut self, index: usize) -> Result<bool, Errno> {
        let step = self.steps[index];
        let aside = format!("x{index}");
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        for turn in 0..2 {
            let swapped = in_folder(&mut self.walker, step.path.parents(), |folder| {
                renames.swap(from, EntryLocation { folder, name: step.path.name().bytes() })
            })?;
            if matches!(swapped, SwapOutcome::Unknown) {
                return Ok(false);
            }
            // Someone changed it: the second iteration moves it back.
            if turn == 0 && inspect(from.folder, from.name, |_| None)?.found.matches(step.after.as_ref()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn undo_mode(&mut self, index: usize, mode: u16) -> Result<bool, Errno> {
        let path = &self.steps[index].path;
        let folder = self.walker.folder(path.parents())?;
        change_mode(folder.as_fd(), path.name().bytes(), mode).map(|()| true)
    }
}

impl CompletedStep {
    /// The step that this belongs to, if any.
    pub(super) fn index(&self) -> Option<usize> {
        match self {
            Self::Out(index)
            | Self::OutFolder(index, _)
            | Self::New(index)
            | Self::Within(index)
            | Self::Swapped(index, _)
            | Self::Mode(index, _) => Some(*index),
            Self::Made(..) => None,
        }
    }
}
