//! Which pictures a thread shows.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind, decode};
use retake_model::id::ThreadId;
use retake_model::object::{Objects, Unavailable};
use retake_model::reference::{Reference, references};
use retake_model::take::Take;
use retake_store::Queries;

use crate::{LookError, Looking};

/// Operations that are read at once.
const PAGE: usize = 256;

impl Looking<'_> {
    /// The bytes of a picture; `None` if they were destroyed. What stands in their place is no picture.
    pub fn picture(&self, picture: ContentId) -> Result<Option<Vec<u8>>, LookError> {
        if self.queries().is_redacted(picture)? { Ok(None) } else { self.blob(picture).map(Some) }
    }

    /// Whether an entry or a draft of the thread shows that picture, or showed it at any time. The newest are asked
    /// first, and content that several moments share is read once.
    pub fn shows_picture(&self, thread: ThreadId, picture: ContentId) -> Result<bool, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
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

/// Whether a picture is in an entry or a draft below this content; what was seen before is not looked at again.
fn is_below(
    queries: &Queries<'_>,
    from: Reference,
    picture: ContentId,
    seen: &mut HashSet<ContentId>,
) -> Result<bool, Unavailable> {
    let mut waiting = vec![from];
    while let Some((kind, id)) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let bytes = match queries.bytes(kind, id) {
            Ok(bytes) => bytes,
            // What was lost shows nothing any more.
            Err(Unavailable::Missing { .. }) => continue,
            Err(error) => return Err(error),
        };
        let below = references(kind, &bytes).map_err(|_| Unavailable::Damaged { kind, id })?;
        let shows = match kind {
            Kind::Entry => below.contains(&(Kind::Blob, picture)),
            // What was sent to a model is below a take too, and is no picture.
            Kind::Take => {
                let take: Take = decode(&bytes).map_err(|_| Unavailable::Damaged { kind, id })?;
                take.attached.iter().any(|attached| attached.picture == picture)
            }
            _ => false,
        };
        if shows {
            return Ok(true);
        }
        // Files, and what was sent to a model, are no entries.
        waiting.extend(
            below
                .into_iter()
                .filter(|(kind, _)| matches!(kind, Kind::Takes | Kind::Take | Kind::Entries | Kind::Entry)),
        );
    }
    Ok(false)
}
