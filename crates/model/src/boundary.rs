//! The rule that divides a sequence into chunks by its content.
//!
//! ```text
//!   items     a  b  c│ d  e  f  g│ h  i│ j  k
//!   after x is inserted:
//!             a  b  c│ d  e  x  f  g│ h  i│ j  k      one chunk changes
//! ```
//!
//! A hash of an item decides whether a chunk ends after it, so a boundary depends only on the items of its chunk. Two
//! limits hold for any content, even adversarial content: a chunk has at most eight times the average number of items,
//! and never ends after its first item, so that every level of nodes has at most half as many as the level below.

/// A chunk never ends after its first item, so that every level is shorter than the one below.
pub(crate) const MIN_ITEMS: usize = 2;
/// Maximum size of a chunk, as a multiple of the average.
const MAX_AVERAGES: usize = 8;

/// Maximum number of items of a chunk.
pub(crate) const fn max_items(average: u64) -> usize {
    average as usize * MAX_AVERAGES
}

/// Whether the low bits of a hash mark a boundary, which happens once in `average` times; a power of two.
pub(crate) const fn hash_ends_chunk(hash: &[u8; 32], average: u64) -> bool {
    debug_assert!(average.is_power_of_two());
    let low =
        u64::from_be_bytes([hash[24], hash[25], hash[26], hash[27], hash[28], hash[29], hash[30], hash[31]]);
    low & (average - 1) == 0
}

/// Whether these items form exactly one chunk: no boundary between them, and one after the last, unless that
/// is the last item of the level, where the end may cut the chunk short.
pub(crate) fn is_one_chunk<T>(
    items: &[T],
    last: bool,
    average: u64,
    mut ends_chunk: impl FnMut(&T) -> bool,
) -> bool {
    let Some((end, before)) = items.split_last() else { return false };
    let full = items.len() >= max_items(average);
    let ends = full || (items.len() >= MIN_ITEMS && ends_chunk(end));
    let inner = before.get(MIN_ITEMS - 1..).unwrap_or_default();
    items.len() <= max_items(average) && (last || ends) && !inner.iter().any(ends_chunk)
}

/// Divides the items of a level into chunks.
pub(crate) fn chunks<T>(
    items: &[T],
    average: u64,
    ends_chunk: impl Fn(&T) -> bool,
) -> impl Iterator<Item = &[T]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let ends = |index: usize| index + 1 >= MIN_ITEMS && ends_chunk(&rest[index]);
        let end = (0..rest.len().min(max_items(average)))
            .find(|&index| ends(index) || index + 1 == max_items(average));
        let (chunk, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}
