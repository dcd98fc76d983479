//! Reads the entries of a take.

use std::ops::Range;

use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{EntryId, ThreadId};
use retake_model::object::load;
use retake_model::take::Take;

use crate::read::view::EntryView;
use crate::{ReadError, Reader};

/// Reads the entries of a take.
#[derive(Clone, Copy)]
pub struct EntryReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
    pub(crate) thread: ThreadId,
    pub(crate) take: &'reader Take,
}

impl EntryReader<'_> {
    /// The entries in a range of positions, counted from 0.
    pub fn page(&self, range: Range<u64>) -> Result<Vec<EntryView>, ReadError> {
        Ok(self.page_within(range, usize::MAX)?.0)
    }

    /// A page of entries limited by bytes, and the position after the last. The first entry is included at any size.
    pub fn page_within(
        &self,
        range: Range<u64>,
        most_bytes: usize,
    ) -> Result<(Vec<EntryView>, u64), ReadError> {
        let queries = self.reader.queries();
        let shown = queries.cached_presentations(self.reader.thread(self.thread)?.number)?;
        let cells = self.take.entries.page(&queries, range.clone())?;
        let (mut views, mut bytes) = (Vec::with_capacity(cells.len()), 0);
        for (position, cell) in (range.start..).zip(cells) {
            let entry: EntryVersion = load(&queries, cell.version)?;
            bytes += entry.size();
            if bytes > most_bytes && !views.is_empty() {
                return Ok((views, position));
            }
            views.push(EntryView {
                number: position + 1,
                id: cell.entry,
                version: cell.version,
                shown: shown.get(&cell.entry).copied().unwrap_or_default(),
                entry,
            });
        }
        let end = range.start + views.len() as u64;
        Ok((views, end))
    }

    /// An entry and its position; `None` if the take does not contain it.
    pub fn get(&self, entry: EntryId) -> Result<Option<(u64, EntryVersion)>, ReadError> {
        let queries = self.reader.queries();
        match self.take.entries.find(&queries, entry.bytes())? {
            Some((position, cell)) => Ok(Some((position, load(&queries, cell.version)?))),
            None => Ok(None),
        }
    }

    /// The last message of the user.
    pub fn last_message(&self) -> Result<Option<EntryId>, ReadError> {
        const PAGE: u64 = 100;
        let mut end = self.take.entries.len();
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            let page = self.page(start..end)?;
            let found = page.iter().rev().find(|view| RoleKind::of(&view.entry.role) == RoleKind::User);
            if let Some(view) = found {
                return Ok(Some(view.id));
            }
            end = start;
        }
        Ok(None)
    }
}
