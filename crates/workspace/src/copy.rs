//! Writes a whole tree into a new folder: the worktree of a take.
//!
//! Most files exist unchanged in another folder of the user. Each file uses the cheapest method that works:
//!
//! ```text
//!   share blocks (reflink)  ──no──►  copied by the kernel  ──no──►  written from the store
//!   if the file system can           the file is known              changed, missing or unknown
//!                                    to be unchanged                in the other folder
//! ```
//!
//! A source file counts as unchanged if the caller knows its identity and if that is the same before and after the
//! copy: a file that is written in the meantime comes from the store instead. Everything is durable when this returns,
//! with one sync.

mod worker;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use retake_model::content::ContentId;
use retake_model::object::{ObjectError, Objects};
use retake_model::path::{FileName, TreePath};
use retake_model::tree::{Node, Tree, each_piece};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::apply::stage::write_all;
use crate::apply::walk::{Walker, names, remove_all};
use crate::apply::{Identity, OpenRoot};
use worker::{Batch, SharedState, create};

/// A tree to write.
pub struct Request<'a> {
    /// The new folder; it must be empty.
    pub target: &'a OpenRoot,
    /// The tree.
    pub tree: ContentId,
    /// Source of trees and content. Only the calling thread reads it.
    pub objects: &'a dyn Objects,
    /// A folder that contains most of the files.
    pub copy_source: Option<CopySource<'a>>,
    /// Receives the number of files done from time to time.
    pub progress: Option<&'a dyn Fn(u64)>,
    /// Set by another thread to stop and remove everything again.
    pub cancel: &'a AtomicBool,
}

/// A folder that contains most files of a tree.
#[derive(Clone, Copy)]
pub struct CopySource<'a> {
    /// The folder.
    pub root: &'a OpenRoot,
    /// Returns whether the file at that path, with that identity, has that content. Must return `false` if in doubt.
    pub unchanged: &'a (dyn Fn(&TreePath, &Identity, ContentId) -> bool + Sync),
}

/// Numbers of the files that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaterialiseReport {
    /// Files that share their blocks with the source.
    pub shared: u64,
    /// Files that were copied from the source.
    pub copied: u64,
    /// Files that were written from the store.
    pub written: u64,
    /// Links.
    pub links: u64,
    /// Folders.
    pub folders: u64,
}

/// The copy failed; the folder is empty again.
#[derive(Debug, thiserror::Error)]
pub enum MaterialiseError {
    /// The folder is not empty.
    #[error("the folder is not empty")]
    NotEmpty,
    /// The caller cancelled it.
    #[error("cancelled; the folder is empty again")]
    Cancelled,
    /// Content is missing from the store.
    #[error(transparent)]
    Content(#[from] ObjectError),
    /// The folder cannot be written.
    #[error("the folder cannot be written")]
    Write(#[source] io::Error),
}

/// Writes a tree into a new folder.
pub fn materialise(request: &Request<'_>) -> Result<MaterialiseReport, MaterialiseError> {
    let target = request.target.as_fd();
    if !names(target)?.is_empty() {
        return Err(MaterialiseError::NotEmpty);
    }
    write_tree(request).inspect_err(|_| {
        // The folder was empty, so everything in it is ours; the user sees what cannot be removed.
        for name in names(target).unwrap_or_default() {
            let _ = remove_all(target, &name);
        }
    })
}

/// Files per batch.
const BATCH: usize = 64;

fn write_tree(request: &Request<'_>) -> Result<MaterialiseReport, MaterialiseError> {
    let target = request.target.as_fd();
    let shared = SharedState::default();
    let (sender, receiver) = sync_channel::<Batch>(16);
    let receiver = std::sync::Mutex::new(receiver);
    let copy_source = request.copy_source;
    let mut found = TreeLayout::default();
    let walked = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| worker::run(target, copy_source, &receiver, &shared));
        }
        // Moved into the closure, so that the channel closes when the walk ends.
        let sender = sender;
        walk(request, &shared, &mut found, &|batch| {
            // Sending fails only after a worker failed, which is checked below.
            let _ = sender.send(batch);
        })
    });
    walked?;
    if let Some(errno) = shared.failure() {
        return Err(errno.into());
    }
    let mut walker = Walker::new(target);
    let missed = shared.missed_files();
    let written = missed.len() as u64;
    for (path, node) in missed {
        check_cancel(request)?;
        write_from_store(request, &mut walker, &path, &node)?;
    }
    set_folder_modes(&mut walker, &found.folders)?;
    rustix::fs::syncfs(target)?;
    Ok(MaterialiseReport {
        shared: shared.cloned.load(Ordering::Relaxed),
        copied: shared.copied.load(Ordering::Relaxed),
        written,
        links: found.links,
        folders: found.folders.len() as u64,
    })
}

#[derive(Default)]
struct TreeLayout {
    folders: Vec<(Vec<FileName>, u16)>,
    links: u64,
}

/// Walks the tree, creates its folders and links, and sends its files to the workers.
fn walk(
    request: &Request<'_>,
    shared: &SharedState,
    found: &mut TreeLayout,
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
        let tree = Tree::load(request.objects, tree)?;
        tree.check().map_err(|malformed| ObjectError::Damaged { kind: malformed.kind, id: request.tree })?;
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
    let Node::File { mode, .. } = node else { return Ok(()) };
    let folder = walker.folder(path.parents())?;
    let file = create(folder, path.name())?;
    each_piece(request.objects, node, &mut |piece| {
        Ok::<_, MaterialiseError>(write_all(file.as_fd(), &piece)?)
    })?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode((*mode).into()))?;
    Ok(())
}

fn set_folder_modes(walker: &mut Walker<'_>, folders: &[(Vec<FileName>, u16)]) -> Result<(), Errno> {
    // Children come after their parents and get their final mode first.
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

/// A counter that the workers share.
type Count = AtomicU64;

#[cfg(test)]
mod tests;
