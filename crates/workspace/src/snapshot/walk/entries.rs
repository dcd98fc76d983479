//! From names to entries: candidates out of the cache, and the outcome of checking one.

use super::{Cache, CachedEntry, Candidate, Cow, Decision, Entry, EntryKind, ExclusionReason, Folder};

/// Names of a folder from the cache.
pub(super) fn names_from_cache<'walk>(cache: &'walk Cache, folder: &Folder) -> Vec<Candidate<'walk>> {
    let decided = |entry: &CachedEntry<'_>| match entry {
        CachedEntry::Excluded { reason, by_name: true } => Decision::Exclude(*reason),
        _ => Decision::Capture,
    };
    let entries = cache.entries(folder).into_iter();
    entries
        .map(|(name, entry)| Candidate {
            name: Cow::Borrowed(name),
            decision: decided(&entry),
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
        if self.cached == Some(CachedEntry::Excluded { reason, by_name }) {
            EntryOutcome::Same
        } else {
            EntryOutcome::Other(EntryKind::Excluded { reason, by_name })
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
        CachedEntry::Excluded { reason, by_name } => EntryKind::Excluded { reason, by_name },
    };
    Some(Entry { name: name.name.clone().into_owned(), kind })
}
