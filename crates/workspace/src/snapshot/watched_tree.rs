//! What a full walk found in a root, for the partial walks after it: the stat cache and totals over it.
//!
//! ```text
//!   cache: folders ──► entries
//!   totals: parent, files and bytes below, anything excluded below, must be walked again
//! ```

use std::collections::{HashMap, HashSet};

use super::cache::{Cache, CachedEntry, Exclusion};

/// One root as of the last full walk.
pub(crate) struct WatchedTree {
    cache: Cache,
    sums: Vec<SubtreeTotals>,
    /// Folders to walk again even without an event.
    stale: HashSet<u32>,
}

#[derive(Clone, Copy, Default)]
struct SubtreeTotals {
    parent: u32,
    files: u64,
    bytes: u64,
    has_excluded: bool,
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
        let mut watched_tree =
            Self { sums: vec![SubtreeTotals::default(); cache.len()], stale: HashSet::new(), cache };
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

    /// Returns whether some folders have to be walked even without an event.
    pub(crate) fn has_stale(&self) -> bool {
        !self.stale.is_empty()
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
        }
    }
}
