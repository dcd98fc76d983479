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
use retake_model::tree::Reason;

use super::cache::{Cache, Remembered};

/// One root as of the last snapshot.
pub(crate) struct Kept {
    cache: Cache,
    sums: Vec<Sum>,
    /// Folders to walk again even without an event.
    again: HashSet<u32>,
    /// Size of the cache before anything was replaced.
    compact: usize,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    parent: u32,
    files: u64,
    bytes: u64,
    has_left: bool,
}

/// Changes that a snapshot makes to the watched tree.
pub(crate) struct Patch {
    /// Changed folders in cache format; `None` if the format cannot represent them.
    pub(super) body: Option<Vec<u8>>,
    pub(super) changed: Vec<u32>,
    /// All walked folders, children before parents.
    pub(super) walked: Vec<u32>,
    pub(super) left_out: Option<ContentId>,
}

/// Folders that a walk must visit.
#[derive(Default)]
pub(crate) struct Marks(HashMap<u32, Mark>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Look,
    OnTheWay,
}

impl Marks {
    pub(super) fn is_marked(&self, index: u32) -> bool {
        self.0.contains_key(&index)
    }

    pub(super) fn is_on_the_way(&self, index: u32) -> bool {
        self.0.get(&index) == Some(&Mark::OnTheWay)
    }
}

impl Kept {
    /// State after a walk over the whole root.
    pub(super) fn new(cache: Cache) -> Self {
        let mut kept = Self {
            sums: vec![Sum::default(); cache.len()],
            again: HashSet::new(),
            compact: cache.size(),
            cache,
        };
        // Children have higher numbers.
        for index in (0..kept.cache.len() as u32).rev() {
            kept.sum_up(index);
        }
        kept
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The folders to visit: those with events, those that must always be walked, and their parents up to the root.
    pub(crate) fn marks(&self, happened: &HashSet<u32>) -> Marks {
        let mut marks = HashMap::from([(0, Mark::OnTheWay)]);
        for index in happened.iter().chain(&self.again) {
            marks.insert(*index, Mark::Look);
            let mut index = *index;
            while index != 0 {
                index = self.parent(index);
                if marks.contains_key(&index) && index != 0 {
                    break;
                }
                marks.entry(index).or_insert(Mark::OnTheWay);
            }
        }
        Marks(marks)
    }

    /// Parent of a folder.
    pub(crate) fn parent(&self, index: u32) -> u32 {
        self.sums.get(index as usize).map_or(0, |sum| sum.parent)
    }

    /// Returns whether so much was replaced that the state should be rebuilt.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.cache.size() > 2 * self.compact + 4 * 1024 * 1024
    }

    /// Files and bytes in and below a folder.
    pub(super) fn count_below(&self, index: u32) -> (u64, u64) {
        self.sums.get(index as usize).map_or((0, 0), |sum| (sum.files, sum.bytes))
    }

    /// Visits excluded entries in and below a folder.
    pub(super) fn left_below(&self, index: u32, path: &[u8], visit: &mut impl FnMut(&[u8], &[u8], Reason)) {
        if !self.sums.get(index as usize).is_some_and(|sum| sum.has_left) {
            return;
        }
        let Some(folder) = self.cache.folder(index) else { return };
        for (name, entry) in self.cache.entries(folder) {
            if let Some(reason) = entry.left() {
                visit(path, name.to_bytes(), reason);
            }
            if let Remembered::Folder { index } = entry {
                if self.cache.folder(index).is_some_and(|folder| folder.stat.has_special_bits()) {
                    visit(path, name.to_bytes(), Reason::ModeBits);
                }
                self.left_below(index, &[path, b"/", name.to_bytes()].concat(), visit);
            }
        }
    }

    /// Applies the changes of a snapshot. Returns the folders that are gone; `None` if the state is no longer usable.
    pub(crate) fn take_over(&mut self, patch: &Patch, snapshot: ContentId) -> Option<Vec<u32>> {
        let mut before = HashSet::new();
        for index in &patch.changed {
            self.below(*index, &mut |below| {
                before.insert(below);
            });
        }
        self.cache.replace(patch.body.as_ref()?, &patch.changed)?;
        self.cache.snapshot = snapshot;
        self.cache.left_out = patch.left_out;
        self.sums.resize(self.cache.len(), Sum::default());
        for index in &patch.walked {
            self.sum_up(*index);
        }
        for index in &patch.changed {
            self.below(*index, &mut |below| {
                before.remove(&below);
            });
        }
        let mut gone: Vec<u32> = before.into_iter().collect();
        let mut next = 0;
        while let Some(index) = gone.get(next).copied() {
            self.again.remove(&index);
            self.below(index, &mut |below| gone.push(below));
            next += 1;
        }
        Some(gone)
    }

    fn below(&self, index: u32, visit: &mut impl FnMut(u32)) {
        let Some(folder) = self.cache.folder(index) else { return };
        for (_, entry) in self.cache.entries(folder) {
            if let Remembered::Folder { index } = entry {
                visit(index);
            }
        }
    }

    fn sum_up(&mut self, index: u32) {
        let Some(folder) = self.cache.folder(index) else { return };
        let mut sum = Sum { parent: self.parent(index), ..Sum::default() };
        let mut again = !folder.settled;
        for (name, entry) in self.cache.entries(folder) {
            sum.has_left |= entry.left().is_some();
            match entry {
                Remembered::File { stat, settled, .. } => {
                    sum.files += 1;
                    sum.bytes += stat.size;
                    again |= !settled;
                }
                Remembered::Link { settled, .. } => {
                    sum.files += 1;
                    again |= !settled;
                }
                Remembered::Folder { index: below } => {
                    sum.has_left |=
                        self.cache.folder(below).is_some_and(|folder| folder.stat.has_special_bits());
                    let Some(below) = self.sums.get_mut(below as usize) else { continue };
                    below.parent = index;
                    sum.files += below.files;
                    sum.bytes += below.bytes;
                    sum.has_left |= below.has_left;
                }
                Remembered::Left { by_name, .. } => {
                    // An entry excluded by its type may change without an event: a mount, an excluded folder. So may
                    // the rules that a nested repository has in its git folder.
                    again |= !by_name || (index != 0 && name == c".git");
                }
            }
        }
        self.sums[index as usize] = sum;
        if again {
            self.again.insert(index);
        } else {
            self.again.remove(&index);
        }
    }
}
