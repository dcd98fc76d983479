//! What an earlier attempt left, when it was cut off.
//!
//! ```text
//!   …-1/   everything is ours and half made: it goes
//!   …-2/   n3   something new that was not moved yet: it goes
//!          r5   taken out of its place: put back, and the request starts from there again
//!          x7   before the swap ours; after it, what was there. One of the two sides: it goes, being held
//!               in the store. Neither: somebody's work, swapped out at the last moment: put back
//! ```

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::content::ContentId;
use retake_model::tree::{Difference, Node};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::look::look;
use super::plan::FILLING;
use super::rename::{Place, Swap};
use super::walk::{Walker, names, open_folder, remove_all};
use super::{Found, Left, Life, Request};

/// Clears up after an earlier attempt; tells which files could neither be put back nor be let go.
pub(super) fn recover(request: &Request<'_>, steps: &[&Difference]) -> Result<Vec<Left>, Errno> {
    let root = request.root.as_fd();
    remove_all(root, request.token.folder(Life::Filling).as_bytes())?;
    let full = request.token.folder(Life::Full);
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
    // In the order of the paths: a folder is put back before what belongs into it.
    entries.sort();
    let mut left = Vec::new();
    let stored = Stored::new(steps);
    for (index, kind, name) in entries {
        let place = Place { folder: folder.as_fd(), name: &name };
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

/// Puts one thing back, or finds that it may go; otherwise it must stay.
fn settle(
    request: &Request<'_>,
    steps: &[&Difference],
    stored: &Stored<'_>,
    index: usize,
    kind: char,
    aside: Place<'_>,
) -> Result<bool, Errno> {
    let found = look(aside.folder, aside.name, |_| None)?.found;
    let known = stored.holds(&found);
    if known && kind != 'r' {
        return Ok(true);
    }
    // An empty folder holds nobody's work; where its own folder has gone before it, it may go too.
    let may_go = || known || rustix::fs::unlinkat(aside.folder, aside.name, AtFlags::REMOVEDIR).is_ok();
    let Some(step) = steps.get(index) else { return Ok(may_go()) };
    let mut walker = Walker::new(request.root.as_fd());
    let Ok(parent) = walker.folder(step.path.parents()) else { return Ok(may_go()) };
    let target = Place { folder: parent, name: step.path.name().bytes() };
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
        // The store holds it, or it was an empty folder and there is one again.
        return Ok(true);
    }
    if stored.holds(&look(target.folder, target.name, |_| None)?.found)
        && matches!(request.root.renames.swap(aside, target)?, Swap::Done)
    {
        let came = look(aside.folder, aside.name, |_| None)?.found;
        return Ok(stored.holds(&came));
    }
    Ok(false)
}

/// A folder that was opened up, to be moved or to be removed, when the crash came; and the permissions that it had.
/// Without them it would be taken for one that somebody has changed.
fn closed_folder(aside: Place<'_>, step: &Difference, found: &Found) -> Option<(OwnedFd, Mode)> {
    let (Found::Folder { mode: now }, Some(Node::Folder { mode, .. })) = (found, &step.before) else {
        return None;
    };
    let opened = *now == FILLING && *mode != FILLING;
    let folder = opened.then(|| open_folder(aside.folder, aside.name).ok()).flatten()?;
    Some((folder, Mode::from_raw_mode((*mode).into())))
}

/// The content that the steps name: the store holds it.
#[derive(Default)]
struct Stored<'steps> {
    files: HashSet<(ContentId, u64)>,
    links: HashSet<&'steps [u8]>,
}

impl<'steps> Stored<'steps> {
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

    /// Whether nothing would be lost with it.
    fn holds(&self, found: &Found) -> bool {
        match found {
            Found::Nothing => true,
            Found::File { content, size, .. } => self.files.contains(&(*content, *size)),
            Found::Link { target } => self.links.contains(target.as_slice()),
            Found::Folder { .. } | Found::Special => false,
        }
    }
}

/// Moves what must stay to a folder that no request clears up.
pub(super) fn keep_aside(
    request: &Request<'_>,
    steps: &[&Difference],
    folder: BorrowedFd<'_>,
    full: &str,
    left: Vec<(usize, Vec<u8>)>,
) -> Result<Vec<Left>, Errno> {
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
        .map(|(index, file)| Left { file: name(&file), path: steps.get(index).map(|step| step.path.clone()) })
        .collect())
}
