//! Pages of threads: fast for any number of threads, and never stale.
//!
//! ```text
//!   page 1 ──► cursor: position of its last thread ──► page 2: everything after that position
//! ```
//!
//! A cursor is a position in the order of the list and not a count, so that threads that are added or removed between two
//! pages shift nothing. A changed thread moves to the front: a client that has passed its old position sees it when it
//! starts from the first page again.

use std::fmt;
use std::str::FromStr;
use std::sync::PoisonError;

use data_encoding::BASE64URL_NOPAD;
use retake_model::id::ThreadId;
use retake_model::time::Timestamp;
use retake_store::{ListPosition, ThreadFilter, ThreadList, ThreadRow};
use serde::{Serialize, Serializer};

use crate::{ReadError, Reader, Timeline, TreeThread};

/// One page of a list.
#[derive(Clone, Debug, Serialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Cursor for the next page; `null` on the last one.
    pub next: Option<ThreadCursor>,
}

/// A position in a list of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCursor(ListPosition);

/// The text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor; use the one from the previous page unchanged")]
pub struct InvalidCursorError;

/// The bytes of a cursor: pinned, time of the last change, thread number.
const BYTES: usize = 1 + 8 + 8;

impl fmt::Display for ThreadCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListPosition { pinned, updated, number } = self.0;
        let mut bytes = [0; BYTES];
        bytes[0] = u8::from(pinned);
        bytes[1..9].copy_from_slice(&updated.millis().to_be_bytes());
        bytes[9..].copy_from_slice(&number.to_be_bytes());
        formatter.write_str(&BASE64URL_NOPAD.encode(&bytes))
    }
}

impl FromStr for ThreadCursor {
    type Err = InvalidCursorError;

    fn from_str(text: &str) -> Result<Self, InvalidCursorError> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| InvalidCursorError)?;
        let bytes: [u8; BYTES] = bytes.try_into().map_err(|_| InvalidCursorError)?;
        let number = |from: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[from..from + 8]);
            i64::from_be_bytes(eight)
        };
        let pinned = match bytes[0] {
            0 => false,
            1 => true,
            _ => return Err(InvalidCursorError),
        };
        Ok(Self(ListPosition { pinned, updated: Timestamp::from_millis(number(1)), number: number(9) }))
    }
}

impl Serialize for ThreadCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Timeline {
    /// A page of the threads that match a filter: pinned ones first, then the most recently changed.
    pub fn threads_page(
        &self,
        filter: &ThreadFilter,
        after: Option<ThreadCursor>,
        limit: usize,
    ) -> Result<Page<ThreadRow>, ReadError> {
        let (page, (), _) = self.list_page(filter, after, limit, |_, _| ())?;
        Ok(page)
    }

    /// A page of the tree: threads in the same order, each with its takes.
    ///
    /// A promoted thread appears at its own position and names the thread it came from ([`TreeThread::below`]) if that
    /// one is in the tree, on any page.
    pub fn tree_page(
        &self,
        filter: &ThreadFilter,
        after: Option<ThreadCursor>,
        limit: usize,
    ) -> Result<Page<TreeThread>, ReadError> {
        let parents = |listing: &ThreadList, rows: &[ThreadRow]| -> Vec<Option<ThreadId>> {
            let in_tree = |id: &ThreadId| listing.thread(*id).is_some_and(|row| filter.matches(row));
            rows.iter().map(|row| row.summary.parent.map(|parent| parent.thread).filter(in_tree)).collect()
        };
        let (page, parents, reader) = self.list_page(filter, after, limit, parents)?;
        let threads = page.items.into_iter().zip(parents);
        let items =
            threads.map(|(row, parent)| TreeThread::of(&reader, row, parent)).collect::<Result<_, _>>()?;
        Ok(Page { items, next: page.next })
    }

    /// A page with data from the whole list, both from the same transaction.
    fn list_page<T>(
        &self,
        filter: &ThreadFilter,
        after: Option<ThreadCursor>,
        limit: usize,
        ask: impl FnOnce(&ThreadList, &[ThreadRow]) -> T,
    ) -> Result<(Page<ThreadRow>, T, Reader<'_>), ReadError> {
        // A listing that a panic left incomplete detects this itself and is read again.
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        // Begun while the listing is locked, so that no later caller sees an older state.
        let reader = self.read()?;
        let queries = reader.queries();
        listing.refresh(&queries)?;
        let (items, more) = listing.page(&queries, filter, after.map(|cursor| cursor.0), limit)?;
        let next = items.last().filter(|_| more).map(|row| ThreadCursor(row.list_position()));
        let asked = ask(&listing, &items);
        drop(queries);
        Ok((Page { items, next }, asked, reader))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_other_texts_are_rejected() {
        for (pinned, updated, number) in
            [(false, 0, 1), (true, 1_700_000_000_000, 10_000), (true, -1, i64::MAX)]
        {
            let place = ListPosition { pinned, updated: Timestamp::from_millis(updated), number };
            let text = ThreadCursor(place).to_string();
            assert_eq!(text.len(), 23);
            assert_eq!(text.parse(), Ok(ThreadCursor(place)));
            for wrong in [&text[1..], &format!("{text}A"), &format!("{text}="), &text.replace('A', "!")] {
                assert_eq!(wrong.parse::<ThreadCursor>(), Err(InvalidCursorError), "{wrong}");
            }
        }
        for wrong in ["", "..", "AgAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAB", "é"] {
            assert_eq!(wrong.parse::<ThreadCursor>(), Err(InvalidCursorError), "{wrong}");
        }
    }
}
