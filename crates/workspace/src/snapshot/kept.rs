//! What a watcher keeps of a root between two snapshots, in memory: the stat cache, and sums over it.
//!
//! ```text
//!   cache: folders ──► entries      a folder that changed is written anew at the end, and its row points there
//!   sums:  parent, files and bytes below, something left out below, to be looked at again
//! ```
//!
//! A folder keeps its number for as long as it stands under its name, so that a watch can lead to it.

use std::collections::{HashMap, HashSet};

use retake_model::content::ContentId;
use retake_model::tree::Reason;

use super::cache::{Cache, Remembered};

/// One root, as the last snapshot found it.
pub(crate) struct Kept {
    cache: Cache,
    sums: Vec<Sum>,
    /// Folders that no event is needed for.
    again: HashSet<u32>,
    /// The size of the cache before anything in it was replaced.
    compact: usize,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    parent: u32,
    files: u64,
    bytes: u64,
    has_left: bool,
}

/// What a snapshot changes in what is kept.
pub(crate) struct Patch {
    /// The folders that changed, in the form of the cache; nothing if there is too much for it.
    pub(super) body: Option<Vec<u8>>,
    pub(super) changed: Vec<u32>,
    /// All folders that were walked, each before the one around it.
    pub(super) walked: Vec<u32>,
    pub(super) left_out: Option<ContentId>,
}

/// Which folders a walk has to look at.
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
    /// What a walk over the whole root left.
    pub(super) fn new(cache: Cache) -> Self {
        let mut kept = Self {
            sums: vec![Sum::default(); cache.len()],
            again: HashSet::new(),
            compact: cache.size(),
            cache,
        };
        // Numbers grow downwards.
        for index in (0..kept.cache.len() as u32).rev() {
            kept.sum_up(index);
        }
        kept
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The folders that have to be looked at: those that something happened in, and those that have to be in any
    /// case; and the root, which leads to them.
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

    /// The folder around another.
    pub(crate) fn parent(&self, index: u32) -> u32 {
        self.sums.get(index as usize).map_or(0, |sum| sum.parent)
    }

    /// Whether so much was replaced that it should be made anew.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.cache.size() > 2 * self.compact + 4 * 1024 * 1024
    }

    /// Files and bytes in a folder and below.
    pub(super) fn count_below(&self, index: u32) -> (u64, u64) {
        self.sums.get(index as usize).map_or((0, 0), |sum| (sum.files, sum.bytes))
    }

    /// Visits what is left out in a folder and below.
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

    /// Takes over what a snapshot of that name changed. Returns the folders that are gone; nothing if what is
    /// kept cannot be gone by any more.
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
                    // What it was may change where nobody watches: a mount, a folder that is not held. So may
                    // the rules that a repository inside the root keeps in its own folder.
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
