//! Walks a folder recursively by descriptor, in name order.
//!
//! Does not follow symlinks. Skips names that are no [`FileName`] (data of a repository, temporary files),
//! denied paths, and ignored ones unless requested.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use retake_model::path::{FileName, TreePath};
use rustix::fs::{Dir, FileType};

use super::ignore_rules::IgnoreRules;
use super::openat::SymlinkPolicy;
use super::{ToolError, ToolPath, ToolRun, openat};

/// Options of a walk.
pub(super) struct Walk<'a> {
    pub(super) start: &'a ToolPath,
    pub(super) depth: usize,
    pub(super) ignored: IgnoredNames,
}

/// How to treat ignored names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoredNames {
    Skip,
    Show,
}

/// Maximum depth, since each folder on the path stays open.
pub(super) const MAX_DEPTH: usize = 100;

/// An entry of a walk.
pub(super) struct WalkEntry<'a> {
    /// Path from the root.
    pub(super) path: &'a TreePath,
    pub(super) kind: FileType,
    /// Its parent folder.
    pub(super) folder: BorrowedFd<'a>,
    /// Completed fraction from 0 to 1, dividing each folder evenly among its names. Never decreases.
    pub(super) fraction: f64,
}

/// The range of the total progress that an entry covers.
#[derive(Clone, Copy)]
struct ProgressRange {
    start: f64,
    length: f64,
}

impl WalkEntry<'_> {
    /// Its path from the start of the walk.
    pub(super) fn from(&self, start: &ToolPath) -> Vec<u8> {
        let skipped = start.path().map_or(0, |path| path.names().len());
        self.path.names()[skipped..].iter().map(FileName::bytes).collect::<Vec<_>>().join(&b'/')
    }
}

type Visit<'a> = dyn FnMut(&WalkEntry<'_>) -> Result<ControlFlow<()>, ToolError> + 'a;

/// Visits all entries until `visit` stops.
pub(super) fn walk(run: &ToolRun<'_>, walk: &Walk<'_>, visit: &mut Visit<'_>) -> Result<(), ToolError> {
    let mut rules = match walk.ignored {
        IgnoredNames::Skip => IgnoreRules::above(&run.context.directory),
        IgnoredNames::Show => IgnoreRules::default(),
    };
    let mut way = Vec::new();
    let root = openat::folder(&run.context.root, &ToolPath::Root, SymlinkPolicy::Refuse)?;
    if let (Some(path), IgnoredNames::Skip) = (walk.start.path(), walk.ignored) {
        // Apply the rules of the folders above the start, except behind a symlink.
        let mut here = Some(root);
        for name in path.names() {
            match &here {
                Some(folder) => rules.enter(folder.as_fd()),
                None => rules.enter_unread(),
            }
            here = here.and_then(|folder| openat::step(folder.as_fd(), name).ok());
        }
    }
    way.extend(walk.start.path().iter().flat_map(|path| path.names()).cloned());
    let start = openat::folder(&run.context.root, walk.start, run.links())?;
    let mut walker = Walker { run, ignored: walk.ignored, rules, visit };
    let whole = ProgressRange { start: 0.0, length: 1.0 };
    walker.folder(start.as_fd(), &mut way, walk.depth.min(MAX_DEPTH), whole).map(|_| ())
}

struct Walker<'a, 'b> {
    run: &'a ToolRun<'b>,
    ignored: IgnoredNames,
    rules: IgnoreRules,
    visit: &'a mut Visit<'a>,
}

impl Walker<'_, '_> {
    fn folder(
        &mut self,
        folder: BorrowedFd<'_>,
        way: &mut Vec<FileName>,
        depth: usize,
        part: ProgressRange,
    ) -> Result<ControlFlow<()>, ToolError> {
        if depth == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        if self.ignored == IgnoredNames::Skip {
            self.rules.enter(folder);
        }
        let names = names(self.run, folder)?;
        let length = part.length / names.len().max(1) as f64;
        for (index, (name, kind)) in names.into_iter().enumerate() {
            self.run.check_cancel()?;
            way.push(name.clone());
            let part = ProgressRange { start: part.start + length * index as f64, length };
            let flow = self.one(folder, &name, kind, way, depth, part)?;
            way.pop();
            if flow.is_break() {
                return Ok(flow);
            }
        }
        if self.ignored == IgnoredNames::Skip {
            self.rules.leave();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn one(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &FileName,
        kind: FileType,
        way: &mut Vec<FileName>,
        depth: usize,
        part: ProgressRange,
    ) -> Result<ControlFlow<()>, ToolError> {
        if self.ignored == IgnoredNames::Skip && self.rules.ignores(way, kind) {
            return Ok(ControlFlow::Continue(()));
        }
        let bytes = way.iter().map(FileName::bytes).collect::<Vec<_>>().join(&b'/');
        if self.run.is_denied(&bytes) {
            return Ok(ControlFlow::Continue(()));
        }
        // Fails only for paths that are too long to use.
        let Ok(path) = TreePath::new(&bytes) else { return Ok(ControlFlow::Continue(())) };
        let flow = (self.visit)(&WalkEntry { path: &path, kind, folder, fraction: part.start })?;
        if flow.is_break() || kind != FileType::Directory {
            return Ok(flow);
        }
        match openat::step(folder, name) {
            Ok(inner) => self.folder(inner.as_fd(), way, depth - 1, part),
            // Removed, replaced or unreadable meanwhile.
            Err(_) => Ok(ControlFlow::Continue(())),
        }
    }
}

/// The sorted names of a folder with their types.
fn names(run: &ToolRun<'_>, folder: BorrowedFd<'_>) -> Result<Vec<(FileName, FileType)>, ToolError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        run.check_cancel()?;
        let entry = entry?;
        let Ok(name) = FileName::new(entry.file_name().to_bytes()) else { continue };
        let kind = match entry.file_type() {
            FileType::Unknown => match openat::look(folder, &name) {
                Ok(Some(stat)) => FileType::from_raw_mode(stat.st_mode),
                _ => continue,
            },
            kind => kind,
        };
        names.push((name, kind));
    }
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}
