//! Builds trees from the result of a walk, from the leaves up, and the cache for the next snapshot.

use std::ffi::CString;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::object::NewObject;
use retake_model::path::FileName;
use retake_model::tree::{
    Excluded, ExcludedKind, ExcludedPath, ExclusionReason, Node, SnapshotRoot, Tree, TreeEntry,
};

use super::SnapshotError;
use super::cache::{Cache, CacheData, CacheWriter, CachedEntry, Exclusion, Folder};
use super::partial::Watches;
use super::walk::{Chunk, Entry, EntryKind, FolderResult, WalkResult, WalkedFolder};
use super::watched_tree::WatchedTree;
use super::workspace::Root;

/// A complete root.
pub(super) struct BuiltRoot {
    pub(super) root: SnapshotRoot,
    /// Trees and lists of excluded paths that the store may lack.
    pub(super) objects: Vec<NewObject>,
    /// Cache data for the next snapshot, unless it equals the last one.
    pub(super) cache_data: Option<CacheData>,
    /// The watches that were set, each with the number of its folder in the new cache data, or else in the old cache.
    pub(super) watches: Watches,
}

/// A root of which only the changed folders were walked.
pub(super) struct ChangedRoot {
    pub(super) root: SnapshotRoot,
    /// Objects that neither the store nor the full walk has.
    pub(super) objects: Vec<NewObject>,
    /// The watches that were set, and whether their folders are captured.
    pub(super) watches: Vec<(i32, bool)>,
}

/// Outcome of a folder.
#[derive(Clone, Copy)]
enum FolderOutcome {
    Folder { tree: ContentId, mode: u16 },
    Excluded(Exclusion),
    Gone,
}

struct Builder<'walk> {
    cache: Option<&'walk Cache>,
    /// The tree of unchanged folders.
    watched_tree: Option<&'walk WatchedTree>,
    now_nanos: i64,
    files: u64,
    bytes: u64,
    outcomes: Vec<FolderOutcome>,
    /// Entries of folders that differ from the cache.
    entries: Vec<Option<Vec<Entry>>>,
    /// Numbers of the subfolders of unchanged folders.
    below: Vec<Vec<u32>>,
    excluded_paths: Vec<ExcludedPath>,
    objects: Vec<NewObject>,
}

/// Builds a root.
pub(super) fn build(
    root: &Root,
    walked: WalkResult,
    cache: Option<&Cache>,
) -> Result<BuiltRoot, SnapshotError> {
    let (mut builder, folders) = Builder::trees(walked, cache, None);
    let (tree, excluded) = builder.top(root)?;
    let (cache_data, numbers) = builder.cache_data(&folders, excluded);
    let watches = watches(&folders, &numbers).collect();
    Ok(BuiltRoot { root: builder.root(root, tree, excluded), objects: builder.objects, cache_data, watches })
}

/// Builds a root of which only the changed folders were walked.
pub(super) fn build_changed(
    root: &Root,
    walked: WalkResult,
    watched_tree: &WatchedTree,
) -> Result<ChangedRoot, SnapshotError> {
    let (mut builder, folders) = Builder::trees(walked, Some(watched_tree.cache()), Some(watched_tree));
    let (tree, excluded) = builder.top(root)?;
    let captured: Vec<bool> =
        builder.outcomes.iter().map(|outcome| matches!(outcome, FolderOutcome::Folder { .. })).collect();
    let watches = watches(&folders, &captured).collect();
    let root = builder.root(root, tree, excluded);
    Ok(ChangedRoot { root, objects: builder.objects, watches })
}

/// The watches that were set, each with what is known about its folder.
fn watches<'found, T: Copy>(
    folders: &'found [FolderResult],
    facts: &'found [T],
) -> impl Iterator<Item = (i32, T)> + 'found {
    folders.iter().zip(facts).filter_map(|(found, fact)| match found {
        FolderResult::Walked(here) => Some((here.watch?, *fact)),
        _ => None,
    })
}

impl<'walk> Builder<'walk> {
    fn trees(
        walked: WalkResult,
        cache: Option<&'walk Cache>,
        watched_tree: Option<&'walk WatchedTree>,
    ) -> (Self, Vec<FolderResult>) {
        let WalkResult { folders, chunks, now_nanos } = walked;
        let count = folders.len();
        let mut builder = Builder {
            cache,
            watched_tree,
            now_nanos,
            files: 0,
            bytes: 0,
            outcomes: vec![FolderOutcome::Gone; count],
            entries: std::iter::repeat_with(|| None).take(count).collect(),
            below: vec![Vec::new(); count],
            excluded_paths: Vec::new(),
            objects: Vec::new(),
        };
        for chunk in chunks.iter().flatten() {
            builder.files += chunk.files;
            builder.bytes += chunk.bytes;
        }
        let folders: Vec<FolderResult> =
            folders.into_iter().map(|found| found.unwrap_or(FolderResult::Gone)).collect();
        // Children have higher numbers than their parents.
        for (number, chunks) in chunks.into_iter().enumerate().rev() {
            builder.outcomes[number] = match &folders[number] {
                FolderResult::Gone => FolderOutcome::Gone,
                FolderResult::Excluded(reason) => FolderOutcome::Excluded(Exclusion::of_folder(*reason)),
                FolderResult::Unchanged { index, path } => builder.unchanged_folder(*index, path),
                FolderResult::Walked(here) => builder.folder(number, here, chunks),
            };
        }
        (builder, folders)
    }

    /// Tree of the root, and its list of excluded paths.
    fn top(&mut self, root: &Root) -> Result<(ContentId, Option<ContentId>), SnapshotError> {
        match self.outcomes.first() {
            Some(FolderOutcome::Folder { tree, .. }) => Ok((*tree, self.excluded())),
            _ => Err(SnapshotError::Root {
                path: root.path.clone(),
                error: std::io::ErrorKind::PermissionDenied.into(),
            }),
        }
    }

    fn root(&self, root: &Root, tree: ContentId, excluded: Option<ContentId>) -> SnapshotRoot {
        SnapshotRoot {
            name: root.name.clone(),
            tree,
            excluded,
            files: self.files,
            bytes: self.bytes,
            sealed: None,
        }
    }

    /// A folder that was not walked, with everything below it.
    fn unchanged_folder(&mut self, index: u32, path: &[u8]) -> FolderOutcome {
        let known = self
            .watched_tree
            .and_then(|watched_tree| Some((watched_tree, watched_tree.cache().folder(index)?)));
        let Some((watched_tree, known)) = known else { return FolderOutcome::Gone };
        let (files, bytes) = watched_tree.count_below(index);
        self.files += files;
        self.bytes += bytes;
        if known.stat.has_special_bits() {
            self.exclude_mode_bits(path);
        }
        watched_tree
            .excluded_below(index, path, &mut |path, name, exclusion| self.exclude(path, name, exclusion));
        FolderOutcome::Folder { tree: known.tree, mode: known.stat.permissions() }
    }

    fn folder(&mut self, number: usize, here: &WalkedFolder, chunks: Vec<Chunk>) -> FolderOutcome {
        let mode = here.stat.permissions();
        let before = self.excluded_paths.len();
        if here.stat.has_special_bits() {
            self.exclude_mode_bits(&here.path);
        }
        let known = self.cache.zip(here.cached).and_then(|(cache, index)| cache.folder(index));
        if let Some(known) = known
            && self.is_same(here, &chunks)
        {
            if chunks.iter().any(|chunk| chunk.has_excluded) {
                for (name, entry) in self.cache.map(|cache| cache.entries(known)).unwrap_or_default() {
                    if let Some(exclusion) = entry.exclusion() {
                        self.exclude(&here.path, name.to_bytes(), exclusion);
                    }
                }
            }
            self.below[number] = chunks.into_iter().flat_map(|chunk| chunk.folders).collect();
            return FolderOutcome::Folder { tree: known.tree, mode };
        }
        let entries = self.gather(here, chunks);
        let mut tree = Vec::with_capacity(entries.len());
        for entry in &entries {
            let name = entry.name.to_bytes();
            match self.node(entry) {
                Ok(Some(node)) => {
                    if let Ok(file) = FileName::new(name) {
                        if matches!(&entry.kind, EntryKind::File { stat, .. } if stat.has_special_bits()) {
                            self.exclude(&here.path, name, Exclusion::of_mode_bits());
                        }
                        tree.push(TreeEntry { name: file, node });
                    } else {
                        // Names were checked before; exclude an invalid one anyway.
                        let kind = node.is_folder().then_some(ExcludedKind::Folder);
                        let reason = ExclusionReason::InvalidName;
                        self.exclude(&here.path, name, Exclusion { reason, by_name: true, kind });
                    }
                }
                Ok(None) => {}
                Err(exclusion) => self.exclude(&here.path, name, exclusion),
            }
        }
        if let Some(reason) = here.default_reason.filter(|_| tree.is_empty()) {
            // Walked because it might contain included files, but it contains none.
            self.excluded_paths.truncate(before);
            return FolderOutcome::Excluded(Exclusion::of_folder(reason));
        }
        self.entries[number] = Some(entries);
        let objects = self.objects.len();
        let tree = Tree::new(tree).encode_nodes(&mut |bytes| {
            let id = ContentId::of(Kind::Tree, &bytes);
            self.objects.push(NewObject { id, kind: Kind::Tree, bytes: bytes.into() });
            id
        });
        if known.is_some_and(|known| known.tree == tree) {
            self.objects.truncate(objects);
        }
        FolderOutcome::Folder { tree, mode }
    }

    /// Returns whether a folder matches the cache, including its subfolders.
    fn is_same(&self, here: &WalkedFolder, chunks: &[Chunk]) -> bool {
        let Some((cache, known)) = self.cache.and_then(|cache| Some((cache, cache.folder(here.cached?)?)))
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
            let CachedEntry::Folder { index } = entry else { return true };
            let outcomes = numbers.next().map(|number| self.outcomes[*number as usize]);
            let before = cache.folder(*index);
            matches!((outcomes, before), (Some(FolderOutcome::Folder { tree, mode }), Some(before))
                if tree == before.tree && mode == before.stat.permissions())
        })
    }

    /// All entries of a folder.
    fn gather(&self, here: &WalkedFolder, chunks: Vec<Chunk>) -> Vec<Entry> {
        let known = self.cache.zip(here.cached).and_then(|(cache, index)| {
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
                let kind = match *entry {
                    CachedEntry::File { stat, content, .. } => EntryKind::File { stat, content },
                    CachedEntry::Link { stat, target, .. } => {
                        EntryKind::Link { stat, target: target.to_vec() }
                    }
                    CachedEntry::Folder { .. } => match numbers.next() {
                        Some(&number) => EntryKind::Folder { number },
                        None => continue,
                    },
                    CachedEntry::Excluded(exclusion) => EntryKind::Excluded(exclusion),
                };
                entries.push(Entry { name: CString::from(*name), kind });
            }
        }
        entries
    }

    /// The tree node of an entry, or the reason to exclude it.
    fn node(&self, entry: &Entry) -> Result<Option<Node>, Exclusion> {
        Ok(Some(match &entry.kind {
            EntryKind::File { stat, content } => content.node(stat),
            EntryKind::Link { target, .. } => Node::Link { target: target.clone() },
            EntryKind::Folder { number } => match self.outcomes[*number as usize] {
                FolderOutcome::Folder { tree, mode } => Node::Folder { tree, mode },
                FolderOutcome::Excluded(exclusion) => return Err(exclusion),
                FolderOutcome::Gone => return Ok(None),
            },
            EntryKind::Excluded(exclusion) => return Err(*exclusion),
        }))
    }

    fn exclude(&mut self, folder: &[u8], name: &[u8], exclusion: Exclusion) {
        let path = [folder.strip_prefix(b"/").unwrap_or_default(), name];
        let path = if path[0].is_empty() { name.to_vec() } else { path.join(&b'/') };
        let Exclusion { reason, kind, .. } = exclusion;
        self.excluded_paths.push(ExcludedPath { path, reason, kind });
    }

    /// Records that a folder is captured without its special bits. The root's own bits do not matter: it is not an
    /// entry of a tree.
    fn exclude_mode_bits(&mut self, folder: &[u8]) {
        if let Some(path) = folder.strip_prefix(b"/").filter(|path| !path.is_empty()) {
            let Exclusion { reason, kind, .. } = Exclusion::of_mode_bits();
            self.excluded_paths.push(ExcludedPath { path: path.to_vec(), reason, kind });
        }
    }

    fn excluded(&mut self) -> Option<ContentId> {
        if self.excluded_paths.is_empty() {
            return None;
        }
        self.excluded_paths.sort_unstable();
        let bytes = encode(&Excluded(std::mem::take(&mut self.excluded_paths)));
        let id = ContentId::of(Kind::Excluded, &bytes);
        if self.cache.is_none_or(|cache| cache.excluded != Some(id)) {
            self.objects.push(NewObject { id, kind: Kind::Excluded, bytes: bytes.into() });
        }
        Some(id)
    }

    /// Cache data for the next snapshot; `None` if it equals the existing cache.
    fn cache_data(
        &self,
        folders: &[FolderResult],
        excluded: Option<ContentId>,
    ) -> (Option<CacheData>, Vec<Option<u32>>) {
        let is_remembered = |number: usize, found: &FolderResult| {
            matches!(self.outcomes[number], FolderOutcome::Folder { .. }) && cached(found).is_some()
        };
        let unchanged = self.cache.is_some_and(|cache| {
            self.entries.iter().all(Option::is_none)
                && cache.excluded == excluded
                && folders.iter().enumerate().all(|(number, found)| is_remembered(number, found))
        });
        if unchanged {
            return (None, folders.iter().map(cached).collect());
        }
        // Excluded folders have no cache entry.
        let mut numbers = vec![None; folders.len()];
        let mut next = 0;
        for (number, found) in folders.iter().enumerate() {
            if let (FolderResult::Walked(_), FolderOutcome::Folder { .. }) = (found, self.outcomes[number]) {
                numbers[number] = Some(next);
                next += 1;
            }
        }
        let mut written = CacheWriter::default();
        for (number, found) in folders.iter().enumerate() {
            let (FolderResult::Walked(here), Some(_)) = (found, numbers[number]) else { continue };
            self.write(number, here, &numbers, &mut written);
        }
        let cache_data = written.finish().map(|(body, folders)| CacheData { body, folders, excluded });
        (cache_data, numbers)
    }

    fn write(&self, number: usize, here: &WalkedFolder, numbers: &[Option<u32>], written: &mut CacheWriter) {
        let FolderOutcome::Folder { tree, .. } = self.outcomes[number] else { return };
        self.write_entries(number, here, numbers, written);
        written.folder(&Folder::new(
            here.stat,
            here.stat.is_settled(self.now_nanos),
            tree,
            [here.outer, here.rules, here.stamp],
        ));
    }

    fn write_entries(
        &self,
        number: usize,
        here: &WalkedFolder,
        numbers: &[Option<u32>],
        written: &mut CacheWriter,
    ) {
        if let Some(entries) = &self.entries[number] {
            for entry in entries {
                if let Some(cached) = self.cached(entry, numbers) {
                    written.entry(&entry.name, &cached);
                }
            }
            return;
        }
        let known = self.cache.and_then(|cache| Some((cache, cache.folder(here.cached?)?)));
        let Some((cache, known)) = known else { return };
        let mut below = self.below[number].iter();
        for (name, mut entry) in cache.entries(known) {
            if let CachedEntry::Folder { index } = &mut entry {
                match below.next().and_then(|number| numbers[*number as usize]) {
                    Some(number) => *index = number,
                    None => continue,
                }
            }
            written.entry(name, &entry);
        }
    }

    fn cached<'entry>(&self, entry: &'entry Entry, numbers: &[Option<u32>]) -> Option<CachedEntry<'entry>> {
        Some(match &entry.kind {
            EntryKind::File { stat, content } => {
                CachedEntry::File { stat: *stat, settled: stat.is_settled(self.now_nanos), content: *content }
            }
            EntryKind::Link { stat, target } => {
                CachedEntry::Link { stat: *stat, settled: stat.is_settled(self.now_nanos), target }
            }
            EntryKind::Folder { number } => {
                match (numbers[*number as usize], self.outcomes[*number as usize]) {
                    (Some(index), _) => CachedEntry::Folder { index },
                    (None, FolderOutcome::Excluded(exclusion)) => CachedEntry::Excluded(exclusion),
                    (None, _) => return None,
                }
            }
            EntryKind::Excluded(exclusion) => CachedEntry::Excluded(*exclusion),
        })
    }
}

/// Number of a folder in the cache.
fn cached(found: &FolderResult) -> Option<u32> {
    match found {
        FolderResult::Walked(here) => here.cached,
        FolderResult::Unchanged { index, .. } => Some(*index),
        FolderResult::Excluded(_) | FolderResult::Gone => None,
    }
}
