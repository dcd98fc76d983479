//! Builds trees from the result of a walk, from the leaves up, and the cache for the next snapshot.

use std::ffi::CString;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::object::NewObject;
use retake_model::path::FileName;
use retake_model::tree::{LeftOut, LeftOutPath, Node, Reason, SnapshotRoot, Tree, TreeEntry};

use super::SnapshotError;
use super::cache::{Cache, Folder, Memory, Remembered, Written};
use super::kept::{Kept, Patch};
use super::narrow::Watches;
use super::walk::{Chunk, Entry, Found, Here, Walked, What};
use super::workspace::Root;

/// A complete root.
pub(super) struct Built {
    pub(super) root: SnapshotRoot,
    /// Trees and lists of excluded paths that the store may lack.
    pub(super) objects: Vec<NewObject>,
    /// Cache data for the next snapshot, unless it equals the last one.
    pub(super) memory: Option<Memory>,
    /// The watches that were set, each with the number of its folder in the new cache data, or else in the old cache.
    pub(super) watches: Watches,
}

/// Outcome of a folder.
#[derive(Clone, Copy)]
enum Made {
    Folder { tree: ContentId, mode: u16 },
    Left(Reason),
    Gone,
}

struct Builder<'walk> {
    cache: Option<&'walk Cache>,
    /// The tree of unchanged folders.
    kept: Option<&'walk Kept>,
    moment: i64,
    files: u64,
    bytes: u64,
    made: Vec<Made>,
    /// Entries of folders that differ from the cache.
    entries: Vec<Option<Vec<Entry>>>,
    /// Numbers of the subfolders of unchanged folders.
    below: Vec<Vec<u32>>,
    left: Vec<LeftOutPath>,
    objects: Vec<NewObject>,
}

/// Builds a root.
pub(super) fn build(root: &Root, walked: Walked, cache: Option<&Cache>) -> Result<Built, SnapshotError> {
    let (mut builder, folders) = Builder::trees(walked, cache, None);
    let (tree, left_out) = builder.top(root)?;
    let (memory, numbers) = builder.memory(&folders, left_out);
    let watches = watches(&folders, &numbers).collect();
    Ok(Built { root: builder.root(root, tree, left_out), objects: builder.objects, memory, watches })
}

/// Builds a root of which only a part was walked, and the patch for the watched tree.
pub(super) fn patch(root: &Root, walked: Walked, kept: &Kept) -> Result<(Built, Patch), SnapshotError> {
    let (mut builder, folders) = Builder::trees(walked, Some(kept.cache()), Some(kept));
    let (tree, left_out) = builder.top(root)?;
    let (patch, numbers) = builder.patch(&folders, left_out);
    let watches = watches(&folders, &numbers).collect();
    let root = builder.root(root, tree, left_out);
    Ok((Built { root, objects: builder.objects, memory: None, watches }, patch))
}

/// The watches that were set, with the cache number of their folders, if any.
fn watches(folders: &[Found], numbers: &[Option<u32>]) -> impl Iterator<Item = (i32, Option<u32>)> {
    folders.iter().zip(numbers).filter_map(|(found, number)| match found {
        Found::Here(here) => Some((here.watch?, *number)),
        _ => None,
    })
}

impl<'walk> Builder<'walk> {
    fn trees(walked: Walked, cache: Option<&'walk Cache>, kept: Option<&'walk Kept>) -> (Self, Vec<Found>) {
        let Walked { folders, chunks, moment } = walked;
        let count = folders.len();
        let mut builder = Builder {
            cache,
            kept,
            moment,
            files: 0,
            bytes: 0,
            made: vec![Made::Gone; count],
            entries: std::iter::repeat_with(|| None).take(count).collect(),
            below: vec![Vec::new(); count],
            left: Vec::new(),
            objects: Vec::new(),
        };
        for chunk in chunks.iter().flatten() {
            builder.files += chunk.files;
            builder.bytes += chunk.bytes;
        }
        let folders: Vec<Found> = folders.into_iter().map(|found| found.unwrap_or(Found::Gone)).collect();
        // Children have higher numbers than their parents.
        for (number, chunks) in chunks.into_iter().enumerate().rev() {
            builder.made[number] = match &folders[number] {
                Found::Gone => Made::Gone,
                Found::Left(reason) => Made::Left(*reason),
                Found::Passed { index, path } => builder.passed(*index, path),
                Found::Here(here) => builder.folder(number, here, chunks),
            };
        }
        (builder, folders)
    }

    /// Tree of the root, and its list of excluded paths.
    fn top(&mut self, root: &Root) -> Result<(ContentId, Option<ContentId>), SnapshotError> {
        match self.made.first() {
            Some(Made::Folder { tree, .. }) => Ok((*tree, self.left_out())),
            _ => Err(SnapshotError::Root {
                path: root.path.clone(),
                error: std::io::ErrorKind::PermissionDenied.into(),
            }),
        }
    }

    fn root(&self, root: &Root, tree: ContentId, left_out: Option<ContentId>) -> SnapshotRoot {
        SnapshotRoot {
            name: root.name.clone(),
            tree,
            left_out,
            files: self.files,
            bytes: self.bytes,
            sealed: None,
        }
    }

    /// A folder that was not walked, with everything below it.
    fn passed(&mut self, index: u32, path: &[u8]) -> Made {
        let known = self.kept.and_then(|kept| Some((kept, kept.cache().folder(index)?)));
        let Some((kept, known)) = known else { return Made::Gone };
        let (files, bytes) = kept.count_below(index);
        self.files += files;
        self.bytes += bytes;
        if known.stat.has_special_bits() {
            self.leave_bits(path);
        }
        kept.left_below(index, path, &mut |path, name, reason| self.leave(path, name, reason));
        Made::Folder { tree: known.tree, mode: known.stat.permissions() }
    }

    fn folder(&mut self, number: usize, here: &Here, chunks: Vec<Chunk>) -> Made {
        let mode = here.stat.permissions();
        let before = self.left.len();
        if here.stat.has_special_bits() {
            self.leave_bits(&here.path);
        }
        let known = self.cache.zip(here.remembered).and_then(|(cache, index)| cache.folder(index));
        if let Some(known) = known
            && self.is_same(here, &chunks)
        {
            if chunks.iter().any(|chunk| chunk.has_left) {
                for (name, entry) in self.cache.map(|cache| cache.entries(known)).unwrap_or_default() {
                    if let Some(reason) = entry.left() {
                        self.leave(&here.path, name.to_bytes(), reason);
                    }
                }
            }
            self.below[number] = chunks.into_iter().flat_map(|chunk| chunk.folders).collect();
            return Made::Folder { tree: known.tree, mode };
        }
        let entries = self.gather(here, chunks);
        let mut tree = Vec::with_capacity(entries.len());
        for entry in &entries {
            let name = entry.name.to_bytes();
            match self.node(entry) {
                Ok(Some(node)) => match FileName::new(name) {
                    Ok(file) => {
                        if matches!(&entry.what, What::File { stat, .. } if stat.has_special_bits()) {
                            self.leave(&here.path, name, Reason::ModeBits);
                        }
                        tree.push(TreeEntry { name: file, node });
                    }
                    // Names were checked before; exclude an invalid one all the same.
                    Err(_) => self.leave(&here.path, name, Reason::BadName),
                },
                Ok(None) => {}
                Err(reason) => self.leave(&here.path, name, reason),
            }
        }
        if let Some(reason) = here.otherwise.filter(|_| tree.is_empty()) {
            // Walked because it might contain included files, but it contains none.
            self.left.truncate(before);
            return Made::Left(reason);
        }
        self.entries[number] = Some(entries);
        let bytes = encode(&Tree::new(tree));
        let tree = ContentId::of(Kind::Tree, &bytes);
        if known.is_none_or(|known| known.tree != tree) {
            self.objects.push(NewObject { id: tree, kind: Kind::Tree, bytes: bytes.into() });
        }
        Made::Folder { tree, mode }
    }

    /// Returns whether a folder matches the cache, including its subfolders.
    fn is_same(&self, here: &Here, chunks: &[Chunk]) -> bool {
        let Some((cache, known)) =
            self.cache.and_then(|cache| Some((cache, cache.folder(here.remembered?)?)))
        else {
            return false;
        };
        if chunks.iter().any(|chunk| chunk.entries.is_some()) {
            return false;
        }
        if chunks.iter().all(|chunk| chunk.folders.is_empty()) {
            return true;
        }
        let mut numbers = chunks.iter().flat_map(|chunk| &chunk.folders);
        cache.entries(known).iter().all(|(_, entry)| {
            let Remembered::Folder { index } = entry else { return true };
            let made = numbers.next().map(|number| self.made[*number as usize]);
            let before = cache.folder(*index);
            matches!((made, before), (Some(Made::Folder { tree, mode }), Some(before))
                if tree == before.tree && mode == before.stat.permissions())
        })
    }

    /// All entries of a folder.
    fn gather(&self, here: &Here, chunks: Vec<Chunk>) -> Vec<Entry> {
        let known = self.cache.zip(here.remembered).and_then(|(cache, index)| {
            let folder = cache.folder(index)?;
            Some(cache.entries(folder))
        });
        let mut entries = Vec::new();
        for chunk in chunks {
            if let Some(found) = chunk.entries {
                entries.extend(found);
                continue;
            }
            let same = known.as_ref().and_then(|known| known.get(chunk.start..chunk.start + chunk.length));
            let mut numbers = chunk.folders.iter();
            for (name, entry) in same.unwrap_or_default() {
                let what = match *entry {
                    Remembered::File { stat, content, .. } => What::File { stat, content },
                    Remembered::Link { stat, target, .. } => What::Link { stat, target: target.to_vec() },
                    Remembered::Folder { .. } => match numbers.next() {
                        Some(&number) => What::Folder { number },
                        None => continue,
                    },
                    Remembered::Left { reason, by_name } => What::Left { reason, by_name },
                };
                entries.push(Entry { name: CString::from(*name), what });
            }
        }
        entries
    }

    /// The tree node of an entry, or the reason to exclude it.
    fn node(&self, entry: &Entry) -> Result<Option<Node>, Reason> {
        Ok(Some(match &entry.what {
            What::File { stat, content } => {
                Node::File { content: *content, size: stat.size, mode: stat.permissions() }
            }
            What::Link { target, .. } => Node::Link { target: target.clone() },
            What::Folder { number } => match self.made[*number as usize] {
                Made::Folder { tree, mode } => Node::Folder { tree, mode },
                Made::Left(reason) => return Err(reason),
                Made::Gone => return Ok(None),
            },
            What::Left { reason, .. } => return Err(*reason),
        }))
    }

    fn leave(&mut self, folder: &[u8], name: &[u8], reason: Reason) {
        let path = [folder.strip_prefix(b"/").unwrap_or_default(), name];
        let path = if path[0].is_empty() { name.to_vec() } else { path.join(&b'/') };
        self.left.push(LeftOutPath { path, reason });
    }

    /// Records that a folder is captured without its special bits. The root's own bits do not matter: it is not an
    /// entry of a tree.
    fn leave_bits(&mut self, folder: &[u8]) {
        if let Some(path) = folder.strip_prefix(b"/").filter(|path| !path.is_empty()) {
            self.left.push(LeftOutPath { path: path.to_vec(), reason: Reason::ModeBits });
        }
    }

    fn left_out(&mut self) -> Option<ContentId> {
        if self.left.is_empty() {
            return None;
        }
        self.left.sort_unstable();
        let bytes = encode(&LeftOut(std::mem::take(&mut self.left)));
        let id = ContentId::of(Kind::LeftOut, &bytes);
        if self.cache.is_none_or(|cache| cache.left_out != Some(id)) {
            self.objects.push(NewObject { id, kind: Kind::LeftOut, bytes: bytes.into() });
        }
        Some(id)
    }

    /// Cache data for the next snapshot; `None` if it equals the existing cache.
    fn memory(&self, folders: &[Found], left_out: Option<ContentId>) -> (Option<Memory>, Vec<Option<u32>>) {
        let is_remembered = |number: usize, found: &Found| {
            matches!(self.made[number], Made::Folder { .. }) && remembered(found).is_some()
        };
        let unchanged = self.cache.is_some_and(|cache| {
            self.entries.iter().all(Option::is_none)
                && cache.left_out == left_out
                && folders.iter().enumerate().all(|(number, found)| is_remembered(number, found))
        });
        if unchanged {
            return (None, folders.iter().map(remembered).collect());
        }
        // Excluded folders have no cache entry.
        let mut numbers = vec![None; folders.len()];
        let mut next = 0;
        for (number, found) in folders.iter().enumerate() {
            if let (Found::Here(_), Made::Folder { .. }) = (found, self.made[number]) {
                numbers[number] = Some(next);
                next += 1;
            }
        }
        let mut written = Written::default();
        for (number, found) in folders.iter().enumerate() {
            let (Found::Here(here), Some(_)) = (found, numbers[number]) else { continue };
            self.write(number, here, &numbers, &mut written);
        }
        let memory = written.finish().map(|(body, folders)| Memory { body, folders, left_out });
        (memory, numbers)
    }

    /// The patch for the watched tree.
    fn patch(&self, folders: &[Found], left_out: Option<ContentId>) -> (Patch, Vec<Option<u32>>) {
        let mut next = self.cache.map_or(0, Cache::len) as u32;
        let mut numbers = vec![None; folders.len()];
        for (number, found) in folders.iter().enumerate() {
            if let (Found::Here(_) | Found::Passed { .. }, Made::Folder { .. }) = (found, self.made[number]) {
                numbers[number] = remembered(found).or_else(|| {
                    next += 1;
                    Some(next - 1)
                });
            }
        }
        let mut written = Written::default();
        let (mut changed, mut walked) = (Vec::new(), Vec::new());
        for (number, found) in folders.iter().enumerate() {
            let (Found::Here(here), Some(index)) = (found, numbers[number]) else { continue };
            walked.push(index);
            if self.entries[number].is_some() {
                changed.push(index);
                self.write(number, here, &numbers, &mut written);
            }
        }
        // Children before their parents, whose totals include them.
        walked.reverse();
        let body = written.finish().map(|(body, _)| body);
        (Patch { body, changed, walked, left_out }, numbers)
    }

    fn write(&self, number: usize, here: &Here, numbers: &[Option<u32>], written: &mut Written) {
        let Made::Folder { tree, .. } = self.made[number] else { return };
        self.write_entries(number, here, numbers, written);
        written.folder(&Folder::new(
            here.stat,
            here.stat.is_settled(self.moment),
            tree,
            [here.outer, here.rules, here.stamp],
        ));
    }

    fn write_entries(&self, number: usize, here: &Here, numbers: &[Option<u32>], written: &mut Written) {
        if let Some(entries) = &self.entries[number] {
            for entry in entries {
                if let Some(remembered) = self.remembered(entry, numbers) {
                    written.entry(&entry.name, &remembered);
                }
            }
            return;
        }
        let known = self.cache.and_then(|cache| Some((cache, cache.folder(here.remembered?)?)));
        let Some((cache, known)) = known else { return };
        let mut below = self.below[number].iter();
        for (name, mut entry) in cache.entries(known) {
            if let Remembered::Folder { index } = &mut entry {
                match below.next().and_then(|number| numbers[*number as usize]) {
                    Some(number) => *index = number,
                    None => continue,
                }
            }
            written.entry(name, &entry);
        }
    }

    fn remembered<'entry>(
        &self,
        entry: &'entry Entry,
        numbers: &[Option<u32>],
    ) -> Option<Remembered<'entry>> {
        Some(match &entry.what {
            What::File { stat, content } => {
                Remembered::File { stat: *stat, settled: stat.is_settled(self.moment), content: *content }
            }
            What::Link { stat, target } => {
                Remembered::Link { stat: *stat, settled: stat.is_settled(self.moment), target }
            }
            What::Folder { number } => match (numbers[*number as usize], self.made[*number as usize]) {
                (Some(index), _) => Remembered::Folder { index },
                (None, Made::Left(reason)) => Remembered::Left { reason, by_name: false },
                (None, _) => return None,
            },
            What::Left { reason, by_name } => Remembered::Left { reason: *reason, by_name: *by_name },
        })
    }
}

/// Number of a folder in the cache.
fn remembered(found: &Found) -> Option<u32> {
    match found {
        Found::Here(here) => here.remembered,
        Found::Passed { index, .. } => Some(*index),
        Found::Left(_) | Found::Gone => None,
    }
}
