//! Identities that survive edits.
//!
//! An entry, a take, a thread, a turn or a project keeps its identity while its content changes; the content
//! itself is named by its hash ([`crate::content::ContentId`]). An identity is 16 bytes: 48 bits of creation
//! time in milliseconds, then 80 random bits, so that identities made one after another sort in that order.
//!
//! ```text
//!   bytes   time (6) | random (10)          sorts by time: lists can be searched by identity
//!   text    random (16 chars) time (10)     base32, random part first: a short prefix already tells two apart
//! ```

use std::fmt;
use std::str::FromStr;

use data_encoding::{Encoding, Specification};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Where fresh identities come from: the caller's clock and the caller's dice.
pub trait Fresh {
    /// The present moment.
    fn now(&mut self) -> Timestamp;
    /// Ten random bytes, never the same twice.
    fn random(&mut self) -> [u8; 10];
}

/// The text is not an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} is not an id: an id has 26 letters and digits")]
pub struct NotAnId {
    shown: String,
}

const TIME_BYTES: usize = 6;
const RANDOM_BYTES: usize = 10;
/// Characters of the random part of the text form.
const RANDOM_TEXT: usize = 16;
/// Bytes of an identity.
pub const ID_BYTES: usize = TIME_BYTES + RANDOM_BYTES;
/// Characters of an identity's text form.
pub const ID_TEXT: usize = 26;

/// Crockford's letters, which leave out those that are easily misread.
fn alphabet() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    specification.encoding().expect("the 32 symbols are distinct")
}

fn fresh_bytes(fresh: &mut impl Fresh) -> [u8; ID_BYTES] {
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

/// The lowest and highest keys whose text begins with that prefix; `None` if no identity's text does.
pub fn keys_with_prefix(prefix: &str) -> Option<([u8; ID_BYTES], [u8; ID_BYTES])> {
    let bound = |fill: char, last: char| -> Option<[u8; ID_BYTES]> {
        let mut text = prefix.to_owned();
        text.extend(std::iter::repeat_n(fill, (ID_TEXT - 1).saturating_sub(prefix.len())));
        if text.len() < ID_TEXT {
            text.push(last);
        }
        from_text(&text).ok().map(rotated)
    };
    // The last letter has three bits to say, and not five.
    Some((bound('0', '0')?, bound('z', 'w')?))
}

fn from_text(text: &str) -> Result<[u8; ID_BYTES], NotAnId> {
    let refuse = || NotAnId { shown: text.chars().take(40).collect() };
    if text.len() != ID_TEXT || !text.is_ascii() {
        return Err(refuse());
    }
    let encoding = alphabet();
    let (random, time) = text.split_at(RANDOM_TEXT);
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
            /// A new identity.
            pub fn fresh(fresh: &mut impl Fresh) -> Self {
                Self(fresh_bytes(fresh))
            }

            /// The identity with exactly these bytes.
            pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
                Self(bytes)
            }

            /// The bytes, which sort by creation time.
            pub const fn bytes(&self) -> &[u8; ID_BYTES] {
                &self.0
            }

            /// The bytes in the order of the text form, random part first: what a short prefix is looked up by.
            pub fn key(&self) -> [u8; ID_BYTES] {
                rotated(self.0)
            }

            /// The identity whose [`key`](Self::key) this is.
            pub fn from_key(key: [u8; ID_BYTES]) -> Self {
                let mut bytes = [0; ID_BYTES];
                bytes[..TIME_BYTES].copy_from_slice(&key[RANDOM_BYTES..]);
                bytes[TIME_BYTES..].copy_from_slice(&key[..RANDOM_BYTES]);
                Self(bytes)
            }

            /// The first characters of the text form: enough for a person to tell a few thousand apart.
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
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
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
    /// A folder of the user's, wherever it is now.
    ProjectId
);
identity!(
    /// One conversation.
    ThreadId
);
identity!(
    /// One branch of a thread.
    TakeId
);
identity!(
    /// One message, tool call with its result, or note, through all its versions.
    EntryId
);
identity!(
    /// Operations that are undone together.
    TurnId
);
identity!(
    /// A folder that files are kept of: that of a project, or one that a take has for itself.
    FolderId
);

identity!(
    /// What somebody asked for once, however often it is repeated. It is a hash and not fresh: the same question has
    /// the same name.
    RequestId
);

impl RequestId {
    /// The name of a request, from all that tells it from others: who asks, and what they call it.
    pub fn of(question: &[u8]) -> Self {
        let mut bytes = [0; ID_BYTES];
        bytes.copy_from_slice(&blake3::hash(question).as_bytes()[..ID_BYTES]);
        Self(bytes)
    }
}

impl FolderId {
    /// The folder of a project.
    pub fn of_project(project: ProjectId) -> Self {
        Self::from_bytes(*project.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scripted(i64, u8);

    impl Fresh for Scripted {
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
    fn identities_sort_by_creation_and_read_back() {
        let mut fresh = Scripted(1_700_000_000_000, 3);
        let ids: Vec<EntryId> = (0..100).map(|_| EntryId::fresh(&mut fresh)).collect();
        assert!(ids.is_sorted());
        for id in ids {
            let text = id.to_string();
            assert_eq!(text.len(), ID_TEXT);
            assert_eq!(text.parse(), Ok(id));
        }
    }

    #[test]
    fn a_prefix_bounds_the_keys_that_begin_with_it() {
        let mut fresh = Scripted(1_700_000_000_000, 5);
        let id = TakeId::fresh(&mut fresh);
        for length in 0..=ID_TEXT {
            let (low, high) = keys_with_prefix(&id.to_string()[..length]).expect("a prefix of an id");
            assert!(low <= id.key() && id.key() <= high, "{length}");
            assert_eq!(TakeId::from_key(id.key()), id);
        }
        for text in ["!", "é", "UPPER", "../..", "012345678901234567890123456"] {
            assert!(keys_with_prefix(text).is_none(), "{text}");
        }
    }

    #[test]
    fn hostile_text_is_refused() {
        let long = "0".repeat(4096);
        let not_canonical = format!("{}z", "0".repeat(25));
        for text in
            ["", "..", "/etc/passwd", "a\0b", "C:", &long, "0000000000000000000000000!", "ß", &not_canonical]
        {
            assert!(text.parse::<ThreadId>().is_err(), "{text:?}");
        }
    }
}
