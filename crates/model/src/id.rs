//! Ids that survive edits.
//!
//! An entry, a take, a thread, a turn or a project keeps its id while its content changes; the hash of the
//! content is a separate id ([`crate::content::ContentId`]). An id has 16 bytes: 48 bits of creation time
//! in milliseconds, then 80 random bits, so ids sort by creation time.
//!
//! ```text
//!   bytes   time (6) | random (10)          sorts by time: lists can be searched by id
//!   text    random (16 chars) time (10)     base32, random part first: short prefixes are distinct
//! ```

use std::fmt;
use std::str::FromStr;

use data_encoding::{Encoding, Specification};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The source of new ids: the caller's clock and random generator.
pub trait IdSource {
    /// Returns the current time.
    fn now(&mut self) -> Timestamp;
    /// Returns ten random bytes that never repeat.
    fn random(&mut self) -> [u8; 10];
}

/// The text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} is not an id: an id has 26 letters and digits")]
pub struct InvalidIdError {
    shown: String,
}

const TIME_BYTES: usize = 6;
const RANDOM_BYTES: usize = 10;
const RANDOM_CHARS: usize = 16;
/// The length of an id in bytes.
pub const ID_BYTES: usize = TIME_BYTES + RANDOM_BYTES;
/// The length of an id's text form in characters.
pub const ID_CHARS: usize = 26;

/// Crockford's base32 alphabet, which omits letters that are easily misread.
fn alphabet() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    specification.encoding().expect("the 32 symbols differ")
}

fn fresh_bytes(fresh: &mut impl IdSource) -> [u8; ID_BYTES] {
    let millis = fresh.now().millis().clamp(0, (1 << 48) - 1) as u64;
    let mut bytes = [0; ID_BYTES];
    bytes[..TIME_BYTES].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[TIME_BYTES..].copy_from_slice(&fresh.random());
    bytes
}

fn to_text(bytes: [u8; ID_BYTES]) -> String {
    let encoding = alphabet();
    let mut text = encoding.encode(&bytes[TIME_BYTES..]);
    text.push_str(&encoding.encode(&bytes[..TIME_BYTES]));
    text
}

fn rotated(bytes: [u8; ID_BYTES]) -> [u8; ID_BYTES] {
    let mut key = [0; ID_BYTES];
    key[..RANDOM_BYTES].copy_from_slice(&bytes[TIME_BYTES..]);
    key[RANDOM_BYTES..].copy_from_slice(&bytes[..TIME_BYTES]);
    key
}

/// Returns the lowest and highest keys whose text starts with a prefix; `None` if no id's text can.
pub fn keys_with_prefix(prefix: &str) -> Option<([u8; ID_BYTES], [u8; ID_BYTES])> {
    let bound = |fill: char, last: char| -> Option<[u8; ID_BYTES]> {
        let mut text = prefix.to_owned();
        text.extend(std::iter::repeat_n(fill, (ID_CHARS - 1).saturating_sub(prefix.len())));
        if text.len() < ID_CHARS {
            text.push(last);
        }
        from_text(&text).ok().map(rotated)
    };
    // The last character encodes three bits instead of five.
    Some((bound('0', '0')?, bound('z', 'w')?))
}

fn from_text(text: &str) -> Result<[u8; ID_BYTES], InvalidIdError> {
    let refuse = || InvalidIdError { shown: text.chars().take(40).collect() };
    if text.len() != ID_CHARS || !text.is_ascii() {
        return Err(refuse());
    }
    let encoding = alphabet();
    let (random, time) = text.split_at(RANDOM_CHARS);
    let random = encoding.decode(random.as_bytes()).map_err(|_| refuse())?;
    let time = encoding.decode(time.as_bytes()).map_err(|_| refuse())?;
    let mut bytes = [0; ID_BYTES];
    bytes[..TIME_BYTES].copy_from_slice(&time);
    bytes[TIME_BYTES..].copy_from_slice(&random);
    Ok(bytes)
}

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $name(#[cbor(n(0), with = "minicbor::bytes")] [u8; ID_BYTES]);

        impl $name {
            /// Generates a new id.
            pub fn generate(fresh: &mut impl IdSource) -> Self {
                Self(fresh_bytes(fresh))
            }

            /// Creates an id from its bytes.
            pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes, which sort by creation time.
            pub const fn bytes(&self) -> &[u8; ID_BYTES] {
                &self.0
            }

            /// Returns the bytes in the order of the text form, random part first, for lookups by prefix.
            pub fn key(&self) -> [u8; ID_BYTES] {
                rotated(self.0)
            }

            /// Creates an id from its [`key`](Self::key).
            pub fn from_key(key: [u8; ID_BYTES]) -> Self {
                let mut bytes = [0; ID_BYTES];
                bytes[..TIME_BYTES].copy_from_slice(&key[RANDOM_BYTES..]);
                bytes[TIME_BYTES..].copy_from_slice(&key[..RANDOM_BYTES]);
                Self(bytes)
            }

            /// Returns the first characters of the text form, enough to distinguish a few thousand ids.
            pub fn short(&self) -> String {
                let mut text = self.to_string();
                text.truncate(8);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&to_text(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self.short())
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdError;

            fn from_str(text: &str) -> Result<Self, InvalidIdError> {
                from_text(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

identity!(
    /// A project: a folder of the user, even after it moves.
    ProjectId
);
identity!(
    /// A conversation.
    ThreadId
);
identity!(
    /// A branch of a thread.
    TakeId
);
identity!(
    /// A message, a tool call with its result, or a note, across all its versions.
    EntryId
);
identity!(
    /// A turn: operations that are undone together.
    TurnId
);
identity!(
    /// A tracked folder: the folder of a project, or a take's worktree.
    FolderId
);

identity!(
    /// A request and all its repetitions. It is a hash of the request instead of a random id, so that a
    /// repeated request has the same id.
    RequestId
);

impl RequestId {
    /// Derives the id from the bytes that identify the request, such as an idempotency key.
    pub fn of(question: &[u8]) -> Self {
        let mut bytes = [0; ID_BYTES];
        bytes.copy_from_slice(&blake3::hash(question).as_bytes()[..ID_BYTES]);
        Self(bytes)
    }
}

impl FolderId {
    /// Returns the id of a project's folder.
    pub fn of_project(project: ProjectId) -> Self {
        Self::from_bytes(*project.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scripted(i64, u8);

    impl IdSource for Scripted {
        fn now(&mut self) -> Timestamp {
            self.0 += 1;
            Timestamp::from_millis(self.0)
        }

        fn random(&mut self) -> [u8; 10] {
            self.1 = self.1.wrapping_mul(31).wrapping_add(7);
            [self.1; 10]
        }
    }

    #[test]
    fn ids_sort_by_creation_and_round_trip() {
        let mut fresh = Scripted(1_700_000_000_000, 3);
        let ids: Vec<EntryId> = (0..100).map(|_| EntryId::generate(&mut fresh)).collect();
        assert!(ids.is_sorted());
        for id in ids {
            let text = id.to_string();
            assert_eq!(text.len(), ID_CHARS);
            assert_eq!(text.parse(), Ok(id));
        }
    }

    #[test]
    fn prefix_bounds_all_keys_that_start_with_it() {
        let mut fresh = Scripted(1_700_000_000_000, 5);
        let id = TakeId::generate(&mut fresh);
        for length in 0..=ID_CHARS {
            let (low, high) = keys_with_prefix(&id.to_string()[..length]).expect("a prefix of an id");
            assert!(low <= id.key() && id.key() <= high, "{length}");
            assert_eq!(TakeId::from_key(id.key()), id);
        }
        for text in ["!", "é", "UPPER", "../..", "012345678901234567890123456"] {
            assert!(keys_with_prefix(text).is_none(), "{text}");
        }
    }

    #[test]
    fn invalid_text_is_rejected() {
        let long = "0".repeat(4096);
        let not_canonical = format!("{}z", "0".repeat(25));
        for text in
            ["", "..", "/etc/passwd", "a\0b", "C:", &long, "0000000000000000000000000!", "ß", &not_canonical]
        {
            assert!(text.parse::<ThreadId>().is_err(), "{text:?}");
        }
    }
}
