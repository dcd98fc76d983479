//! Bundles: the objects that an operation is the first to need, stored in the operation's row.
//!
//! ```text
//!   header   format │ count │ for each object: name, kind, length │ length of the packed part
//!   packed   texts, one behind the other, in one zstd frame
//!   plain    nodes of lists, one behind the other: they consist of hashes, which do not compress
//! ```
//!
//! A name is the first eight bytes of an object's id. It only helps to find the object: every object is checked
//! against its whole id. Texts that do not get smaller are not packed, and then come first in the plain part.

use retake_model::content::{ContentId, Kind};
use retake_model::object::NewObject;
use rusqlite::OptionalExtension;

use crate::StoreError;
use crate::log::queries::Queries;
use crate::objects::read_write::{compress, decompress};

const FORMAT: u8 = 1;
const NAME_BYTES: usize = 8;
/// Larger objects get rows of their own: reading any object of a bundle reads all of it.
const MAX_OBJECT: usize = 32 * 1024;
const MAX_BYTES: usize = 128 * 1024;
const MAX_OBJECTS: usize = 512;
/// Limits what a damaged length can ask for.
const MAX_UNPACKED: usize = 4 * MAX_BYTES;

/// An object of a bundle. The name is that in the header, which may be damaged.
#[derive(Clone, Debug)]
pub(crate) struct BundledObject {
    pub(crate) name: i64,
    pub(crate) kind: Kind,
    /// `None` if the packed part is damaged.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl BundledObject {
    /// Its id, if its bytes match its name.
    pub(crate) fn intact_id(&self) -> Option<ContentId> {
        let id = ContentId::of(self.kind, self.bytes.as_ref()?);
        (id.prefix() == self.name).then_some(id)
    }

    pub(crate) fn into_new(self) -> Option<NewObject> {
        let id = self.intact_id()?;
        Some(NewObject { id, kind: self.kind, bytes: self.bytes?.into() })
    }
}

/// Splits new objects into those for a bundle and those that get rows of their own.
pub(crate) fn split(objects: Vec<NewObject>) -> (Vec<NewObject>, Vec<NewObject>) {
    let (mut count, mut bytes) = (0, 0);
    objects.into_iter().partition(|object| {
        let size = object.bytes.len();
        let fits = size <= MAX_OBJECT && bytes + size <= MAX_BYTES && count < MAX_OBJECTS;
        if fits {
            (count, bytes) = (count + 1, bytes + size);
        }
        fits
    })
}

/// Encodes a bundle.
pub(crate) fn encode<'object>(
    objects: impl Iterator<Item = (i64, Kind, &'object [u8])> + Clone,
) -> Result<Vec<u8>, StoreError> {
    let part = |texts: bool| -> Vec<u8> {
        let objects = objects.clone().filter(|(_, kind, _)| is_text(*kind) == texts);
        objects.flat_map(|(_, _, bytes)| bytes).copied().collect()
    };
    let (texts, nodes) = (part(true), part(false));
    let packed = compress(&texts)?;
    let mut bytes = vec![FORMAT];
    put_number(&mut bytes, objects.clone().count());
    for (name, kind, content) in objects {
        bytes.extend(name.to_be_bytes());
        bytes.push(kind as u8);
        put_number(&mut bytes, content.len());
    }
    if let Some(packed) = packed {
        put_number(&mut bytes, packed.len());
        bytes.extend(packed);
    } else {
        put_number(&mut bytes, 0);
        bytes.extend(texts);
    }
    bytes.extend(nodes);
    Ok(bytes)
}

/// Nodes consist mostly of hashes and ids, which do not compress.
pub(crate) fn is_text(kind: Kind) -> bool {
    !matches!(kind, Kind::Entries | Kind::Takes)
}

/// A bundle whose header can be read.
pub(crate) struct Bundle<'bytes> {
    header: Vec<(i64, Kind, usize)>,
    packed: &'bytes [u8],
    plain: &'bytes [u8],
}

impl<'bytes> Bundle<'bytes> {
    /// Reads the header; `None` if it is damaged.
    pub(crate) fn parse(bytes: &'bytes [u8]) -> Option<Self> {
        let (&format, mut rest) = bytes.split_first()?;
        if format != FORMAT {
            return None;
        }
        let count = take_number(&mut rest)?;
        let mut header = Vec::with_capacity(count.min(MAX_OBJECTS));
        let (mut texts, mut nodes) = (0_usize, 0_usize);
        for _ in 0..count {
            let (name, after) = rest.split_first_chunk::<NAME_BYTES>()?;
            let (&kind, after) = after.split_first()?;
            rest = after;
            let kind = Kind::from_number(kind)?;
            let length = take_number(&mut rest)?;
            let part = if is_text(kind) { &mut texts } else { &mut nodes };
            *part = part.checked_add(length).filter(|&length| length <= MAX_UNPACKED)?;
            header.push((i64::from_be_bytes(*name), kind, length));
        }
        let packed = take_number(&mut rest)?;
        let (packed, plain) = rest.split_at_checked(packed)?;
        let expected = if packed.is_empty() { texts + nodes } else { nodes };
        (plain.len() == expected).then_some(Self { header, packed, plain })
    }

    /// The names of its objects, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = i64> {
        self.header.iter().map(|(name, ..)| *name)
    }

    /// The unpacked sizes of its objects, by name.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (i64, usize)> {
        self.header.iter().map(|&(name, _, length)| (name, length))
    }

    /// Unpacks those objects that `wanted` accepts by name and kind.
    pub(crate) fn objects(&self, wanted: impl Fn(i64, Kind) -> bool) -> Vec<BundledObject> {
        let length = |texts: bool| -> usize {
            let parts = self.header.iter().filter(|(_, kind, _)| is_text(*kind) == texts);
            parts.map(|(.., length)| length).sum()
        };
        let unpacks = !self.packed.is_empty()
            && self.header.iter().any(|&(name, kind, _)| is_text(kind) && wanted(name, kind));
        let unpacked = if unpacks {
            decompress(self.packed, length(true)).filter(|texts| texts.len() == length(true))
        } else {
            None
        };
        let plain_texts = if self.packed.is_empty() { length(true) } else { 0 };
        let (mut text, mut node) = (0, plain_texts);
        let mut found = Vec::new();
        for &(name, kind, length) in &self.header {
            let place = if is_text(kind) { &mut text } else { &mut node };
            let range = *place..*place + length;
            *place = range.end;
            if !wanted(name, kind) {
                continue;
            }
            let bytes = match (is_text(kind), self.packed.is_empty()) {
                (true, false) => unpacked.as_ref().map(|texts| texts[range].to_vec()),
                _ => Some(self.plain[range].to_vec()),
            };
            found.push(BundledObject { name, kind, bytes });
        }
        found
    }

    pub(crate) fn all(&self) -> Vec<BundledObject> {
        self.objects(|_, _| true)
    }
}

/// The names in a bundle, for the index; none if its header is damaged.
pub(crate) fn names_in(bundle: &[u8]) -> Vec<i64> {
    Bundle::parse(bundle).map_or_else(Vec::new, |bundle| bundle.names().collect())
}

fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for shift in [0, 7, 14, 21] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

impl Queries<'_> {
    /// The bundle of an operation, if it has one.
    pub(crate) fn bundle(&self, sequence: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT bundle FROM operation WHERE sequence = ?1")?
            .query_row([sequence], |row| Ok(row.get_ref(0)?.as_blob().ok().map(<[u8]>::to_vec)))
            .optional()?;
        Ok(found.flatten())
    }

    /// The bytes of an object, if the bundle of that operation contains it intact.
    pub(crate) fn bundled_object(
        &self,
        sequence: i64,
        kind: Kind,
        id: ContentId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT bundle FROM operation WHERE sequence = ?1")?;
        let mut rows = statement.query([sequence])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let Some(bundle) = row.get_ref(0)?.as_blob().ok().and_then(Bundle::parse) else { return Ok(None) };
        let found = bundle.objects(|name, found| name == id.prefix() && found == kind);
        Ok(found.into_iter().filter_map(|object| object.bytes).find(|bytes| ContentId::of(kind, bytes) == id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle_of(objects: &[(Kind, Vec<u8>)]) -> Vec<u8> {
        let named: Vec<_> = objects
            .iter()
            .map(|(kind, bytes)| (ContentId::of(*kind, bytes).prefix(), *kind, bytes.as_slice()))
            .collect();
        encode(named.iter().copied()).expect("memory")
    }

    fn samples() -> Vec<Vec<(Kind, Vec<u8>)>> {
        let text =
            |length: usize| -> Vec<u8> { b"a message, ".iter().copied().cycle().take(length).collect() };
        vec![
            vec![],
            vec![(Kind::State, text(80))],
            vec![(Kind::Entry, text(3_000)), (Kind::Entries, vec![7; 200]), (Kind::Take, text(300))],
            vec![(Kind::Entries, vec![1; 40]), (Kind::Takes, vec![2; 60]), (Kind::State, Vec::new())],
            vec![(Kind::Takes, vec![5; 300])],
        ]
    }

    #[test]
    fn a_bundle_returns_its_objects() {
        for objects in samples() {
            let bytes = bundle_of(&objects);
            let bundle = Bundle::parse(&bytes).expect("a header");
            let found: Vec<_> = bundle.all().into_iter().map(|object| (object.kind, object.bytes)).collect();
            let expected: Vec<_> = objects.iter().map(|(kind, bytes)| (*kind, Some(bytes.clone()))).collect();
            assert_eq!(found, expected);
            for (kind, content) in &objects {
                let name = ContentId::of(*kind, content).prefix();
                let one = bundle.objects(|found, _| found == name);
                assert_eq!(one[0].bytes.as_ref(), Some(content));
                assert!(one[0].intact_id().is_some());
            }
        }
    }

    /// Damage yields fewer intact objects, never other ones.
    #[test]
    fn no_damage_passes_for_an_object() {
        for objects in samples() {
            let bytes = bundle_of(&objects);
            let ids: Vec<ContentId> =
                objects.iter().map(|(kind, bytes)| ContentId::of(*kind, bytes)).collect();
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 1 << bit;
                    let found = Bundle::parse(&damaged).map(|bundle| bundle.all()).unwrap_or_default();
                    let intact = found.iter().filter_map(BundledObject::intact_id);
                    assert!(intact.into_iter().all(|id| ids.contains(&id)), "byte {at}, bit {bit}");
                }
                let cut = Bundle::parse(&bytes[..at]).map(|bundle| bundle.all()).unwrap_or_default();
                assert!(cut.iter().filter_map(BundledObject::intact_id).all(|id| ids.contains(&id)));
            }
        }
    }

    #[test]
    fn large_objects_get_rows_of_their_own() {
        let object = |length: usize| NewObject {
            id: ContentId::of(Kind::Blob, &length.to_le_bytes()),
            kind: Kind::Blob,
            bytes: vec![0; length].into(),
        };
        let (bundled, separate) = split(vec![object(10), object(MAX_OBJECT + 1), object(MAX_OBJECT)]);
        assert_eq!((bundled.len(), separate.len()), (2, 1));
        let (bundled, separate) = split((0..10).map(|more| object(20_000 + more)).collect());
        assert_eq!((bundled.len(), separate.len()), (6, 4));
        let (bundled, separate) = split((0..1_000).map(object).collect());
        assert_eq!(bundled.len() + separate.len(), 1_000);
        assert!(bundled.len() <= MAX_OBJECTS);
    }
}
