//! Takes over operations of another machine, all of them or none.
//!
//! They are untrusted, like an import: every object is hashed, decoded and checked, every reference must be to content
//! of the same thread, every state must be reachable by commands, and every operation must follow the one before it by
//! the rules of history. Where both machines changed the thread, ours follow theirs ([`retake_model::rebase`]).
//!
//! Files stay as they are. A thread in which something runs is left alone ([`PauseReason`]).

use std::collections::HashSet;

use retake_model::check::{self, FileChecker, InvalidContentError, StateChecker};
use retake_model::content::{ContentId, Kind, decode};
use retake_model::id::{ProjectId, ThreadId};
use retake_model::object::{MemoryObjects, NewObject, ObjectError, Objects};
use retake_model::operation::{Operation, Version};
use retake_model::rebase::{Divergence, MergeReport, Rebase, RebaseError, rebase};
use retake_model::reference::{Reference, references};
use retake_model::replica::{ReplicaOperation, without_files};
use retake_model::time::Timestamp;
use retake_store::runtime::TurnLeases;
use retake_store::{Publication, PublishError, StoreError, ThreadHead, WriteError, WriteTransaction};
use serde::{Deserialize, Serialize};

use super::import::can_be_redacted;
use super::import::operations::{LinkError, check_links, ends};
use super::replica::ReplicaPoint;
use crate::write::change::{Head, check_no_turn};
use crate::{ChangeError, Timeline};

/// What became of the operations of another machine. It is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// The thread continues with their operations.
    Advanced,
    /// Both machines had changed the thread: ours follow theirs.
    Merged(MergeReport),
    /// Nothing was changed yet.
    Paused(PauseReason),
    /// The log here changed in the meantime; read it again.
    Moved,
}

/// Why a thread is left as it is for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A turn or a command runs in it.
    Running,
    /// A move of its files is not finished.
    PendingMove,
    /// One of its takes has a worktree.
    Worktree,
}

/// Why operations of another machine were refused. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// They are damaged or forged.
    #[error("operation {version} from the remote is invalid: {reason}")]
    Invalid {
        /// Its version.
        version: Version,
        /// The reason.
        reason: String,
    },
    /// The two logs cannot be joined.
    #[error("{0}")]
    Rebase(#[from] RebaseError<StoreError>),
    /// The thread could not be read.
    #[error("{0}")]
    Change(Box<ChangeError>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteError<AdoptError>> for AdoptError {
    fn from(error: WriteError<AdoptError>) -> Self {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ObjectError> for AdoptError {
    fn from(error: ObjectError) -> Self {
        Self::Store(error.into())
    }
}

impl Timeline {
    /// Takes over the operations that follow a common point. A thread that is new here is listed in `project`.
    pub fn adopt_operations(
        &self,
        thread: ThreadId,
        project: ProjectId,
        common: ReplicaPoint,
        theirs: Vec<ReplicaOperation>,
    ) -> Result<Adoption, AdoptError> {
        let (now, leases) = (self.clock.now(), self.store.turn_leases());
        Ok(self.store.write(move |writing| -> Result<Adoption, AdoptError> {
            let head = writing.thread_head(thread)?;
            let incoming = Incoming {
                writing,
                thread,
                project,
                now,
                present: HashSet::new(),
                known: None,
                waiting: MemoryObjects::default(),
                accepted: StateChecker::default(),
                measures: FileChecker::default(),
            };
            incoming.adopt(head, common, theirs, &leases)
        })?)
    }
}

struct Incoming<'writing, 'transaction> {
    writing: &'writing WriteTransaction<'transaction>,
    thread: ThreadId,
    project: ProjectId,
    now: Timestamp,
    /// Objects that came with these operations.
    present: HashSet<Reference>,
    /// Objects of the thread before them, once they are needed.
    known: Option<HashSet<Reference>>,
    waiting: MemoryObjects,
    accepted: StateChecker,
    measures: FileChecker,
}

/// Objects that have arrived, on top of the stored ones.
struct Arriving<'incoming> {
    waiting: &'incoming MemoryObjects,
    stored: &'incoming retake_store::Queries<'incoming>,
}

impl Objects for Arriving<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<std::sync::Arc<[u8]>, ObjectError> {
        self.waiting.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id))
    }
}

impl Incoming<'_, '_> {
    fn adopt(
        mut self,
        head: Option<ThreadHead>,
        common: ReplicaPoint,
        theirs: Vec<ReplicaOperation>,
        leases: &TurnLeases,
    ) -> Result<Adoption, AdoptError> {
        let Some(head) = head else {
            if common != ReplicaPoint::default() {
                return Ok(Adoption::Moved);
            }
            self.publish_all(theirs, common)?;
            return Ok(Adoption::Advanced);
        };
        let at_common = self.writing.operation(head.row.number, common.version)?;
        if common.version == 0 || at_common.as_ref().map(|found| found.id) != common.local {
            return Ok(Adoption::Moved);
        }
        if let Some(reason) = self.pause_reason(leases)? {
            return Ok(Adoption::Paused(reason));
        }
        let sharing = head.row.summary.sharing();
        let adopted = if head.row.summary.version == common.version {
            self.publish_all(theirs, common)?;
            Adoption::Advanced
        } else {
            let common_operation = at_common.map(|found| found.operation);
            self.merge(&head, (common, common_operation), theirs)?
        };
        // The sharing of a thread is decided on this machine.
        if let Some(row) = self.writing.thread(self.thread)?
            && row.summary.sharing() != sharing
        {
            self.writing.put_sharing(&row, sharing)?;
        }
        Ok(adopted)
    }

    fn merge(
        &mut self,
        head: &ThreadHead,
        (common, operation): (ReplicaPoint, Option<Operation>),
        theirs: Vec<ReplicaOperation>,
    ) -> Result<Adoption, AdoptError> {
        let number = head.row.number;
        let missing = |version| StoreError::Damaged(format!("operation {version} is missing"));
        let operation = operation.ok_or_else(|| missing(common.version))?;
        let mut ours = Vec::new();
        for version in common.version + 1..=head.row.summary.version {
            let found = self.writing.operation(number, version)?.ok_or_else(|| missing(version))?;
            ours.push(found.operation);
        }
        let writing = self.writing;
        writing.replace_end(head, common.version, || -> Result<Adoption, AdoptError> {
            let theirs = self.publish_all(theirs, common)?;
            let sides = Divergence { common: &operation, theirs: &theirs, ours: &ours };
            let Rebase { operations, objects, report } = rebase(&writing.log(number), &**writing, sides)?;
            writing.put_contents(&objects, self.now)?;
            for operation in operations {
                self.publish(operation, Vec::new())?;
            }
            Ok(Adoption::Merged(report))
        })
    }

    fn pause_reason(&self, leases: &TurnLeases) -> Result<Option<PauseReason>, AdoptError> {
        if self.writing.intent_for_thread(self.thread)?.is_some() {
            return Ok(Some(PauseReason::PendingMove));
        }
        let at = match Head::any_version(self.writing, self.thread) {
            Ok(at) => at,
            Err(error) => return Err(AdoptError::Change(Box::new(error))),
        };
        match check_no_turn(self.writing, &at, leases, None) {
            Ok(()) => {}
            Err(ChangeError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(Some(PauseReason::Running)),
        }
        let folders = self.writing.folders()?;
        let mut worktrees = folders.iter().filter_map(|folder| folder.worktree);
        Ok(worktrees.any(|worktree| worktree.thread == self.thread).then_some(PauseReason::Worktree))
    }

    /// Publishes their operations, and returns them as they are in the log here.
    fn publish_all(
        &mut self,
        theirs: Vec<ReplicaOperation>,
        common: ReplicaPoint,
    ) -> Result<Vec<Operation>, AdoptError> {
        let (mut at, mut published) = (common, Vec::new());
        for incoming in theirs {
            let version = at.version + 1;
            let operation = self.check(&incoming, at).map_err(|error| error.of(version))?;
            let mut objects = Vec::new();
            for object in incoming.objects {
                if !can_be_redacted(object.kind) || !self.writing.is_redacted(object.id)? {
                    objects.push(object);
                }
            }
            let (_, id) = without_files(&operation, at.id);
            let last = self.writing.thread(self.thread)?.map(|row| self.writing.head(row.number));
            let last = last.transpose()?.flatten();
            let operation = Operation {
                previous: last.as_ref().map(|last| last.id),
                last_file_operation: last.and_then(|last| last.operation.last_file_operation),
                ..operation
            };
            self.publish(operation.clone(), objects)?;
            self.waiting = MemoryObjects::default();
            published.push(operation);
            at = ReplicaPoint { version, id: Some(id), local: None };
        }
        Ok(published)
    }

    fn publish(&self, operation: Operation, objects: Vec<NewObject>) -> Result<(), AdoptError> {
        let version = operation.version;
        let row = self.writing.thread(self.thread)?.map(|row| row.number);
        check_links(self.writing, row, &operation).map_err(|error| match error {
            LinkError::Store(error) => AdoptError::Store(error),
            LinkError::Invalid(reason) => AdoptError::Invalid { version, reason: reason.to_owned() },
        })?;
        let published = self.writing.publish_in(Publication { operation, objects }, Some(self.project));
        match published {
            Ok(_) => Ok(()),
            Err(PublishError::Store(error)) => Err(error.into()),
            Err(other) => Err(AdoptError::Invalid { version, reason: other.to_string() }),
        }
    }

    fn check(&mut self, incoming: &ReplicaOperation, at: ReplicaPoint) -> Result<Operation, Refusal> {
        let redacted: HashSet<Reference> = incoming.redacted.iter().copied().collect();
        for object in &incoming.objects {
            self.object(object, &redacted)?;
        }
        let operation: Operation = decode(&incoming.operation).map_err(|error| error.to_string())?;
        for reference in
            references(Kind::Operation, &incoming.operation).map_err(|error| error.to_string())?
        {
            self.need(reference, &redacted)?;
        }
        check::operation(&operation)?;
        if operation.thread != self.thread
            || operation.version != at.version + 1
            || operation.previous != at.id
        {
            return Err("it does not follow the previous one".to_owned().into());
        }
        if operation.files.is_some() || operation.last_file_operation.is_some() {
            return Err("it names files, which stay on their machine".to_owned().into());
        }
        if ends(&operation.kind)
            .is_some_and(|ends| ends.iter().any(|end| !(1..operation.version).contains(end)))
        {
            return Err("it moves between versions that do not exist".to_owned().into());
        }
        let arriving = Arriving { waiting: &self.waiting, stored: self.writing };
        self.accepted.state(&arriving, operation.after)?;
        Ok(operation)
    }

    fn object(&mut self, object: &NewObject, redacted: &HashSet<Reference>) -> Result<(), Refusal> {
        let NewObject { id, kind, bytes } = object;
        if matches!(kind, Kind::Sealed | Kind::Operation) || ContentId::of(*kind, bytes) != *id {
            return Err("it has content that does not match its name".to_owned().into());
        }
        for reference in references(*kind, bytes).map_err(|error| error.to_string())? {
            self.need(reference, redacted)?;
        }
        check::content(*kind, bytes)?;
        self.measures.content(*kind, *id, bytes)?;
        self.present.insert((*kind, *id));
        self.waiting.insert_all([object.clone()]);
        Ok(())
    }

    /// Content that an operation needs comes with it, or belongs to the same thread. A hash alone must not bring content
    /// of another thread into this one.
    fn need(&mut self, reference: Reference, redacted: &HashSet<Reference>) -> Result<(), Refusal> {
        if self.present.contains(&reference) {
            return Ok(());
        }
        let (kind, id) = reference;
        if redacted.contains(&reference) && can_be_redacted(kind) {
            if !self.writing.contains(kind, id)? {
                self.writing.put_redaction(kind, id, self.now)?;
            }
            self.present.insert(reference);
            return Ok(());
        }
        if self.known.is_none() {
            self.known = Some(self.content_of_thread()?);
        }
        match &self.known {
            Some(known) if known.contains(&reference) => Ok(()),
            _ => Err("it refers to content that is not part of it".to_owned().into()),
        }
    }

    /// Everything that the log of the thread refers to.
    fn content_of_thread(&self) -> Result<HashSet<Reference>, Refusal> {
        let mut known = HashSet::new();
        let Some(row) = self.writing.thread(self.thread)? else { return Ok(known) };
        for version in 1..=row.summary.version {
            let Some(found) = self.writing.operation(row.number, version)? else { continue };
            let (bytes, _) = without_files(&found.operation, None);
            let mut open = references(Kind::Operation, &bytes).unwrap_or_default();
            while let Some((kind, id)) = open.pop() {
                if known.insert((kind, id))
                    && let Ok(bytes) = self.writing.bytes(kind, id)
                {
                    open.extend(references(kind, &bytes).unwrap_or_default());
                }
            }
        }
        Ok(known)
    }
}

/// Why an operation was refused.
enum Refusal {
    Invalid(String),
    Store(StoreError),
}

impl Refusal {
    fn of(self, version: Version) -> AdoptError {
        match self {
            Self::Invalid(reason) => AdoptError::Invalid { version, reason },
            Self::Store(error) => AdoptError::Store(error),
        }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

impl From<InvalidContentError> for Refusal {
    fn from(error: InvalidContentError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
