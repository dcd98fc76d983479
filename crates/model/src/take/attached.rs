//! Pictures that go along with a draft.
//!
//! Most drafts have none. Nothing at all is written for none, so that takes which were stored before a draft could hold
//! a picture have the same bytes, and thus the same name, as ever.

use std::collections::HashSet;

use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::content::{ContentId, Kind};
use crate::entry::{Block, EntryVersion, Fields, attachment_media_of};

/// A picture that goes along with a draft.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attached {
    /// Its media type, such as `image/png`.
    #[n(0)]
    pub media: String,
    /// Its bytes, as a blob.
    #[n(1)]
    pub picture: ContentId,
}

/// The pictures of a draft, in the order in which they came; each is there once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Attachments(Vec<Attached>);

/// A picture that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPicture {
    /// What it is.
    pub attached: Attached,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What was given as a picture or document is neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a png, jpg, gif or webp picture, nor a PDF document")]
pub struct NotAPicture;

impl NewPicture {
    /// The picture that these bytes are.
    pub fn new(bytes: Vec<u8>) -> Result<Self, NotAPicture> {
        let media = attachment_media_of(&bytes).ok_or(NotAPicture)?.to_owned();
        Ok(Self { attached: Attached { media, picture: ContentId::of(Kind::Blob, &bytes) }, bytes })
    }
}

impl Attached {
    /// The picture as a part of an entry.
    pub fn into_block(self) -> Block {
        Block::Image { media: self.media, blob: self.picture, extra: Fields::default() }
    }
}

impl Attachments {
    /// The pictures of a message.
    pub fn of(message: &EntryVersion) -> Self {
        let mut seen = HashSet::new();
        let pictures = message.blocks.iter().filter_map(|block| match block {
            Block::Image { media, blob, .. } => Some(Attached { media: media.clone(), picture: *blob }),
            _ => None,
        });
        Self(pictures.filter(|one| seen.insert(one.picture)).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Attached> {
        self.0.iter()
    }

    /// Puts one behind the others, unless it is there.
    pub fn push(&mut self, picture: Attached) {
        if !self.0.iter().any(|known| known.picture == picture.picture) {
            self.0.push(picture);
        }
    }

    /// Takes one out; tells whether it was there.
    pub fn remove(&mut self, picture: ContentId) -> bool {
        let before = self.0.len();
        self.0.retain(|known| known.picture != picture);
        self.0.len() < before
    }

    /// The pictures as parts of an entry.
    pub fn into_blocks(self) -> impl Iterator<Item = Block> {
        self.0.into_iter().map(Attached::into_block)
    }

    /// Whether each is there once, as whatever came from elsewhere must prove.
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

    fn attached(name: &str) -> Attached {
        NewPicture::new(format!("GIF89a{name}").into_bytes()).expect("it begins as one does").attached
    }

    #[test]
    fn each_picture_is_there_once() {
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
    fn what_is_no_picture_is_none() {
        assert_eq!(NewPicture::new(b"[redacted]".to_vec()), Err(NotAPicture));
    }
}
