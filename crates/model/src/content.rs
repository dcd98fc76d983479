//! Content ids: the BLAKE3 hash of a canonical encoding.
//!
//! The same content has the same id on every machine, regardless of how it was created. The encoding is
//! CBOR with fixed field order and shortest lengths, as the derived encoders write it. [`decode`] accepts
//! only those bytes, so imported content cannot have two ids.

use std::fmt;
use std::str::FromStr;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// The id of immutable content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct ContentId(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]);

/// The type of an object. It is part of the hash, so the same bytes have a different id for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of a file, or long text that a state refers to.
    #[n(0)]
    Blob = 0,
    /// One version of an entry.
    #[n(1)]
    Entry = 1,
    /// A node of a list of entries.
    #[n(2)]
    Entries = 2,
    /// One take.
    #[n(3)]
    Take = 3,
    /// A node of a list of takes.
    #[n(4)]
    Takes = 4,
    /// The settings of a thread.
    #[n(5)]
    Settings = 5,
    /// The whole state of a thread.
    #[n(6)]
    State = 6,
    /// The environment of an operation: folder, branch, commit.
    #[n(7)]
    Environment = 7,
    /// One operation of a thread's log.
    #[n(8)]
    Operation = 8,
    /// One folder of files.
    #[n(9)]
    Tree = 9,
    /// The parts of a long file.
    #[n(10)]
    Parts = 10,
    /// A snapshot of a workspace's files.
    #[n(11)]
    Snapshot = 11,
    /// The paths that a snapshot excludes.
    #[n(12)]
    Excluded = 12,
    /// Encrypted bytes of a file that snapshots exclude.
    #[n(13)]
    Sealed = 13,
    /// The sealed files of a root in one snapshot.
    #[n(14)]
    SealedFiles = 14,
    /// A node of the list of chunks of a large file.
    #[n(15)]
    Chunks = 15,
}

/// Content with a kind and one canonical encoding.
pub trait Content: Encode<()> + for<'bytes> Decode<'bytes, ()> {
    /// The kind of this content.
    const KIND: Kind;
}

/// The bytes are not the canonical encoding of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("content is not a well-formed {kind:?}")]
pub struct MalformedError {
    /// The expected kind.
    pub kind: Kind,
}

impl Kind {
    /// All kinds, ordered by number.
    pub const ALL: [Self; 16] = [
        Self::Blob,
        Self::Entry,
        Self::Entries,
        Self::Take,
        Self::Takes,
        Self::Settings,
        Self::State,
        Self::Environment,
        Self::Operation,
        Self::Tree,
        Self::Parts,
        Self::Snapshot,
        Self::Excluded,
        Self::Sealed,
        Self::SealedFiles,
        Self::Chunks,
    ];

    /// Returns the kind with that number, if any.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl ContentId {
    /// Returns the id of these bytes as content of that kind.
    pub fn of(kind: Kind, bytes: &[u8]) -> Self {
        let mut hasher = ContentHasher::new(kind);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Creates an id from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the id.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first eight bytes as a number, for indexes that verify the whole id afterwards.
    pub fn prefix(&self) -> i64 {
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&self.0[..8]);
        i64::from_be_bytes(prefix)
    }

    /// Returns the first characters of the text form.
    pub fn short(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.0[..6])
    }
}

/// Computes the id of content that arrives in pieces.
#[derive(Clone, Debug)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    /// Starts content of that kind.
    pub fn new(kind: Kind) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[kind as u8]);
        Self(hasher)
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The id of all bytes.
    pub fn finish(&self) -> ContentId {
        ContentId(*self.0.finalize().as_bytes())
    }
}

/// Encodes content canonically.
pub fn encode<C: Content>(content: &C) -> Vec<u8> {
    // Most content fits into this capacity; growing from zero would copy it several times.
    let mut bytes = Vec::with_capacity(512);
    minicbor::encode(content, &mut bytes).expect("encoding into memory cannot fail");
    bytes
}

/// Decodes content and rejects any bytes that are not canonical.
pub fn decode<C: Content>(bytes: &[u8]) -> Result<C, MalformedError> {
    let content: C = minicbor::decode(bytes).map_err(|_| MalformedError { kind: C::KIND })?;
    // Unknown fields, longer lengths or trailing bytes would give the same content two ids.
    let mut expected = ExpectedBytes(bytes);
    let same = minicbor::encode(&content, &mut expected).is_ok() && expected.0.is_empty();
    if same { Ok(content) } else { Err(MalformedError { kind: C::KIND }) }
}

/// Decodes bytes that are known to be canonical: stored content comes from [`encode`] or passed [`decode`],
/// and its bytes were verified against the id.
pub(crate) fn decode_canonical<C: Content>(bytes: &[u8]) -> Result<C, MalformedError> {
    minicbor::decode(bytes).map_err(|_| MalformedError { kind: C::KIND })
}

/// A writer that accepts only the expected bytes.
struct ExpectedBytes<'bytes>(&'bytes [u8]);

/// The written bytes differ from the expected ones.
struct UnexpectedBytes;

impl minicbor::encode::Write for ExpectedBytes<'_> {
    type Error = UnexpectedBytes;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), UnexpectedBytes> {
        self.0 = self.0.strip_prefix(bytes).ok_or(UnexpectedBytes)?;
        Ok(())
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ContentId({})", self.short())
    }
}

/// The text is not a content id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a content id has 64 hexadecimal digits")]
pub struct InvalidContentIdError;

impl FromStr for ContentId {
    type Err = InvalidContentIdError;

    fn from_str(text: &str) -> Result<Self, InvalidContentIdError> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).map_err(|_| InvalidContentIdError)?;
        bytes.try_into().map(Self).map_err(|_| InvalidContentIdError)
    }
}

impl Serialize for ContentId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
