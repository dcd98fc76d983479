//! Pictures attached to a draft.
//!
//! Most drafts have none, and then nothing is encoded, so that takes that predate attachments keep their
//! bytes and content id.

use std::collections::HashSet;

use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::content::{ContentId, Kind};
use crate::entry::{Block, EntryVersion, Fields, attachment_media_of};

/// A picture attached to a draft.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// Its media type, such as `image/png`.
    #[n(0)]
    pub media: String,
    /// Its bytes, as a blob.
    #[n(1)]
    pub picture: ContentId,
}

/// The pictures of a draft, in the order they were attached, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Attachments(Vec<Attachment>);

/// A picture that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPicture {
    /// Its media type and content id.
    pub attached: Attachment,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The bytes are not a supported picture or document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a png, jpg, gif or webp picture, nor a PDF document")]
pub struct InvalidPictureError;

impl NewPicture {
    /// Detects the media type of these bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, InvalidPictureError> {
        let media = attachment_media_of(&bytes).ok_or(InvalidPictureError)?.to_owned();
        Ok(Self { attached: Attachment { media, picture: ContentId::of(Kind::Blob, &bytes) }, bytes })
    }
}

impl Attachment {
    /// Converts the picture to an entry block.
    pub fn into_block(self) -> Block {
        Block::Image { media: self.media, blob: self.picture, extra: Fields::default() }
    }
}

impl Attachments {
    /// The pictures of a message.
    pub fn of(message: &EntryVersion) -> Self {
        let mut seen = HashSet::new();
        let pictures = message.blocks.iter().filter_map(|block| match block {
            Block::Image { media, blob, .. } => Some(Attachment { media: media.clone(), picture: *blob }),
            _ => None,
        });
        Self(pictures.filter(|one| seen.insert(one.picture)).collect())
    }

    /// Whether there are no pictures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of pictures.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the pictures.
    pub fn iter(&self) -> impl Iterator<Item = &Attachment> {
        self.0.iter()
    }

    /// Appends a picture unless it is already attached.
    pub fn push(&mut self, picture: Attachment) {
        if !self.0.iter().any(|known| known.picture == picture.picture) {
            self.0.push(picture);
        }
    }

    /// Removes a picture; returns whether it was attached.
    pub fn remove(&mut self, picture: ContentId) -> bool {
        let before = self.0.len();
        self.0.retain(|known| known.picture != picture);
        self.0.len() < before
    }

    /// Converts the pictures to entry blocks.
    pub fn into_blocks(self) -> impl Iterator<Item = Block> {
        self.0.into_iter().map(Attachment::into_block)
    }

    /// Whether there are no duplicates; imported attachments must pass this check.
    pub fn are_distinct(&self) -> bool {
        let mut seen = HashSet::new();
        self.0.iter().all(|one| seen.insert(one.picture))
    }
}

impl<Ctx> Encode<Ctx> for Attachments {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut Ctx,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        self.0.encode(encoder, context)
    }

    fn is_nil(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'bytes, Ctx> Decode<'bytes, Ctx> for Attachments {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut Ctx) -> Result<Self, minicbor::decode::Error> {
        Vec::decode(decoder, context).map(Self)
    }

    fn nil() -> Option<Self> {
        Some(Self::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn attached(name: &str) -> Attachment {
        NewPicture::new(format!("GIF89a{name}").into_bytes()).expect("a GIF header").attached
    }

    #[test]
    fn pictures_are_not_duplicated() {
        let mut all = Attachments::default();
        for name in ["a", "b", "a"] {
            all.push(attached(name));
        }
        assert_eq!((all.len(), all.are_distinct()), (2, true));
        assert!(!Attachments(vec![attached("a"), attached("a")]).are_distinct());
        assert!(all.remove(attached("a").picture) && !all.remove(attached("a").picture));
        let pictures =
            vec![attached("a").into_block(), attached("b").into_block(), attached("a").into_block()];
        let message =
            EntryVersion { blocks: pictures, ..EntryVersion::from_text("User", "", Timestamp::default()) };
        assert_eq!(Attachments::of(&message).len(), 2);
    }

    #[test]
    fn bytes_that_are_not_a_picture_are_refused() {
        assert_eq!(NewPicture::new(b"[redacted]".to_vec()), Err(InvalidPictureError));
    }
}
