//! Unknown fields, stored verbatim.
//!
//! Blocks and usage carry them, and most have none. An empty set encodes to nothing, so content from before
//! unknown fields were supported keeps its bytes and therefore its id.

use std::collections::BTreeMap;

use minicbor::decode::{Decode, Decoder};
use minicbor::encode::{Encode, Encoder, Write};

use crate::json::Json;

/// Fields by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<String, Json>);

impl Fields {
    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over names and values, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.as_str().len()).sum()
    }

    /// Returns these fields, plus those of `others` whose names are not present yet.
    #[must_use]
    pub fn or(mut self, others: &Self) -> Self {
        for (name, value) in &others.0 {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }
}

impl FromIterator<(String, Json)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl<Ctx> Encode<Ctx> for Fields {
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

impl<'bytes, Ctx> Decode<'bytes, Ctx> for Fields {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut Ctx) -> Result<Self, minicbor::decode::Error> {
        BTreeMap::decode(decoder, context).map(Self)
    }

    fn nil() -> Option<Self> {
        Some(Self::default())
    }
}
