//! Going through a folder and what is below it, by descriptor.
//!
//! Links are shown and not followed. Names that are no [`FileName`] (a repository's own data, our temporary files)
//! are passed over, as are closed ones, and ignored ones unless they are asked for. In the order of names, folder by folder.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use retake_model::path::{FileName, TreePath};
use rustix::fs::{Dir, FileType};

use super::beneath::Links;
use super::rules::Rules;
use super::{Bench, Failure, Spot, beneath};

/// Where to go, and how far.
pub(super) struct Walk<'a> {
    pub(super) start: &'a Spot,
    pub(super) depth: usize,
    pub(super) ignored: Ignored,
}

/// What is done with ignored names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    Skip,
    Show,
}

/// Deeper than this is not gone: each folder on the way is held open.
pub(super) const DEEPEST: usize = 100;

/// Something that was come across.
pub(super) struct Found<'a> {
    /// From the root.
    pub(super) path: &'a TreePath,
    pub(super) kind: FileType,
    /// The folder that it stands in.
    pub(super) folder: BorrowedFd<'a>,
    /// How much of the walk is done, from 0 to 1: each folder is divided evenly among its names. It never falls.
    pub(super) fraction: f64,
}

/// The part of the whole walk that something takes.
#[derive(Clone, Copy)]
struct Part {
    start: f64,
    length: f64,
}

impl Found<'_> {
    /// The way to it from where the walk began.
    pub(super) fn from(&self, start: &Spot) -> Vec<u8> {
        let skipped = start.path().map_or(0, |path| path.names().len());
        self.path.names()[skipped..].iter().map(FileName::bytes).collect::<Vec<_>>().join(&b'/')
    }
}

type Visit<'a> = dyn FnMut(&Found<'_>) -> Result<ControlFlow<()>, Failure> + 'a;

/// Visits everything until told to stop.
pub(super) fn walk(bench: &Bench<'_>, walk: &Walk<'_>, visit: &mut Visit<'_>) -> Result<(), Failure> {
    let mut rules = match walk.ignored {
        Ignored::Skip => Rules::above(&bench.room.directory),
        Ignored::Show => Rules::default(),
    };
    let mut way = Vec::new();
    let root = beneath::folder(&bench.room.root, &Spot::Root, Links::Refuse)?;
    if let (Some(path), Ignored::Skip) = (walk.start.path(), walk.ignored) {
        // The rules above the start hold below it too. Behind a link there are none to read.
        let mut here = Some(root);
        for name in path.names() {
            match &here {
                Some(folder) => rules.enter(folder.as_fd()),
                None => rules.enter_unread(),
            }
            here = here.and_then(|folder| beneath::step(folder.as_fd(), name).ok());
        }
    }
    way.extend(walk.start.path().iter().flat_map(|path| path.names()).cloned());
    let start = beneath::folder(&bench.room.root, walk.start, bench.links())?;
    let mut walker = Walker { bench, ignored: walk.ignored, rules, visit };
    let whole = Part { start: 0.0, length: 1.0 };
    walker.folder(start.as_fd(), &mut way, walk.depth.min(DEEPEST), whole).map(|_| ())
}

struct Walker<'a, 'b> {
    bench: &'a Bench<'b>,
    ignored: Ignored,
    rules: Rules,
    visit: &'a mut Visit<'a>,
}

impl Walker<'_, '_> {
    fn folder(
        &mut self,
        folder: BorrowedFd<'_>,
        way: &mut Vec<FileName>,
        depth: usize,
        part: Part,
    ) -> Result<ControlFlow<()>, Failure> {
        if depth == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        if self.ignored == Ignored::Skip {
            self.rules.enter(folder);
        }
        let names = names(self.bench, folder)?;
        let length = part.length / names.len().max(1) as f64;
        for (index, (name, kind)) in names.into_iter().enumerate() {
            self.bench.check_cancel()?;
            way.push(name.clone());
            let part = Part { start: part.start + length * index as f64, length };
            let flow = self.one(folder, &name, kind, way, depth, part)?;
            way.pop();
            if flow.is_break() {
                return Ok(flow);
            }
        }
        if self.ignored == Ignored::Skip {
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
        part: Part,
    ) -> Result<ControlFlow<()>, Failure> {
        if self.ignored == Ignored::Skip && self.rules.ignores(way, kind) {
            return Ok(ControlFlow::Continue(()));
        }
        let bytes = way.iter().map(FileName::bytes).collect::<Vec<_>>().join(&b'/');
        if self.bench.is_closed(&bytes) {
            return Ok(ControlFlow::Continue(()));
        }
        // Only a path that is too long is none: nothing could be done with it.
        let Ok(path) = TreePath::new(&bytes) else { return Ok(ControlFlow::Continue(())) };
        let flow = (self.visit)(&Found { path: &path, kind, folder, fraction: part.start })?;
        if flow.is_break() || kind != FileType::Directory {
            return Ok(flow);
        }
        match beneath::step(folder, name) {
            Ok(inner) => self.folder(inner.as_fd(), way, depth - 1, part),
            // Gone meanwhile, swapped for something else, or closed to us.
            Err(_) => Ok(ControlFlow::Continue(())),
        }
    }
}

/// The names in a folder with what they are, in order.
fn names(bench: &Bench<'_>, folder: BorrowedFd<'_>) -> Result<Vec<(FileName, FileType)>, Failure> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        bench.check_cancel()?;
        let entry = entry?;
        let Ok(name) = FileName::new(entry.file_name().to_bytes()) else { continue };
        let kind = match entry.file_type() {
            FileType::Unknown => match beneath::look(folder, &name) {
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
