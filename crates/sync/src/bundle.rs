//! The wire form of a slice of a thread's log.
//!
//! ```text
//!   header   "RTKB" │ format 1 │ flags │ thread 16 │ first 8 │ previous 32 │ operations 4 │ length 8
//!   body     one zstd frame of records, for each operation:
//!              1 │ kind 1 │ length 4 │ bytes          content, after what it refers to
//!              2 │ kind 1 │ id 32                     content that was redacted
//!              3 │ length 4 │ bytes                   the operation itself
//! ```
//!
//! Numbers are big-endian. Ids of content are not written: the reader computes them. A bundle contains nothing of the
//! machine that made it, such as its row numbers. Bytes from elsewhere are hostile: every length is bounded before memory
//! is reserved, and a frame that unpacks to more than it declares is refused.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use retake_model::content::{ContentId, Kind};
use retake_model::id::{ID_BYTES, ThreadId};
use retake_model::limits::ENTRY_BYTES;
use retake_model::object::NewObject;
use retake_model::operation::Version;
use retake_model::replica::ReplicaOperation;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the format.
pub const FORMAT: u8 = 1;

const MAGIC: &[u8; 4] = b"RTKB";
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = MAGIC.len() + 2 + ID_BYTES + 8 + HASH_BYTES + 4 + 8;

/// The most bytes that a bundle unpacks to, with the cost of its records.
pub const MAX_UNPACKED: u64 = 128 * 1024 * 1024;
/// The most operations of a bundle.
pub const MAX_OPERATIONS: u32 = 1 << 16;
/// The most bytes of one object or operation.
const MAX_RECORD: u32 = ENTRY_BYTES as u32 + (1 << 20);
/// What a record costs in memory beside its bytes: millions of empty ones would pack to almost nothing.
const RECORD_COST: u64 = 128;
/// How many bytes one packed byte may unpack to: logs of long, equal texts stay below, a bomb does not.
const MAX_RATIO: u64 = 4096;
/// A higher level makes bundles hardly smaller and much slower.
const LEVEL: i32 = 9;
/// The largest window of a frame, as a power of two: 8 MiB.
const WINDOW_LOG: u32 = 23;

const OBJECT: u8 = 1;
const REDACTED: u8 = 2;
const OPERATION: u8 = 3;

/// What a bundle contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleHeader {
    /// The thread.
    pub thread: ThreadId,
    /// The version of its first operation.
    pub first: Version,
    /// The id of the operation before it; `None` at the start of a log.
    pub previous: Option<ContentId>,
    /// Number of operations.
    pub operations: u32,
    /// Size of the unpacked records.
    pub unpacked: u64,
}

impl BundleHeader {
    /// The version of its last operation.
    pub fn last(&self) -> Version {
        self.first + Version::from(self.operations) - 1
    }
}

/// Why bytes are not a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bytes are not a bundle.
    #[error("these bytes are not a bundle")]
    NotABundle,
    /// A newer version of this program wrote it.
    #[error("the bundle has format {found}, this program knows {FORMAT}; update this program")]
    Newer {
        /// The format of the bundle.
        found: u8,
    },
    /// The bundle is damaged or forged.
    #[error("the bundle is damaged: {0}")]
    Damaged(&'static str),
    /// The bundle exceeds a limit.
    #[error("the bundle is too large: {0}")]
    TooLarge(&'static str),
    /// Packing or unpacking failed.
    #[error("the bundle could not be read or written: {0}")]
    Io(#[from] io::Error),
}

/// The name of a bundle: the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BundleId([u8; HASH_BYTES]);

impl BundleId {
    /// The name of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The bytes of the name.
    pub fn bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl Serialize for BundleId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BundleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(text.as_ref()).map_err(serde::de::Error::custom)?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl std::str::FromStr for BundleId {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

impl std::fmt::Display for BundleId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// Collects operations into a bundle. The records are packed as they come.
pub struct BundleWriter {
    header: BundleHeader,
    /// What its operations cost in memory.
    cost: u64,
    packed: zstd::Encoder<'static, Vec<u8>>,
}

impl BundleWriter {
    /// Starts a bundle of the operations from `first` on, which follow the operation `previous`.
    pub fn new(thread: ThreadId, first: Version, previous: Option<ContentId>) -> Result<Self, BundleError> {
        let mut packed = zstd::Encoder::new(Vec::new(), LEVEL)?;
        packed.window_log(WINDOW_LOG)?;
        packed.include_checksum(false)?;
        let header = BundleHeader { thread, first, previous, operations: 0, unpacked: 0 };
        Ok(Self { header, cost: 0, packed })
    }

    /// Whether the operation fits. A bundle takes at least one, unless it exceeds the limits alone.
    pub fn has_room_for(&self, operation: &ReplicaOperation) -> bool {
        self.header.operations < MAX_OPERATIONS && self.cost + cost(operation) <= MAX_UNPACKED
    }

    /// Adds the next operation.
    pub fn add(&mut self, operation: &ReplicaOperation) -> Result<(), BundleError> {
        if !self.has_room_for(operation) {
            return Err(BundleError::TooLarge("more operations than a bundle may have"));
        }
        for NewObject { kind, bytes, .. } in &operation.objects {
            self.packed.write_all(&[OBJECT, *kind as u8])?;
            self.bytes(bytes)?;
        }
        for (kind, id) in &operation.redacted {
            self.packed.write_all(&[REDACTED, *kind as u8])?;
            self.packed.write_all(id.bytes())?;
        }
        self.packed.write_all(&[OPERATION])?;
        self.bytes(&operation.operation)?;
        self.header.operations += 1;
        self.header.unpacked += unpacked_size(operation);
        self.cost += cost(operation);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MAX_RECORD);
        let length = length.ok_or(BundleError::TooLarge("an object is longer than an entry may be"))?;
        self.packed.write_all(&length.to_be_bytes())?;
        Ok(self.packed.write_all(bytes)?)
    }

    /// Number of operations so far.
    pub fn len(&self) -> u32 {
        self.header.operations
    }

    /// Whether it has no operation yet.
    pub fn is_empty(&self) -> bool {
        self.header.operations == 0
    }

    /// The bytes of the bundle.
    pub fn finish(self) -> Result<Vec<u8>, BundleError> {
        let Self { header, packed, .. } = self;
        let body = packed.finish()?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[FORMAT, 0]);
        bytes.extend_from_slice(header.thread.bytes());
        bytes.extend_from_slice(&header.first.to_be_bytes());
        bytes.extend_from_slice(&header.previous.map_or([0; HASH_BYTES], |id| *id.bytes()));
        bytes.extend_from_slice(&header.operations.to_be_bytes());
        bytes.extend_from_slice(&header.unpacked.to_be_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }
}

fn unpacked_size(operation: &ReplicaOperation) -> u64 {
    let objects: usize = operation.objects.iter().map(|object| 6 + object.bytes.len()).sum();
    let redacted = operation.redacted.len() * (2 + HASH_BYTES);
    (objects + redacted + 5 + operation.operation.len()) as u64
}

/// What an operation costs in memory: its bytes and its records.
pub fn cost(operation: &ReplicaOperation) -> u64 {
    let records = operation.objects.len() + operation.redacted.len() + 1;
    unpacked_size(operation) + records as u64 * RECORD_COST
}

/// Reads the operations of a bundle one by one, from any source.
pub struct BundleReader<R: Read> {
    header: BundleHeader,
    records: io::Take<zstd::Decoder<'static, io::BufReader<R>>>,
    left: u32,
    /// How many records may still follow.
    records_left: u64,
}

impl<R: Read> BundleReader<R> {
    /// Reads the header. `packed` is the size of the whole bundle, which bounds what it may unpack to.
    pub fn new(mut from: R, packed: u64) -> Result<Self, BundleError> {
        let mut bytes = [0; HEADER_BYTES];
        from.read_exact(&mut bytes).map_err(|_| BundleError::NotABundle)?;
        let header = parse_header(&bytes)?;
        if header.unpacked > MAX_UNPACKED || header.unpacked / MAX_RATIO > packed {
            return Err(BundleError::TooLarge("it unpacks to more than a bundle may have"));
        }
        let mut decoder = zstd::Decoder::new(from)?;
        decoder.window_log_max(WINDOW_LOG)?;
        // One more than declared, so that a longer frame is noticed.
        let records = decoder.take(header.unpacked + 1);
        let records_left = (MAX_UNPACKED - header.unpacked) / RECORD_COST;
        Ok(Self { header, records, left: header.operations, records_left })
    }

    /// What it contains.
    pub fn header(&self) -> BundleHeader {
        self.header
    }

    /// The next operation; `None` after the last one.
    pub fn next_operation(&mut self) -> Result<Option<ReplicaOperation>, BundleError> {
        if self.left == 0 {
            let mut end = [0];
            return match self.records.read(&mut end)? {
                0 if self.records.limit() == 1 => Ok(None),
                _ => Err(BundleError::Damaged("its length is not what it declares")),
            };
        }
        let mut operation = ReplicaOperation::default();
        loop {
            let [record] = self.array()?;
            let left = self.records_left.checked_sub(1);
            self.records_left = left.ok_or(BundleError::TooLarge("more records than a bundle may have"))?;
            match record {
                OBJECT => {
                    let kind = self.kind()?;
                    let bytes = self.bytes()?;
                    let id = ContentId::of(kind, &bytes);
                    operation.objects.push(NewObject { id, kind, bytes: bytes.into() });
                }
                REDACTED => operation.redacted.push((self.kind()?, ContentId::from_bytes(self.array()?))),
                OPERATION => {
                    operation.operation = self.bytes()?;
                    self.left -= 1;
                    return Ok(Some(operation));
                }
                _ => return Err(BundleError::Damaged("a record of an unknown kind")),
            }
        }
    }

    fn kind(&mut self) -> Result<Kind, BundleError> {
        let [number] = self.array()?;
        Kind::from_number(number).ok_or(BundleError::Damaged("content of an unknown kind"))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, BundleError> {
        let length = u32::from_be_bytes(self.array()?);
        if length > MAX_RECORD {
            return Err(BundleError::TooLarge("an object is longer than an entry may be"));
        }
        // Grows with what arrives, not with what is declared.
        let mut bytes = Vec::new();
        let read = self.records.by_ref().take(u64::from(length)).read_to_end(&mut bytes);
        match read {
            Ok(read) if read as u64 == u64::from(length) => Ok(bytes),
            Ok(_) => Err(BundleError::Damaged("it ends too early")),
            Err(_) => Err(BundleError::Damaged("its packed part")),
        }
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], BundleError> {
        let mut bytes = [0; LENGTH];
        self.records.read_exact(&mut bytes).map_err(|_| BundleError::Damaged("it ends too early"))?;
        Ok(bytes)
    }
}

/// The bundle without the named content, which it lists as redacted instead; `None` if it contains none of it. The
/// operations keep their ids, so that only the name of the bundle changes.
pub fn redacted(bytes: &[u8], content: &BTreeSet<ContentId>) -> Result<Option<Vec<u8>>, BundleError> {
    let (header, mut operations) = decode(bytes)?;
    let mut found = false;
    for operation in &mut operations {
        let gone = |object: &mut NewObject| content.contains(&object.id);
        let removed: Vec<_> = operation.objects.extract_if(.., gone).collect();
        found |= !removed.is_empty();
        operation.redacted.extend(removed.into_iter().map(|object| (object.kind, object.id)));
    }
    if !found {
        return Ok(None);
    }
    let mut writer = BundleWriter::new(header.thread, header.first, header.previous)?;
    operations.iter().try_for_each(|operation| writer.add(operation))?;
    Ok(Some(writer.finish()?))
}

/// The id of an operation.
pub fn operation_id(operation: &ReplicaOperation) -> ContentId {
    ContentId::of(Kind::Operation, &operation.operation)
}

/// Reads a whole bundle.
pub fn decode(bytes: &[u8]) -> Result<(BundleHeader, Vec<ReplicaOperation>), BundleError> {
    let mut reader = BundleReader::new(bytes, bytes.len() as u64)?;
    let mut operations = Vec::new();
    while let Some(operation) = reader.next_operation()? {
        operations.push(operation);
    }
    Ok((reader.header(), operations))
}

fn parse_header(bytes: &[u8; HEADER_BYTES]) -> Result<BundleHeader, BundleError> {
    let mut rest = bytes.as_slice();
    if &take::<4>(&mut rest) != MAGIC {
        return Err(BundleError::NotABundle);
    }
    let [format, flags] = take(&mut rest);
    if format != FORMAT {
        return Err(BundleError::Newer { found: format });
    }
    let thread = ThreadId::from_bytes(take(&mut rest));
    let first = Version::from_be_bytes(take(&mut rest));
    let previous = take::<HASH_BYTES>(&mut rest);
    let operations = u32::from_be_bytes(take(&mut rest));
    let unpacked = u64::from_be_bytes(take(&mut rest));
    let previous = (previous != [0; HASH_BYTES]).then(|| ContentId::from_bytes(previous));
    let ends = first.checked_add(Version::from(operations));
    let fits = flags == 0 && first > 0 && (first == 1) == previous.is_none() && ends.is_some();
    if !fits || operations == 0 || operations > MAX_OPERATIONS {
        return Err(BundleError::Damaged("its header"));
    }
    Ok(BundleHeader { thread, first, previous, operations, unpacked })
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> [u8; LENGTH] {
    let (taken, after) = rest.split_first_chunk().expect("the header has a fixed length");
    *rest = after;
    *taken
}
