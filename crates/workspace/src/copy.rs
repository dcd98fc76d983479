//! A whole tree laid out in a new folder: a take opened apart.
//!
//! Most of its files already stand in another folder of the user's, unchanged. Each is taken by the cheapest
//! way that works there:
//!
//! ```text
//!   shares its blocks (reflink)  ──no──►  copied by the kernel  ──no──►  written from the store
//!   where the file system can             the file is known              changed, gone or unknown
//!                                         to be unchanged                nearby
//! ```
//!
//! A file nearby counts as unchanged if the caller knows its identity, and if that is the same after the copy as
//! before it: a file that is written meanwhile comes from the store instead. When this returns, everything is
//! durable, by one sync.

mod worker;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{Objects, Unavailable, load};
use retake_model::path::{FileName, TreePath};
use retake_model::tree::{Node, Parts, Tree};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::apply::stage::write_all;
use crate::apply::walk::{Walker, names, remove_all};
use crate::apply::{Identity, OpenRoot};
use worker::{Batch, Shared, create};

/// What is to be laid out.
pub struct Request<'a> {
    /// The new folder; it must be empty.
    pub target: &'a OpenRoot,
    /// The tree.
    pub tree: ContentId,
    /// Where trees and content come from. It is read on the calling thread only.
    pub objects: &'a dyn Objects,
    /// A folder that has most of the files.
    pub nearby: Option<Nearby<'a>>,
    /// Told how many files are done, now and then.
    pub progress: Option<&'a dyn Fn(u64)>,
    /// Set from elsewhere to stop, and remove everything again.
    pub cancel: &'a AtomicBool,
}

/// A folder that has most of the files of a tree.
#[derive(Clone, Copy)]
pub struct Nearby<'a> {
    /// The folder.
    pub root: &'a OpenRoot,
    /// Whether the file at that path, with that identity, is known to have that content. An answer that is not
    /// certain must be no.
    pub unchanged: &'a (dyn Fn(&TreePath, &Identity, ContentId) -> bool + Sync),
}

/// What was laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Materialised {
    /// Files that share their blocks with the ones nearby.
    pub shared: u64,
    /// Files that were copied from nearby.
    pub copied: u64,
    /// Files that were written from the store.
    pub written: u64,
    /// Links.
    pub links: u64,
    /// Folders.
    pub folders: u64,
}

/// It failed; nothing is left in the folder.
#[derive(Debug, thiserror::Error)]
pub enum MaterialiseError {
    /// Something is in the folder.
    #[error("the folder is not empty")]
    NotEmpty,
    /// It was to stop.
    #[error("it was cancelled")]
    Cancelled,
    /// The store does not have everything.
    #[error(transparent)]
    Content(#[from] Unavailable),
    /// The folder cannot be written.
    #[error("the folder cannot be written")]
    Write(#[source] io::Error),
}

/// Lays a tree out.
pub fn materialise(request: &Request<'_>) -> Result<Materialised, MaterialiseError> {
    let target = request.target.as_fd();
    if !names(target)?.is_empty() {
        return Err(MaterialiseError::NotEmpty);
    }
    lay_out(request).inspect_err(|_| {
        // The folder was empty, so everything in it is ours; what cannot be removed is seen by the user.
        for name in names(target).unwrap_or_default() {
            let _ = remove_all(target, &name);
        }
    })
}

/// Files that a worker takes at once.
const BATCH: usize = 64;

fn lay_out(request: &Request<'_>) -> Result<Materialised, MaterialiseError> {
    let target = request.target.as_fd();
    let shared = Shared::default();
    let (sender, receiver) = sync_channel::<Batch>(16);
    let receiver = std::sync::Mutex::new(receiver);
    let nearby = request.nearby;
    let mut found = Found::default();
    let walked = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| worker::run(target, nearby, &receiver, &shared));
        }
        // Moved in, so that the workers see the end of the walk.
        let sender = sender;
        walk(request, &shared, &mut found, &|batch| {
            // Nobody takes it only after a failure, which is looked at below.
            let _ = sender.send(batch);
        })
    });
    walked?;
    if let Some(errno) = shared.failure() {
        return Err(errno.into());
    }
    let mut walker = Walker::new(target);
    let missed = shared.take_missed();
    let written = missed.len() as u64;
    for (path, node) in missed {
        check_cancel(request)?;
        write_from_store(request, &mut walker, &path, &node)?;
    }
    set_folder_modes(&mut walker, &found.folders)?;
    rustix::fs::syncfs(target)?;
    Ok(Materialised {
        shared: shared.cloned.load(Ordering::Relaxed),
        copied: shared.copied.load(Ordering::Relaxed),
        written,
        links: found.links,
        folders: found.folders.len() as u64,
    })
}

#[derive(Default)]
struct Found {
    folders: Vec<(Vec<FileName>, u16)>,
    links: u64,
}

/// Goes through the tree, makes its folders and links, and hands out its files.
fn walk(
    request: &Request<'_>,
    shared: &Shared,
    found: &mut Found,
    hand_out: &dyn Fn(Batch),
) -> Result<(), MaterialiseError> {
    let mut walker = Walker::new(request.target.as_fd());
    let mut open: Vec<(Vec<FileName>, ContentId)> = vec![(Vec::new(), request.tree)];
    let mut handed_out = 0;
    while let Some((names, tree)) = open.pop() {
        check_cancel(request)?;
        if shared.failure().is_some() {
            return Ok(());
        }
        let tree: Tree = load(request.objects, tree)?;
        tree.check().map_err(|malformed| Unavailable::Damaged { kind: malformed.kind, id: request.tree })?;
        let folder = walker.folder(&names)?;
        let mut files = Vec::with_capacity(tree.entries().len().min(BATCH));
        for entry in tree.entries().iter().filter(|entry| !entry.name.is_repository()) {
            match &entry.node {
                Node::Folder { tree, mode } => {
                    rustix::fs::mkdirat(folder, entry.name.bytes(), Mode::from_raw_mode(0o700))?;
                    let mut below = names.clone();
                    below.push(entry.name.clone());
                    found.folders.push((below.clone(), *mode));
                    open.push((below, *tree));
                }
                Node::Link { target } => {
                    rustix::fs::symlinkat(target.as_slice(), folder, entry.name.bytes())?;
                    found.links += 1;
                }
                Node::File { .. } => files.push((entry.name.clone(), entry.node.clone())),
            }
        }
        while !files.is_empty() {
            let rest = files.split_off(files.len().min(BATCH));
            handed_out += files.len() as u64;
            hand_out(Batch { folder: names.clone(), files });
            files = rest;
        }
        if let Some(progress) = request.progress {
            progress(handed_out);
        }
    }
    Ok(())
}

fn write_from_store(
    request: &Request<'_>,
    walker: &mut Walker<'_>,
    path: &TreePath,
    node: &Node,
) -> Result<(), MaterialiseError> {
    let Node::File { content, size, mode } = node else { return Ok(()) };
    let folder = walker.folder(path.parents())?;
    let file = create(folder, path.name())?;
    if Node::kind_of(*size) == Kind::Blob {
        write_all(file.as_fd(), &request.objects.bytes(Kind::Blob, *content)?)?;
    } else {
        let parts: Parts = load(request.objects, *content)?;
        for part in parts.0 {
            write_all(file.as_fd(), &request.objects.bytes(Kind::Blob, part)?)?;
        }
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode((*mode).into()))?;
    Ok(())
}

fn set_folder_modes(walker: &mut Walker<'_>, folders: &[(Vec<FileName>, u16)]) -> Result<(), Errno> {
    // Each comes after the one that it is in, and is closed before it.
    for (names, mode) in folders.iter().rev().filter(|(_, mode)| *mode != 0o700) {
        let (name, above) = names.split_last().expect("a folder has a name");
        let folder = walker.folder(above)?;
        rustix::fs::chmodat(folder, name.bytes(), Mode::from_raw_mode((*mode).into()), AtFlags::empty())?;
    }
    Ok(())
}

fn check_cancel(request: &Request<'_>) -> Result<(), MaterialiseError> {
    if request.cancel.load(Ordering::Relaxed) { Err(MaterialiseError::Cancelled) } else { Ok(()) }
}

impl From<Errno> for MaterialiseError {
    fn from(errno: Errno) -> Self {
        Self::Write(errno.into())
    }
}

/// Counts that both workers add to.
type Count = AtomicU64;

#[cfg(test)]
mod tests;
