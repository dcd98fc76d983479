//! A remote that only stores objects under names: a folder, or a bucket.
//!
//! ```text
//!   retake-remote.json                        {"format":1}
//!   threads/<thread>/bundles/<hash>           immutable, named by its bytes
//!   threads/<thread>/heads/000…001            the list of bundles: one small object each
//!   threads/<thread>/marks/purged             nothing of this thread may be here
//!   threads/<thread>/marks/redacted-<hash>    content that may not be here
//!   files/<project>/packs/<hash>, heads/…     the list of packs of a project, if it opted in
//!   moved/<thread>-<number>                   which bundle a thread has or gets: for those who look for news
//!   notices/000…001                           purged and redacted threads, in order
//! ```
//!
//! The only order is the creation of the next head, which fails if it exists: one of several writers wins. The bundle is
//! durable before its head. What a crash leaves is a bundle without a head, or the promise of one in `moved`, and both
//! are harmless.
//!
//! A purge and a redaction write their mark before they remove anything, and a push looks for marks after its head
//! is there. Whichever is later removes what may not stay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    Feed, FeedEvent, PackHead, ProjectName, PushOutcome, Remote, RemoteError, RemoteHead, RemoteThread, Seen,
};
use crate::bundle::{self, BundleId, MAX_UNPACKED};
use crate::config::AddressError;

const FORMAT: u64 = 1;
const FORMAT_KEY: &str = "retake-remote.json";
/// The most bytes of an object that is not a bundle.
const SMALL: u64 = 1 << 20;

/// Objects under names. Parts of a name are separated by `/`.
pub trait ObjectSpace: Send + Sync {
    /// Where it is, for messages.
    fn place(&self) -> String;
    /// An object; an error if it has more than `most` bytes.
    fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, RemoteError>;
    /// Writes or replaces an object, durably.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RemoteError>;
    /// Writes an object, durably; false if one has this name. Of several writers, one gets true.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, RemoteError>;
    /// The next parts of the names that begin with these parts, in order.
    fn list(&self, parts: &str) -> Result<Vec<String>, RemoteError>;
    /// Removes an object, if it exists.
    fn remove(&self, name: &str) -> Result<(), RemoteError>;
    /// How often to look for news.
    fn pause(&self) -> Duration;
}

/// Why a place is not a remote.
#[derive(Debug, thiserror::Error)]
pub enum OpenRemoteError {
    /// Nothing is there.
    #[error("{0} has no remote (any more); if it is a folder, check that it is mounted")]
    Missing(String),
    /// The place has other objects.
    #[error("{0} is not empty and is no remote; name an empty place")]
    NotEmpty(String),
    /// Two pushes can both succeed, and one overwrites the other.
    #[error("{0} lets several writers create the same object, so it cannot order what machines send")]
    Unordered(String),
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// It could not be used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

#[derive(Serialize, Deserialize)]
struct Format {
    format: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Notice {
    Purged(ThreadId),
    Redacted(ThreadId),
}

#[derive(Default)]
struct Marks {
    purged: bool,
    redacted: BTreeSet<ContentId>,
}

/// A remote of objects under names.
#[derive(Clone, Debug)]
pub struct ObjectRemote<S> {
    space: S,
}

impl<S: ObjectSpace> ObjectRemote<S> {
    /// Opens a remote. A place without one is an error: a folder that is not mounted now must not get everything again.
    pub fn open(space: S) -> Result<Self, OpenRemoteError> {
        let remote = Self { space };
        if remote.is_initialized()? {
            Ok(remote)
        } else {
            Err(OpenRemoteError::Missing(remote.space.place()))
        }
    }

    fn is_initialized(&self) -> Result<bool, RemoteError> {
        match self.read::<Format>(FORMAT_KEY)? {
            Some(found) if found.format > FORMAT => Err(RemoteError::Newer { found: found.format }),
            found => Ok(found.is_some()),
        }
    }

    /// Opens a remote, and makes an empty place one.
    pub fn open_or_create(space: S) -> Result<Self, OpenRemoteError> {
        let remote = Self { space };
        if !remote.is_initialized()? {
            // A place with threads has lost its mark, or is a copy in progress.
            if remote.space.list("")?.iter().any(|name| !name.starts_with('.')) {
                return Err(OpenRemoteError::NotEmpty(remote.space.place()));
            }
            // Whoever is first: now it exists.
            remote.space.create(FORMAT_KEY, &encode(&Format { format: FORMAT }))?;
        }
        remote.check_order()?;
        Ok(remote)
    }

    /// Tries whether of several writers exactly one creates an object.
    fn check_order(&self) -> Result<(), OpenRemoteError> {
        let unordered = || OpenRemoteError::Unordered(self.space.place());
        for round in 0..3 {
            let name = format!("trials/{:?}-{}-{round}", std::time::SystemTime::now(), std::process::id());
            let name = name.replace([' ', '{', '}', ':', ','], "");
            let created: Vec<Result<bool, RemoteError>> = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..8_u8)
                    .map(|writer| {
                        let name = &name;
                        scope.spawn(move || self.space.create(name, &[writer]))
                    })
                    .collect();
                writers.into_iter().map(|writer| writer.join().expect("writers do not panic")).collect()
            });
            let created: Vec<bool> = created.into_iter().collect::<Result<_, _>>()?;
            let again = self.space.create(&name, b"")?;
            self.space.remove(&name)?;
            if again || created.iter().filter(|created| **created).count() != 1 {
                return Err(unordered());
            }
        }
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RemoteError> {
        let Some(bytes) = self.space.get(name, SMALL)? else { return Ok(None) };
        let damaged = |error| RemoteError::Damaged(format!("{name} in {}: {error}", self.space.place()));
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    fn head(&self, thread: ThreadId, number: u64) -> Result<Option<RemoteHead>, RemoteError> {
        let name = head_name(thread, number);
        let Some(head) = self.read::<RemoteHead>(&name)? else { return Ok(None) };
        if head.number != number || head.first == 0 || head.first > head.last {
            return Err(RemoteError::Damaged(format!("{name} contradicts itself")));
        }
        Ok(Some(head))
    }

    fn bytes(&self, name: &str, id: BundleId) -> Result<Vec<u8>, RemoteError> {
        let bytes = self.space.get(name, MAX_UNPACKED)?;
        let bytes = bytes.ok_or_else(|| RemoteError::Damaged(format!("{name} is missing")))?;
        if BundleId::of(&bytes) != id {
            return Err(RemoteError::Damaged(format!("{name} does not have the content of its name")));
        }
        Ok(bytes)
    }

    fn marks(&self, thread: ThreadId) -> Result<Marks, RemoteError> {
        let mut marks = Marks::default();
        for name in self.space.list(&format!("threads/{thread}/marks"))? {
            if name == "purged" {
                marks.purged = true;
            } else if name.starts_with("redacted-") {
                let content: Option<Vec<String>> = self.read(&format!("threads/{thread}/marks/{name}"))?;
                let ids = content.unwrap_or_default();
                marks.redacted.extend(ids.iter().filter_map(|id| id.parse::<ContentId>().ok()));
            }
        }
        Ok(marks)
    }

    fn notify(&self, notice: Notice) -> Result<(), RemoteError> {
        let last = self.space.list("notices")?.last().and_then(|name| name.parse::<u64>().ok());
        for number in last.unwrap_or(0) + 1.. {
            if self.space.create(&format!("notices/{number:020}"), &encode(&notice))? {
                break;
            }
        }
        Ok(())
    }

    /// Removes what a purged thread still has here. Files with other names are not ours.
    fn sweep(&self, thread: ThreadId) -> Result<(), RemoteError> {
        for name in self.space.list(&format!("threads/{thread}/heads"))? {
            if is_number(&name) {
                self.space.remove(&format!("threads/{thread}/heads/{name}"))?;
            }
        }
        for name in self.space.list(&format!("threads/{thread}/bundles"))? {
            if is_bundle(&name) {
                self.space.remove(&format!("threads/{thread}/bundles/{name}"))?;
            }
        }
        let prefix = format!("{thread}-");
        for name in self.space.list("moved")? {
            if name.strip_prefix(&prefix).is_some_and(is_number) {
                self.space.remove(&format!("moved/{name}"))?;
            }
        }
        Ok(())
    }

    /// Removes redacted content from all bundles, until none has any.
    fn rewrite(&self, thread: ThreadId) -> Result<(), RemoteError> {
        loop {
            let content = self.marks(thread)?.redacted;
            let mut changed = false;
            for number in 1.. {
                let Some(head) = self.head(thread, number)? else { break };
                let bytes = self.bytes(&bundle_name(thread, head.bundle), head.bundle)?;
                let rewritten = bundle::redacted(&bytes, &content)
                    .map_err(|error| RemoteError::Damaged(format!("bundle {}: {error}", head.bundle)))?;
                let Some(bytes) = rewritten else { continue };
                let (id, old) = (BundleId::of(&bytes), head.bundle);
                self.space.put(&bundle_name(thread, id), &bytes)?;
                let head = RemoteHead { bundle: id, bytes: bytes.len() as u64, ..head };
                self.space.put(&head_name(thread, number), &encode(&head))?;
                self.space.remove(&bundle_name(thread, old))?;
                changed = true;
            }
            if !changed {
                return Ok(());
            }
        }
    }

    fn news(&self, seen: &Seen) -> Result<Feed, RemoteError> {
        let mut moved: BTreeMap<ThreadId, u64> = BTreeMap::new();
        for name in self.space.list("moved")? {
            let Some((thread, number)) = name.split_once('-') else { continue };
            let (Ok(thread), Ok(number)) = (thread.parse::<ThreadId>(), number.parse::<u64>()) else {
                continue;
            };
            let newest = moved.entry(thread).or_default();
            *newest = number.max(*newest);
        }
        let known = |thread: &ThreadId| seen.heads.get(thread).copied().unwrap_or(0);
        moved.retain(|thread, number| *number > known(thread));
        let mut events: Vec<FeedEvent> = moved.into_keys().map(FeedEvent::Moved).collect();
        let after: u64 = seen.cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let mut last = after;
        for name in self.space.list("notices")? {
            let Some(number) = name.parse().ok().filter(|number| *number > after) else { continue };
            last = last.max(number);
            match self.read(&format!("notices/{name}"))? {
                Some(Notice::Purged(thread)) => events.push(FeedEvent::Purged(thread)),
                Some(Notice::Redacted(thread)) => events.push(FeedEvent::Redacted(thread)),
                None => {}
            }
        }
        Ok(Feed { cursor: Some(last.to_string()), events })
    }
}

impl<S: ObjectSpace> Remote for ObjectRemote<S> {
    fn place(&self) -> String {
        self.space.place()
    }

    fn threads(&self) -> Result<Vec<RemoteThread>, RemoteError> {
        let mut threads = Vec::new();
        for name in self.space.list("threads")? {
            let Ok(thread) = name.parse::<ThreadId>() else { continue };
            let heads = self.space.list(&format!("threads/{thread}/heads"))?;
            let Some(number) = heads.last().and_then(|name| name.parse().ok()) else { continue };
            threads.extend(self.head(thread, number)?.map(|head| RemoteThread { thread, head }));
        }
        Ok(threads)
    }

    fn heads(&self, thread: ThreadId, after: u64) -> Result<Vec<RemoteHead>, RemoteError> {
        let mut heads: Vec<RemoteHead> = Vec::new();
        for number in after + 1.. {
            let Some(head) = self.head(thread, number)? else { break };
            if heads.last().is_some_and(|last| last.last + 1 != head.first) {
                return Err(RemoteError::Damaged(format!("bundle {number} of thread {thread} leaves a gap")));
            }
            heads.push(head);
        }
        if heads.is_empty() && self.marks(thread)?.purged {
            self.sweep(thread)?;
            return Err(RemoteError::Purged);
        }
        Ok(heads)
    }

    fn bundle(&self, thread: ThreadId, head: &RemoteHead) -> Result<Vec<u8>, RemoteError> {
        self.bytes(&bundle_name(thread, head.bundle), head.bundle)
    }

    fn push(&self, thread: ThreadId, head: &RemoteHead, bundle: &[u8]) -> Result<PushOutcome, RemoteError> {
        // A head may only follow one that exists, also in a place that was restored from an older copy.
        if head.number > 1 && self.head(thread, head.number - 1)?.is_none() {
            return Ok(PushOutcome::Moved);
        }
        self.space.put(&bundle_name(thread, head.bundle), bundle)?;
        self.space.put(&moved_name(thread, head.number), b"")?;
        let added = self.space.create(&head_name(thread, head.number), &encode(head))?;
        let marks = self.marks(thread)?;
        if marks.purged {
            self.sweep(thread)?;
            return Err(RemoteError::Purged);
        }
        if !added {
            return Ok(PushOutcome::Moved);
        }
        if !marks.redacted.is_empty() {
            self.rewrite(thread)?;
        }
        if head.number > 1 {
            self.space.remove(&moved_name(thread, head.number - 1))?;
        }
        Ok(PushOutcome::Added)
    }

    fn feed(&self, seen: &Seen, wait: Duration) -> Result<Feed, RemoteError> {
        let began = Instant::now();
        loop {
            let feed = self.news(seen)?;
            let left = wait.saturating_sub(began.elapsed());
            if !feed.events.is_empty() || left.is_zero() {
                return Ok(feed);
            }
            std::thread::sleep(self.space.pause().min(left));
        }
    }

    fn purge(&self, thread: ThreadId) -> Result<(), RemoteError> {
        self.space.put(&format!("threads/{thread}/marks/purged"), b"")?;
        self.sweep(thread)?;
        self.notify(Notice::Purged(thread))
    }

    fn redact(&self, thread: ThreadId, content: &[ContentId]) -> Result<(), RemoteError> {
        let names: BTreeSet<String> = content.iter().map(ToString::to_string).collect();
        let text = encode(&names);
        let mark = format!("threads/{thread}/marks/redacted-{}", BundleId::of(&text));
        self.space.put(&mark, &text)?;
        self.rewrite(thread)?;
        self.notify(Notice::Redacted(thread))
    }

    fn redactions(&self, thread: ThreadId) -> Result<Vec<ContentId>, RemoteError> {
        Ok(self.marks(thread)?.redacted.into_iter().collect())
    }

    fn packs(&self, project: ProjectName, after: u64) -> Result<Vec<PackHead>, RemoteError> {
        let mut heads = Vec::new();
        for number in after + 1.. {
            let Some(head) = self.read::<PackHead>(&pack_head_name(project, number))? else { break };
            heads.push(head);
        }
        Ok(heads)
    }

    fn pack(&self, project: ProjectName, head: &PackHead) -> Result<Vec<u8>, RemoteError> {
        self.bytes(&pack_name(project, head.pack), head.pack)
    }

    fn push_pack(
        &self,
        project: ProjectName,
        head: &PackHead,
        pack: &[u8],
    ) -> Result<PushOutcome, RemoteError> {
        if head.number > 1 && self.read::<PackHead>(&pack_head_name(project, head.number - 1))?.is_none() {
            return Ok(PushOutcome::Moved);
        }
        self.space.put(&pack_name(project, head.pack), pack)?;
        let added = self.space.create(&pack_head_name(project, head.number), &encode(head))?;
        Ok(if added { PushOutcome::Added } else { PushOutcome::Moved })
    }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("these types have no maps with other keys than texts")
}

/// Whether a name is a position, as heads have it.
fn is_number(name: &str) -> bool {
    name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name is that of a bundle.
fn is_bundle(name: &str) -> bool {
    name.len() == 64 && name.parse::<BundleId>().is_ok()
}

fn head_name(thread: ThreadId, number: u64) -> String {
    format!("threads/{thread}/heads/{number:020}")
}

fn bundle_name(thread: ThreadId, id: BundleId) -> String {
    format!("threads/{thread}/bundles/{id}")
}

fn moved_name(thread: ThreadId, number: u64) -> String {
    format!("moved/{thread}-{number:020}")
}

fn pack_head_name(project: ProjectName, number: u64) -> String {
    format!("files/{project}/heads/{number:020}")
}

fn pack_name(project: ProjectName, id: BundleId) -> String {
    format!("files/{project}/packs/{id}")
}
