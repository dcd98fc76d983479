//! From names to entries: candidates out of the cache, and the outcome of checking one.

use retake_model::tree::ExcludedKind;

use super::{
    Cache, CachedEntry, Candidate, Cow, Decision, Entry, EntryKind, Exclusion, ExclusionReason, Folder,
};

/// Names of a folder from the cache.
pub(super) fn names_from_cache<'walk>(cache: &'walk Cache, folder: &Folder) -> Vec<Candidate<'walk>> {
    let decided = |entry: &CachedEntry<'_>| match entry {
        CachedEntry::Excluded(exclusion) if exclusion.by_name => Decision::Exclude(exclusion.reason),
        _ => Decision::Capture,
    };
    let entries = cache.entries(folder).into_iter();
    entries
        .map(|(name, entry)| Candidate {
            name: Cow::Borrowed(name),
            decision: decided(&entry),
            is_folder: match entry {
                CachedEntry::Folder { .. } => true,
                CachedEntry::Excluded(exclusion) => exclusion.kind == Some(ExcludedKind::Folder),
                CachedEntry::File { .. } | CachedEntry::Link { .. } => false,
            },
            cached: Some(entry),
        })
        .collect()
}

/// Outcome of checking a name.
pub(super) enum EntryOutcome {
    Same,
    Other(EntryKind),
    Gone,
}

impl Candidate<'_> {
    pub(super) fn excluded_entry(&self, reason: ExclusionReason, by_name: bool) -> EntryOutcome {
        let exclusion = Exclusion { reason, by_name, kind: self.is_folder.then_some(ExcludedKind::Folder) };
        if self.cached == Some(CachedEntry::Excluded(exclusion)) {
            EntryOutcome::Same
        } else {
            EntryOutcome::Other(EntryKind::Excluded(exclusion))
        }
    }
}

/// The cached entry of a name, with its folder number in this walk.
pub(super) fn entry_from<'number>(
    name: &Candidate<'_>,
    folders: &mut impl Iterator<Item = &'number u32>,
) -> Option<Entry> {
    let kind = match name.cached? {
        CachedEntry::File { stat, content, .. } => EntryKind::File { stat, content },
        CachedEntry::Link { stat, target, .. } => EntryKind::Link { stat, target: target.to_vec() },
        CachedEntry::Folder { .. } => EntryKind::Folder { number: *folders.next()? },
        CachedEntry::Excluded(exclusion) => EntryKind::Excluded(exclusion),
    };
    Some(Entry { name: name.name.clone().into_owned(), kind })
}
