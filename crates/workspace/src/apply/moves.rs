//! Moves staged content into place, and rolls back on failure.

mod finish;
mod return_aside;
mod roll_back;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::path::FileName;
use retake_model::tree::{Difference, Node};
use rustix::fs::{AtFlags, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::inspect::{Identity, PathState, inspect, is_still};
use super::plan::{Action, Placement, Removal, STAGING_MODE, inspect_step, is_open};
use super::rename::{EntryLocation, SwapOutcome};
use super::stage::{StageFolder, names};
use super::walk::{Walker, names as names_in, open_folder};
use super::{
    ApplyError, Cause, DiskNode, ErrorClass, Leftover, Outcome, Phase, Request, SkipReason, classify,
    path_failed,
};

/// Moves everything and makes it durable. Returns files of others that stay aside. Rolls back on failure.
pub(super) fn run(
    request: &Request<'_>,
    steps: &[&Difference],
    actions: &[Action],
    outcomes: &mut [Option<Outcome>],
    staged: StageFolder,
) -> Result<Vec<Leftover>, ApplyError> {
    let stage = staged.folder;
    let mut mover = Mover {
        request,
        steps,
        actions,
        outcomes,
        walker: Walker::new(request.root.as_fd()),
        aside: Walker::new(stage.as_fd()),
        stage: stage.as_fd(),
        done: Vec::new(),
        kept_aside: Vec::new(),
    };
    match mover.run().and_then(|()| request.check_skipped(steps, mover.outcomes)) {
        Ok(()) => mover.finish(),
        Err(cause) => Err(ApplyError { cause, not_put_back: mover.put_back() }),
    }
}

/// A completed step that can be rolled back.
#[derive(Debug)]
enum CompletedStep {
    /// A file or link was moved to the temporary folder as `r` and the step number.
    Out(usize),
    /// An empty folder was removed; it had these permissions.
    OutFolder(usize, u16),
    /// New content was put at a free path.
    New(usize),
    /// New content arrived with its parent folder.
    Within(usize),
    /// Parent folders without a step of their own were created: the path of the innermost one, and their number.
    Made(Vec<FileName>, usize),
    /// Content was swapped; the old file is in the temporary folder as `x` and the step number.
    Swapped(usize, Identity),
    /// The permissions changed from these.
    Mode(usize, u16),
}

struct Mover<'a> {
    request: &'a Request<'a>,
    steps: &'a [&'a Difference],
    actions: &'a [Action],
    outcomes: &'a mut [Option<Outcome>],
    walker: Walker<'a>,
    aside: Walker<'a>,
    stage: BorrowedFd<'a>,
    done: Vec<CompletedStep>,
    /// Files of others that could not be returned: the step, and the name in the temporary folder.
    kept_aside: Vec<(usize, Vec<u8>)>,
}

/// The end of a step that did not fail.
enum StepEnd {
    /// The path is as requested.
    Done,
    /// The path was left unchanged, with that outcome.
    Left(Outcome),
}

impl Mover<'_> {
    fn run(&mut self) -> Result<(), Cause> {
        let total = self.steps.len();
        self.leave_what_cannot_be_replaced();
        // Removes from the bottom up, so that folders are empty when they are removed.
        for index in (0..total).rev() {
            self.request.check_cancel()?;
            self.request.report_progress(Phase::Moving, 0, total);
            if self.outcomes[index].is_some() {
                continue;
            }
            let result = match self.actions[index].removal {
                Removal::Nothing => continue,
                Removal::File(seen) => self.take_out(index, &seen),
                Removal::Folder => self.take_out_folder(index),
            };
            let goes = matches!(self.actions[index].placement, Placement::Nothing);
            self.record_outcome(index, result, goes.then_some(Outcome::Removed))?;
        }
        self.walker.forget();
        for index in 0..total {
            self.request.check_cancel()?;
            self.request.report_progress(Phase::Moving, index, total);
            if self.outcomes[index].is_some() {
                continue;
            }
            match self.actions[index].placement {
                Placement::New => {
                    self.bring_in(index)?;
                    self.return_if_skipped(index)?;
                }
                Placement::Swap(seen) => {
                    let result = self.swap(index, &seen);
                    self.record_outcome(index, result, Some(Outcome::Written))?;
                    self.return_if_skipped(index)?;
                }
                Placement::Mode(seen) => {
                    let result = self.set_mode(index, &seen);
                    self.record_outcome(index, result, Some(Outcome::Written))?;
                }
                Placement::Within(top) => self.outcomes[index] = Some(self.outcome_without(top)),
                Placement::Nothing | Placement::FolderMode => {}
            }
        }
        self.walker.forget();
        // Restrictive folder modes are set last, because they prevent further changes inside the folder.
        for index in (0..total).rev() {
            if self.is_folder_mode_due(index) {
                self.request.check_cancel()?;
                self.request.report_progress(Phase::Moving, total, total);
                let result = self.set_folder_mode(index);
                self.record_outcome(index, result, Some(Outcome::Written))?;
            }
        }
        Ok(())
    }

    /// Leaves an entry whose new content could not be written, and everything below it.
    fn leave_what_cannot_be_replaced(&mut self) {
        let mut top = 0;
        while top < self.steps.len() {
            let path = &self.steps[top].path;
            let mut next = top + 1;
            if let (Some(Outcome::Skipped(reason)), true) =
                (self.outcomes[top].clone(), !matches!(self.actions[top].removal, Removal::Nothing))
            {
                while next < self.steps.len() && self.steps[next].path.starts_with(path) {
                    self.outcomes[next].get_or_insert(Outcome::Skipped(reason));
                    next += 1;
                }
            }
            top = next;
        }
    }

    /// Outcome of a path whose new parent folder was not created because the old entry could not be removed.
    fn outcome_without(&self, top: usize) -> Outcome {
        match self.outcomes[top] {
            Some(Outcome::Skipped(skip)) => Outcome::Skipped(skip),
            _ => Outcome::Skipped(SkipReason::InTheWay),
        }
    }

    fn is_folder_mode_due(&self, index: usize) -> bool {
        match (&self.actions[index].placement, &self.outcomes[index], &self.steps[index].after) {
            (Placement::FolderMode, None, _) => true,
            (Placement::New, Some(Outcome::Written), Some(Node::Folder { mode, .. })) => !is_open(*mode),
            _ => false,
        }
    }

    fn record_outcome(
        &mut self,
        index: usize,
        result: Result<StepEnd, Errno>,
        done: Option<Outcome>,
    ) -> Result<(), Cause> {
        match result {
            Ok(StepEnd::Done) => {
                if done.is_some() {
                    self.outcomes[index] = done;
                }
            }
            Ok(StepEnd::Left(outcome)) => self.outcomes[index] = Some(outcome),
            Err(errno) => match classify(errno) {
                ErrorClass::Skip(skip) => self.outcomes[index] = Some(Outcome::Skipped(skip)),
                ErrorClass::Fatal(errno) => return Err(path_failed(&self.steps[index].path, errno)),
            },
        }
        Ok(())
    }

    /// Checks that the path is still unchanged since it was inspected; otherwise returns the outcome.
    fn expected(&mut self, index: usize, seen: &Identity) -> Result<StepEnd, Errno> {
        let step = self.steps[index];
        match self.walker.folder(step.path.parents()) {
            Err(Errno::NOENT) => return Ok(StepEnd::Left(Outcome::Kept(DiskNode::Nothing))),
            Ok(folder) if is_still(folder, step.path.name().bytes(), seen)? => return Ok(StepEnd::Done),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        let PathState { found, .. } = inspect_step(self.request, &mut self.walker, step)?;
        if found.matches(step.before.as_ref()) {
            Ok(StepEnd::Done)
        } else if found.matches(step.after.as_ref()) {
            Ok(StepEnd::Left(Outcome::Already))
        } else {
            Ok(StepEnd::Left(Outcome::Kept(found)))
        }
    }

    /// Returns whether the file that was moved aside is the expected one.
    fn is_expected_content(&self, index: usize, aside: &[u8], seen: &Identity) -> Result<bool, Errno> {
        if !seen.may_be_stale() && is_still(self.stage, aside, seen)? {
            return Ok(true);
        }
        Ok(inspect(self.stage, aside, |_| None)?.found.matches(self.steps[index].before.as_ref()))
    }

    fn take_out(&mut self, index: usize, seen: &Identity) -> Result<StepEnd, Errno> {
        if let StepEnd::Left(outcome) = self.expected(index, seen)? {
            return Ok(StepEnd::Left(outcome));
        }
        let step = self.steps[index];
        let aside = format!("r{index}");
        let to = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        let taken = in_folder(&mut self.walker, step.path.parents(), |folder| {
            renames.put(EntryLocation { folder, name: step.path.name().bytes() }, to)
        });
        match taken {
            Err(Errno::NOENT) => return Ok(StepEnd::Left(Outcome::Kept(DiskNode::Nothing))),
            other => other?,
        }
        if self.is_expected_content(index, aside.as_bytes(), seen)? {
            self.done.push(CompletedStep::Out(index));
            return Ok(StepEnd::Done);
        }
        self.return_to_place(index, &aside).map(StepEnd::Left)
    }

    fn take_out_folder(&mut self, index: usize) -> Result<StepEnd, Errno> {
        let step = self.steps[index];
        let name = step.path.name().bytes();
        let aside = format!("r{index}");
        let to = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        let above = match self.walker.folder(step.path.parents()) {
            Err(Errno::NOENT) => return Ok(StepEnd::Left(Outcome::Already)),
            other => other?,
        };
        let folder = match open_folder(above, name) {
            Err(Errno::NOENT) => return Ok(StepEnd::Left(Outcome::Already)),
            other => other?,
        };
        if !names_in(folder.as_fd())?.is_empty() {
            return Ok(StepEnd::Left(Outcome::Skipped(SkipReason::NotEmpty)));
        }
        // Includes the special bits that snapshots do not capture, so that a rollback restores them.
        let mode = (rustix::fs::fstat(&folder)?.st_mode & 0o7777) as u16;
        if !is_open(mode) {
            // A folder that its owner cannot write to cannot be moved to another parent.
            rustix::fs::fchmod(&folder, Mode::from_raw_mode(STAGING_MODE.into()))?;
        }
        let close = |folder: &OwnedFd| rustix::fs::fchmod(folder, Mode::from_raw_mode(mode.into()));
        let taken = in_folder(&mut self.walker, step.path.parents(), |above| {
            renames.put(EntryLocation { folder: above, name }, to)
        });
        if let Err(errno) = taken {
            close(&folder)?;
            return Err(errno);
        }
        if names_in(folder.as_fd())?.is_empty() {
            self.done.push(CompletedStep::OutFolder(index, mode));
            return Ok(StepEnd::Done);
        }
        // Someone added a file to the folder in the meantime.
        close(&folder)?;
        self.return_folder(index, &aside).map(StepEnd::Left)
    }

    fn swap(&mut self, index: usize, seen: &Identity) -> Result<StepEnd, Errno> {
        if let StepEnd::Left(outcome) = self.expected(index, seen)? {
            return Ok(StepEnd::Left(outcome));
        }
        let step = self.steps[index];
        let aside = format!("x{index}");
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        let swapped = in_folder(&mut self.walker, step.path.parents(), |folder| {
            renames.swap(from, EntryLocation { folder, name: step.path.name().bytes() })
        });
        match swapped {
            Err(Errno::NOENT) => Ok(StepEnd::Left(Outcome::Kept(DiskNode::Nothing))),
            Err(errno) => Err(errno),
            Ok(SwapOutcome::Unknown) => self.swap_in_two(index, seen),
            Ok(SwapOutcome::Done) => {
                if self.is_expected_content(index, aside.as_bytes(), seen)? {
                    self.done.push(CompletedStep::Swapped(index, *seen));
                    return Ok(StepEnd::Done);
                }
                self.swap_back(index).map(StepEnd::Left)
            }
        }
    }

    /// Fallback for file systems without swap: moves the old file out, then the new one in.
    fn swap_in_two(&mut self, index: usize, seen: &Identity) -> Result<StepEnd, Errno> {
        if let StepEnd::Left(outcome) = self.take_out(index, seen)? {
            return Ok(StepEnd::Left(outcome));
        }
        let step = self.steps[index];
        let aside = format!("x{index}");
        let from = EntryLocation { folder: self.stage, name: aside.as_bytes() };
        let renames = &self.request.root.renames;
        let put = in_folder(&mut self.walker, step.path.parents(), |folder| {
            renames.put(from, EntryLocation { folder, name: step.path.name().bytes() })
        });
        match put {
            Ok(()) => {
                self.done.push(CompletedStep::New(index));
                Ok(StepEnd::Done)
            }
            Err(Errno::EXIST) => {
                Ok(StepEnd::Left(Outcome::Kept(inspect_step(self.request, &mut self.walker, step)?.found)))
            }
            Err(errno) => Err(errno),
        }
    }

    /// Moves in a new entry with everything below it.
    fn bring_in(&mut self, top: usize) -> Result<(), Cause> {
        let members = (top + 1..self.steps.len())
            .take_while(|&index| self.steps[index].path.starts_with(&self.steps[top].path));
        let end = members.last().map_or(top + 1, |last| last + 1);
        let mut moved: Option<usize> = None;
        for index in top..end {
            if self.outcomes[index].is_some() {
                continue;
            }
            if moved.is_some_and(|moved| self.steps[index].path.starts_with(&self.steps[moved].path)) {
                self.done.push(CompletedStep::Within(index));
                self.outcomes[index] = Some(Outcome::Written);
                continue;
            }
            let result = self.put_in(index, top);
            if matches!(result, Ok(StepEnd::Done))
                && self.steps[index].after.as_ref().is_some_and(Node::is_folder)
            {
                moved = Some(index);
            }
            self.record_outcome(index, result, Some(Outcome::Written))?;
        }
        Ok(())
    }

    fn put_in(&mut self, index: usize, top: usize) -> Result<StepEnd, Errno> {
        let step = self.steps[index];
        let staged = names(self.steps, self.actions, index).expect("new content is staged");
        let (aside, above) = staged.split_last().expect("there is a name");
        let from = EntryLocation { folder: self.aside.folder(above)?, name: aside.bytes() };
        let renames = &self.request.root.renames;
        if index == top {
            let made = match self.walker.folder(step.path.parents()) {
                Err(Errno::NOENT) => self.walker.make(step.path.parents())?,
                other => other.map(|_| 0)?,
            };
            if made > 0 {
                self.done.push(CompletedStep::Made(step.path.parents().to_vec(), made));
            }
        }
        let put = in_folder(&mut self.walker, step.path.parents(), |folder| {
            renames.put(from, EntryLocation { folder, name: step.path.name().bytes() })
        });
        match put {
            Ok(()) => {
                self.done.push(CompletedStep::New(index));
                Ok(StepEnd::Done)
            }
            Err(Errno::EXIST) => {
                let PathState { found, identity, .. } = inspect_step(self.request, &mut self.walker, step)?;
                Ok(StepEnd::Left(if found.matches(step.after.as_ref()) {
                    Outcome::Already
                } else if self.is_same_file(index, identity.as_ref())? {
                    Outcome::Skipped(SkipReason::NameClash)
                } else {
                    Outcome::Kept(found)
                }))
            }
            Err(errno) => Err(errno),
        }
    }

    /// Returns whether the existing file is one that another step put there, under a name that the file system treats
    /// as equal.
    fn is_same_file(&mut self, index: usize, there: Option<&Identity>) -> Result<bool, Errno> {
        let (Some(there), path) = (there, &self.steps[index].path) else { return Ok(false) };
        let folded = |name: &FileName| String::from_utf8_lossy(name.bytes()).to_lowercase();
        let name = folded(path.name());
        for other in self.steps {
            let alike = other.path.parents() == path.parents()
                && other.path.name() != path.name()
                && folded(other.path.name()) == name;
            if !alike || other.after.is_none() {
                continue;
            }
            let folder = self.walker.folder(path.parents())?;
            let stat = rustix::fs::statat(folder, other.path.name().bytes(), AtFlags::SYMLINK_NOFOLLOW);
            if stat.is_ok_and(|stat| Identity::of(&stat) == *there) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn set_mode(&mut self, index: usize, seen: &Identity) -> Result<StepEnd, Errno> {
        if let StepEnd::Left(outcome) = self.expected(index, seen)? {
            return Ok(StepEnd::Left(outcome));
        }
        let step = self.steps[index];
        let mode = step.after.as_ref().and_then(Node::mode).expect("a file has permissions");
        let folder = self.walker.folder(step.path.parents())?;
        change_mode(folder, step.path.name().bytes(), mode)?;
        self.done.push(CompletedStep::Mode(index, seen.mode));
        Ok(StepEnd::Done)
    }

    fn set_folder_mode(&mut self, index: usize) -> Result<StepEnd, Errno> {
        let step = self.steps[index];
        let mode = step.after.as_ref().and_then(Node::mode).expect("a folder has permissions");
        let above = self.walker.folder(step.path.parents())?;
        let folder = match open_folder(above, step.path.name().bytes()) {
            Err(Errno::NOENT) => return Ok(StepEnd::Left(Outcome::Kept(DiskNode::Nothing))),
            other => other?,
        };
        let found = rustix::fs::fstat(&folder)?.st_mode;
        let old = (found & 0o777) as u16;
        // The folder was inspected before. A folder without list permission was opened by path only, which cannot
        // change it.
        match rustix::fs::fchmod(&folder, with_special_bits(mode, found)) {
            Err(Errno::BADF) => change_mode(above, step.path.name().bytes(), mode)?,
            other => other?,
        }
        self.done.push(CompletedStep::Mode(index, old));
        Ok(StepEnd::Done)
    }
}

/// Changes the permissions of a file or folder, without following a link.
fn change_mode(folder: BorrowedFd<'_>, name: &[u8], mode: u16) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => {
            let found = rustix::fs::fstat(&file)?.st_mode;
            rustix::fs::fchmod(file, with_special_bits(mode, found))
        }
        // The owner may change the mode even without read permission.
        Err(Errno::ACCESS) => {
            let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
            rustix::fs::chmodat(folder, name, with_special_bits(mode, found), AtFlags::SYMLINK_NOFOLLOW)
        }
        Err(errno) => Err(errno),
    }
}

/// Keeps the existing setuid, setgid and sticky bits of content that stays, since snapshots do not capture them.
fn with_special_bits(mode: u16, found: RawMode) -> Mode {
    Mode::from_raw_mode(RawMode::from(mode) | (found & 0o7000))
}

/// Runs an action in a folder; if we own the folder and may not write to it, makes it writable for that time.
fn in_folder<T>(
    walker: &mut Walker<'_>,
    names: &[FileName],
    action: impl Fn(BorrowedFd<'_>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let folder = walker.folder(names)?;
    match action(folder) {
        Err(Errno::ACCESS) => {}
        other => return other,
    }
    let stat = rustix::fs::fstat(folder)?;
    let mode = stat.st_mode & 0o7777;
    if mode & 0o300 == 0o300 || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::ACCESS);
    }
    rustix::fs::fchmod(folder, Mode::from_raw_mode(mode | 0o700))?;
    let done = action(folder);
    rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?;
    done
}
