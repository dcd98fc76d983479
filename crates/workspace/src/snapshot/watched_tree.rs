//! In-memory state of a watcher between two snapshots of a root: the stat cache and totals over it.
//!
//! ```text
//!   cache: folders ──► entries      a changed folder is appended, and its row points there
//!   totals: parent, files and bytes below, anything excluded below, must be walked again
//! ```
//!
//! A folder keeps its number while it has the same name, so that a watch can refer to it.

use std::collections::{HashMap, HashSet};

use retake_model::content::ContentId;

use super::cache::{Cache, CachedEntry, Exclusion};

/// One root as of the last snapshot.
pub(crate) struct WatchedTree {
    cache: Cache,
    sums: Vec<SubtreeTotals>,
    /// Folders to walk again even without an event.
    stale: HashSet<u32>,
    /// Size of the cache before anything was replaced.
    compact: usize,
}

#[derive(Clone, Copy, Default)]
struct SubtreeTotals {
    parent: u32,
    files: u64,
    bytes: u64,
    has_excluded: bool,
}

/// Changes that a snapshot makes to the watched tree.
pub(crate) struct Patch {
    /// Changed folders in cache format; `None` if the format cannot represent them.
    pub(super) body: Option<Vec<u8>>,
    pub(super) changed: Vec<u32>,
    /// All walked folders, children before parents.
    pub(super) walked: Vec<u32>,
    pub(super) excluded: Option<ContentId>,
}

/// Folders that a walk must visit.
#[derive(Default)]
pub(crate) struct Marks(HashMap<u32, Mark>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Walk,
    Ancestor,
}

impl Marks {
    pub(super) fn is_marked(&self, index: u32) -> bool {
        self.0.contains_key(&index)
    }

    pub(super) fn is_ancestor_of_marked(&self, index: u32) -> bool {
        self.0.get(&index) == Some(&Mark::Ancestor)
    }
}

impl WatchedTree {
    /// State after a walk over the whole root.
    pub(super) fn new(cache: Cache) -> Self {
        let mut watched_tree = Self {
            sums: vec![SubtreeTotals::default(); cache.len()],
            stale: HashSet::new(),
            compact: cache.size(),
            cache,
        };
        // Children have higher numbers.
        for index in (0..watched_tree.cache.len() as u32).rev() {
            watched_tree.update_totals(index);
        }
        watched_tree
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The folders to visit: those with events, those that must always be walked, and their parents up to the root.
    pub(crate) fn marks(&self, changed_folders: &HashSet<u32>) -> Marks {
        let mut marks = HashMap::from([(0, Mark::Ancestor)]);
        for index in changed_folders.iter().chain(&self.stale) {
            marks.insert(*index, Mark::Walk);
            let mut index = *index;
            while index != 0 {
                index = self.parent(index);
                if marks.contains_key(&index) && index != 0 {
                    break;
                }
                marks.entry(index).or_insert(Mark::Ancestor);
            }
        }
        Marks(marks)
    }

    /// Parent of a folder.
    pub(crate) fn parent(&self, index: u32) -> u32 {
        self.sums.get(index as usize).map_or(0, |sum| sum.parent)
    }

    /// Returns whether so much was replaced that the state should be rebuilt.
    pub(crate) fn needs_compaction(&self) -> bool {
        self.cache.size() > 2 * self.compact + 4 * 1024 * 1024
    }

    /// Files and bytes in and below a folder.
    pub(super) fn count_below(&self, index: u32) -> (u64, u64) {
        self.sums.get(index as usize).map_or((0, 0), |sum| (sum.files, sum.bytes))
    }

    /// Visits excluded entries in and below a folder.
    pub(super) fn excluded_below(
        &self,
        index: u32,
        path: &[u8],
        visit: &mut impl FnMut(&[u8], &[u8], Exclusion),
    ) {
        if !self.sums.get(index as usize).is_some_and(|sum| sum.has_excluded) {
            return;
        }
        let Some(folder) = self.cache.folder(index) else { return };
        for (name, entry) in self.cache.entries(folder) {
            if let Some(exclusion) = entry.exclusion() {
                visit(path, name.to_bytes(), exclusion);
            }
            if let CachedEntry::Folder { index } = entry {
                if self.cache.folder(index).is_some_and(|folder| folder.stat.has_special_bits()) {
                    visit(path, name.to_bytes(), Exclusion::of_mode_bits());
                }
                self.excluded_below(index, &[path, b"/", name.to_bytes()].concat(), visit);
            }
        }
    }

    /// Applies the changes of a snapshot. Returns the folders that are gone; `None` if the state is no longer usable.
    pub(crate) fn apply_patch(&mut self, patch: &Patch, snapshot: ContentId) -> Option<Vec<u32>> {
        let mut before = HashSet::new();
        for index in &patch.changed {
            self.below(*index, &mut |below| {
                before.insert(below);
            });
        }
        self.cache.replace(patch.body.as_ref()?, &patch.changed)?;
        self.cache.snapshot = snapshot;
        self.cache.excluded = patch.excluded;
        self.sums.resize(self.cache.len(), SubtreeTotals::default());
        for index in &patch.walked {
            self.update_totals(*index);
        }
        for index in &patch.changed {
            self.below(*index, &mut |below| {
                before.remove(&below);
            });
        }
        let mut gone: Vec<u32> = before.into_iter().collect();
        let mut next = 0;
        while let Some(index) = gone.get(next).copied() {
            self.stale.remove(&index);
            self.below(index, &mut |below| gone.push(below));
            next += 1;
        }
        Some(gone)
    }

    fn below(&self, index: u32, visit: &mut impl FnMut(u32)) {
        let Some(folder) = self.cache.folder(index) else { return };
        for (_, entry) in self.cache.entries(folder) {
            if let CachedEntry::Folder { index } = entry {
                visit(index);
            }
        }
    }

    fn update_totals(&mut self, index: u32) {
        let Some(folder) = self.cache.folder(index) else { return };
        let mut sum = SubtreeTotals { parent: self.parent(index), ..SubtreeTotals::default() };
        let mut stale = !folder.settled;
        for (name, entry) in self.cache.entries(folder) {
            sum.has_excluded |= entry.exclusion().is_some();
            match entry {
                CachedEntry::File { stat, settled, .. } => {
                    sum.files += 1;
                    sum.bytes += stat.size;
                    stale |= !settled;
                }
                CachedEntry::Link { settled, .. } => {
                    sum.files += 1;
                    stale |= !settled;
                }
                CachedEntry::Folder { index: below } => {
                    sum.has_excluded |=
                        self.cache.folder(below).is_some_and(|folder| folder.stat.has_special_bits());
                    let Some(below) = self.sums.get_mut(below as usize) else { continue };
                    below.parent = index;
                    sum.files += below.files;
                    sum.bytes += below.bytes;
                    sum.has_excluded |= below.has_excluded;
                }
                CachedEntry::Excluded(Exclusion { by_name, .. }) => {
                    // An entry excluded by its type may change without an event: a mount, an excluded folder. So may
                    // the rules that a nested repository has in its git folder.
                    stale |= !by_name || (index != 0 && name == c".git");
                }
            }
        }
        self.sums[index as usize] = sum;
        if stale {
            self.stale.insert(index);
        } else {
            self.stale.remove(&index);
        }
    }
}
