//! Reads pictures, and finds those of a thread.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind, decode};
use retake_model::object::{ObjectError, Objects};
use retake_model::reference::{Reference, references};
use retake_model::take::Take;
use retake_store::Queries;

use crate::read::history::HistoryReader;
use crate::{ReadError, Reader};

/// Operations to read at a time.
const PAGE: usize = 256;

/// The bytes of a blob.
pub fn read_blob(reader: &Reader<'_>, blob: ContentId) -> Result<Vec<u8>, ReadError> {
    Ok(reader.queries().bytes(Kind::Blob, blob)?.to_vec())
}

/// The bytes of a picture; `None` if they were erased.
pub fn read_picture(reader: &Reader<'_>, picture: ContentId) -> Result<Option<Vec<u8>>, ReadError> {
    if reader.queries().is_redacted(picture)? { Ok(None) } else { read_blob(reader, picture).map(Some) }
}

impl HistoryReader<'_> {
    /// Returns whether any entry or draft of the thread has or ever had that picture. Searches the newest versions
    /// first and reads shared content once.
    pub fn shows_picture(&self, picture: ContentId) -> Result<bool, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let queries = self.reader.queries();
        let mut seen = HashSet::new();
        let mut before = row.summary.version;
        while before > 0 {
            let page = queries.operations_back(row.number, before, PAGE)?;
            for stored in &page {
                let state = (Kind::State, stored.operation.after);
                if is_below(&queries, state, picture, &mut seen)? {
                    return Ok(true);
                }
            }
            before = page.last().map_or(0, |last| last.operation.version.saturating_sub(1));
        }
        Ok(false)
    }
}

/// Returns whether a picture is in an entry or draft below this content; skips content that was read before.
fn is_below(
    queries: &Queries<'_>,
    from: Reference,
    picture: ContentId,
    seen: &mut HashSet<ContentId>,
) -> Result<bool, ObjectError> {
    let mut waiting = vec![from];
    while let Some((kind, id)) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let bytes = match queries.bytes(kind, id) {
            Ok(bytes) => bytes,
            // Lost content has no pictures.
            Err(ObjectError::Missing { .. }) => continue,
            Err(error) => return Err(error),
        };
        let below = references(kind, &bytes).map_err(|_| ObjectError::Damaged { kind, id })?;
        let shows = match kind {
            Kind::Entry => below.contains(&(Kind::Blob, picture)),
            // A take also refers to model requests, which are not pictures.
            Kind::Take => {
                let take: Take = decode(&bytes).map_err(|_| ObjectError::Damaged { kind, id })?;
                take.attached.iter().any(|attached| attached.picture == picture)
            }
            _ => false,
        };
        if shows {
            return Ok(true);
        }
        // Files and model requests are not entries.
        waiting.extend(
            below
                .into_iter()
                .filter(|(kind, _)| matches!(kind, Kind::Takes | Kind::Take | Kind::Entries | Kind::Entry)),
        );
    }
    Ok(false)
}
