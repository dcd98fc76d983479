//! Cleans up after an interrupted attempt.
//!
//! ```text
//!   …-1/   incomplete new content: delete
//!   …-2/   n3   new content that was not moved yet: delete
//!          r5   removed from its path: move back, and restart the request from there
//!          x7   before the swap, new content; after it, the old file. If it matches one side, the store has
//!               it: delete. Otherwise it is someone's change from the last moment: move back
//! ```

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::content::ContentId;
use retake_model::tree::{Difference, Node};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::inspect::inspect;
use super::plan::STAGING_MODE;
use super::rename::{EntryLocation, SwapOutcome};
use super::walk::{Walker, names, open_folder, remove_all};
use super::{DiskNode, Leftover, Request, StageState};

/// Cleans up after an interrupted attempt. Returns the files that could neither be moved back nor deleted.
pub(super) fn recover(request: &Request<'_>, steps: &[&Difference]) -> Result<Vec<Leftover>, Errno> {
    let root = request.root.as_fd();
    remove_all(root, request.token.folder(StageState::Filling).as_bytes())?;
    let full = request.token.folder(StageState::Full);
    let folder = match open_folder(root, full.as_bytes()) {
        Err(Errno::NOENT) => return Ok(Vec::new()),
        other => other?,
    };
    let mut entries: Vec<(usize, char, Vec<u8>)> = names(folder.as_fd())?
        .into_iter()
        .filter_map(|name| {
            let kind = char::from(*name.first()?);
            let index = str::from_utf8(&name[1..]).ok()?.parse().ok()?;
            Some((index, kind, name))
        })
        .collect();
    // Sorted by path, so that a folder is moved back before its content.
    entries.sort();
    let mut left = Vec::new();
    let stored = StoredContent::new(steps);
    for (index, kind, name) in entries {
        let place = EntryLocation { folder: folder.as_fd(), name: &name };
        if kind != 'n' && !settle(request, steps, &stored, index, kind, place)? {
            left.push((index, name));
        }
    }
    if left.is_empty() {
        remove_all(root, full.as_bytes())?;
        return Ok(Vec::new());
    }
    keep_aside(request, steps, folder.as_fd(), &full, left)
}

/// Moves one entry back, or finds that it can be deleted; otherwise it must stay.
fn settle(
    request: &Request<'_>,
    steps: &[&Difference],
    stored: &StoredContent<'_>,
    index: usize,
    kind: char,
    aside: EntryLocation<'_>,
) -> Result<bool, Errno> {
    let found = inspect(aside.folder, aside.name, |_| None)?.found;
    let known = stored.holds(&found);
    if known && kind != 'r' {
        return Ok(true);
    }
    // An empty folder has no content to lose; if its parent is already gone, it can be deleted too.
    let may_go = || known || rustix::fs::unlinkat(aside.folder, aside.name, AtFlags::REMOVEDIR).is_ok();
    let Some(step) = steps.get(index) else { return Ok(may_go()) };
    let mut walker = Walker::new(request.root.as_fd());
    let Ok(parent) = walker.folder(step.path.parents()) else { return Ok(may_go()) };
    let target = EntryLocation { folder: parent, name: step.path.name().bytes() };
    let closed = closed_folder(aside, step, &found);
    match request.root.renames.put(aside, target) {
        Ok(()) => {
            if let Some((folder, mode)) = closed {
                rustix::fs::fchmod(&folder, mode)?;
            }
            return Ok(true);
        }
        Err(Errno::EXIST) => {}
        Err(errno) => return if known { Ok(true) } else { Err(errno) },
    }
    if may_go() {
        // The store has the content, or an empty folder exists there again.
        return Ok(true);
    }
    if stored.holds(&inspect(target.folder, target.name, |_| None)?.found)
        && matches!(request.root.renames.swap(aside, target)?, SwapOutcome::Done)
    {
        let came = inspect(aside.folder, aside.name, |_| None)?.found;
        return Ok(stored.holds(&came));
    }
    Ok(false)
}

/// A folder that was made writable before the crash, with its original permissions. Without these it would look changed
/// by someone else.
fn closed_folder(aside: EntryLocation<'_>, step: &Difference, found: &DiskNode) -> Option<(OwnedFd, Mode)> {
    let (DiskNode::Folder { mode: now }, Some(Node::Folder { mode, .. })) = (found, &step.before) else {
        return None;
    };
    let opened = *now == STAGING_MODE && *mode != STAGING_MODE;
    let folder = opened.then(|| open_folder(aside.folder, aside.name).ok()).flatten()?;
    Some((folder, Mode::from_raw_mode((*mode).into())))
}

/// Content of either side of the steps, which the store has.
#[derive(Default)]
struct StoredContent<'steps> {
    files: HashSet<(ContentId, u64)>,
    links: HashSet<&'steps [u8]>,
}

impl<'steps> StoredContent<'steps> {
    fn new(steps: &[&'steps Difference]) -> Self {
        let mut stored = Self::default();
        for node in steps.iter().flat_map(|step| step.before.iter().chain(&step.after)) {
            match node {
                Node::File { content, size, .. } => drop(stored.files.insert((*content, *size))),
                Node::Link { target } => drop(stored.links.insert(target)),
                Node::Folder { .. } => {}
            }
        }
        stored
    }

    /// Returns whether deleting this loses nothing.
    fn holds(&self, found: &DiskNode) -> bool {
        match found {
            DiskNode::Nothing => true,
            DiskNode::File { content, size, .. } => self.files.contains(&(*content, *size)),
            DiskNode::Link { target } => self.links.contains(target.as_slice()),
            DiskNode::Folder { .. } | DiskNode::Special => false,
        }
    }
}

/// Moves entries that must stay to a folder that no request deletes.
pub(super) fn keep_aside(
    request: &Request<'_>,
    steps: &[&Difference],
    folder: BorrowedFd<'_>,
    full: &str,
    left: Vec<(usize, Vec<u8>)>,
) -> Result<Vec<Leftover>, Errno> {
    let root = request.root.as_fd();
    let kept: HashSet<&[u8]> = left.iter().map(|(_, kept)| kept.as_slice()).collect();
    for name in names(folder)? {
        if !kept.contains(name.as_slice()) {
            remove_all(folder, &name)?;
        }
    }
    let stem = &full[..full.len() - 1];
    let free = (3..10_000)
        .map(|number| format!("{stem}{number}"))
        .find(|name| rustix::fs::statat(root, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).is_err());
    let aside = free.ok_or(Errno::EXIST)?;
    rustix::fs::renameat(root, full.as_bytes(), root, aside.as_bytes())?;
    let name = |name: &[u8]| format!("{aside}/{}", String::from_utf8_lossy(name));
    Ok(left
        .into_iter()
        .map(|(index, file)| Leftover {
            file: name(&file),
            path: steps.get(index).map(|step| step.path.clone()),
        })
        .collect())
}
