//! Pictures of entries and drafts. The media type comes from the bytes, never from a claim, so that browsers cannot
//! interpret them as pages or scripts.

use retake_model::content::ContentId;
use retake_model::entry::{Block, attachment_media_of};
use retake_model::id::ThreadId;
use retake_timeline::{Reader, read_picture};

use crate::conversation::take_of;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// A picture and its media type.
pub(crate) struct Picture {
    pub(crate) media: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a picture that the thread shows or once showed.
pub(crate) fn read(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Picture, PageError> {
    let none = || PageError::not_found("No such picture in this thread or its history.");
    let reader = studio.timeline.read()?;
    let blob: ContentId = query.q.as_deref().and_then(|text| text.parse().ok()).ok_or_else(none)?;
    if !(shown_now(&reader, thread, query, blob)? || reader.history(thread).shows_picture(blob)?) {
        return Err(none());
    }
    let bytes = read_picture(&reader, blob)?
        .ok_or_else(|| PageError::not_found("This picture was purged or redacted."))?;
    let media = attachment_media_of(&bytes).ok_or_else(none)?;
    Ok(Picture { media, bytes })
}

/// Whether the named entry, or the draft, shows it. Usually true, which avoids a search.
fn shown_now(
    reader: &Reader<'_>,
    thread: ThreadId,
    query: &PageQuery,
    picture: ContentId,
) -> Result<bool, PageError> {
    let take = take_of(reader, thread, query)?;
    let Some(entry) = query.entry else {
        return Ok(take.attached.iter().any(|attached| attached.picture == picture));
    };
    let found = reader.entries(thread, &take).get(entry)?;
    let shows = |block: &Block| matches!(block, Block::Image { blob, .. } if *blob == picture);
    Ok(found.is_some_and(|(_, version)| version.blocks.iter().any(shows)))
}
