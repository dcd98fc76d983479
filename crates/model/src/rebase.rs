//! Rebase: two logs that diverged become one.
//!
//! Two machines changed a thread after a common operation. Their operations come first, as they are; ours follow, with
//! new versions, on top of a jump back to the common operation. A second jump returns to their side, and ordinary
//! operations of one turn merge what ours changed besides:
//!
//! ```text
//!   common    theirs          jump to      ours again       jump back   merge
//!   1 ─ 2 ─── 3 ─ 4 ──────────── 5 ──────── 6 ─ 7 ─────────── 8 ──────── 9  renamed, take branched, …
//!   S2        S3  S4             S2         our states        S8         S9
//! ```
//!
//! The states of both sides keep their ids, so that every version of either machine can still be reached. Each chain
//! ([`crate::history`]) continues on the side that changed it, so that undo goes on in a take that only one side
//! changed. A take that both changed keeps theirs, and ours becomes a second take. Title, pin, deletion, roles and
//! settings are merged by field; where both changed one, theirs stays and the report names it.
//!
//! The result depends on the two logs alone: no clock, no random numbers. A rebase that a crash interrupted leads to the
//! same bytes when it is repeated.

mod branch;
mod merge;
mod relink;

use serde::Serialize;

use crate::content::{Content, ContentId, Kind, encode};
use crate::history::OperationLog;
use crate::id::{ID_BYTES, TakeId, TurnId};
use crate::object::{Additions, NewObject, ObjectError, Objects};
use crate::operation::{Actor, Operation, OperationKind, Version};
use crate::time::Timestamp;

use self::branch::BranchLog;

/// Two logs of one thread with a common beginning.
#[derive(Clone, Copy, Debug)]
pub struct Divergence<'logs> {
    /// The last common operation.
    pub common: &'logs Operation,
    /// Their operations after it.
    pub theirs: &'logs [Operation],
    /// Our operations after it.
    pub ours: &'logs [Operation],
}

/// What follows their operations, and what it merged.
#[derive(Clone, Debug)]
pub struct Rebase {
    /// The operations after theirs.
    pub operations: Vec<Operation>,
    /// New content of these operations, each piece after those it refers to.
    pub objects: Vec<NewObject>,
    /// What a person should know.
    pub report: MergeReport,
}

/// What a merge could not join silently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergeReport {
    /// Takes that both sides changed.
    pub takes: Vec<KeptTake>,
    /// Fields that both sides changed differently; theirs stayed.
    pub fields: Vec<String>,
}

/// A take that both sides changed: theirs keeps its place, ours became another take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptTake {
    /// The take with their changes.
    pub theirs: TakeId,
    /// Its name; `None` if they deleted it.
    pub name: Option<String>,
    /// The new take with our changes.
    pub ours: TakeId,
    /// Its name.
    pub copy: String,
}

/// Why two logs were not joined.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RebaseError<E: std::error::Error> {
    /// The log could not be read.
    #[error(transparent)]
    Log(E),
    /// Content could not be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Our log has moves of a version before takes had chains.
    #[error("the log has undone steps of an old version of this program, which cannot follow other changes")]
    OldFormat,
}

/// Puts our operations behind theirs. `log` is any log with the common operations.
pub fn rebase<L: OperationLog<Error: std::error::Error>, O: Objects>(
    log: &L,
    objects: &O,
    sides: Divergence<'_>,
) -> Result<Rebase, RebaseError<L::Error>> {
    let Divergence { common, theirs, ours } = sides;
    let (Some(their_last), Some(our_last)) = (theirs.last(), ours.last()) else {
        // Nothing diverged: ours already follow the common operation.
        return Ok(Rebase { operations: ours.to_vec(), objects: Vec::new(), report: MergeReport::default() });
    };
    let mine = BranchLog::new(log, objects, common.version, ours)?;
    let mut writer = Writer {
        log: BranchLog::new(log, objects, common.version, theirs)?,
        additions: Additions::new(objects),
        operations: Vec::new(),
        previous: id_of(their_last),
        last_file_operation: their_last.last_file_operation,
        after: their_last.after,
        time: their_last.time.max(our_last.time),
        seed: [id_of(their_last), id_of(our_last)],
    };
    writer.jump_to(common)?;
    let shift = writer.log.head() - common.version;
    for operation in ours {
        writer.republish(operation, &mine, shift)?;
    }
    let report = writer.merge(common, their_last, our_last)?;
    let Writer { operations, additions, .. } = writer;
    Ok(Rebase { operations, objects: additions.into_new(), report })
}

/// The log that grows behind theirs.
struct Writer<'rebase, L, O: Objects> {
    log: BranchLog<'rebase, L>,
    additions: Additions<'rebase, O>,
    operations: Vec<Operation>,
    previous: ContentId,
    last_file_operation: Option<Version>,
    /// The state after the last operation.
    after: ContentId,
    /// The time of the operations that the rebase adds.
    time: Timestamp,
    seed: [ContentId; 2],
}

impl<L: OperationLog<Error: std::error::Error>, O: Objects> Writer<'_, L, O> {
    /// Appends an operation whose links are set.
    fn append(&mut self, operation: Operation) -> Result<(), RebaseError<L::Error>> {
        let version = self.log.head() + 1;
        let last_file_operation = operation.files.map(|_| version).or(self.last_file_operation);
        let operation =
            Operation { version, previous: Some(self.previous), last_file_operation, ..operation };
        self.previous = id_of(&operation);
        (self.last_file_operation, self.after) = (last_file_operation, operation.after);
        self.log.append(&operation, &self.additions)?;
        self.operations.push(operation);
        Ok(())
    }

    /// The 16 bytes of an id that another run of the same rebase makes too.
    fn derived_id(&self, purpose: &[u8]) -> [u8; ID_BYTES] {
        let mut material = purpose.to_vec();
        self.seed.iter().for_each(|id| material.extend_from_slice(id.bytes()));
        let hash = ContentId::of(Kind::Blob, &material);
        let mut bytes = [0; ID_BYTES];
        let millis = self.time.millis().clamp(0, (1 << 48) - 1) as u64;
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&hash.bytes()[..ID_BYTES - 6]);
        bytes
    }

    /// An operation of the rebase itself. Its links come from the caller.
    fn own(&self, kind: OperationKind, after: ContentId, purpose: &[u8], like: &Operation) -> Operation {
        Operation {
            thread: like.thread,
            version: 0,
            previous: None,
            after,
            kind,
            turn: TurnId::from_bytes(self.derived_id(purpose)),
            actor: Actor::Sync,
            time: self.time,
            place: like.place,
            environment: None,
            files: None,
            last_file_operation: None,
            request: None,
            chains: None,
        }
    }
}

fn id_of(operation: &Operation) -> ContentId {
    ContentId::of(Operation::KIND, &encode(operation))
}
