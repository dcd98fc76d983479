//! Plain values: a thread as vectors and strings, without sharing.
//!
//! The model works on these values, and the real state is converted to them, so that the two can be compared. A digest
//! replaces a value that is too large to store.

use blake3::Hasher;
use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};

/// The hash of a plain value.
pub type Digest = [u8; 32];

/// The complete state of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainThread {
    /// Its title.
    pub title: String,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Its visibility, by name.
    pub visibility: String,
    /// Whether it is never sent to a hub.
    pub private: bool,
    /// Whether support may see it.
    pub shared_with_support: bool,
    /// Its roles.
    pub roles: Vec<String>,
    /// Its settings: names and values.
    pub settings: Vec<(String, String)>,
    /// Its takes, oldest first.
    pub takes: Vec<PlainTake>,
    /// The active take.
    pub active: TakeId,
    /// When it was archived.
    pub deleted: Option<i64>,
    /// Its source: thread, take and last shared entry.
    pub parent: Option<(ThreadId, Option<TakeId>, Option<EntryId>)>,
}

/// The complete state of a take.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainTake {
    /// Its id.
    pub id: TakeId,
    /// Its name.
    pub name: String,
    /// Its creation time.
    pub created: i64,
    /// Its entries.
    pub entries: Vec<PlainEntry>,
    /// Its draft.
    pub draft: String,
    /// The images of its draft.
    pub attached: Vec<ImageRef>,
    /// Files, context files, screenshots.
    pub files: [Vec<String>; 3],
    /// Its parent.
    pub parent: Option<TakeId>,
    /// The last entry shared with its parent.
    pub fork_point: Option<EntryId>,
    /// The last request: conversation and system prompt.
    pub sent: Option<(String, String)>,
    /// The number of its running turn.
    pub running: Option<u64>,
}

/// An entry with its content.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainEntry {
    /// Its id.
    pub id: EntryId,
    /// Its content.
    pub entry_content: EntryContent,
    digest: Digest,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryContent {
    /// Its role.
    pub role: String,
    /// Its blocks.
    pub parts: Vec<Part>,
    /// When it was created.
    pub created: i64,
    /// When its text was last edited.
    pub edited: Option<i64>,
    /// All other fields, as text.
    pub beside: String,
}

/// A block of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text, which an edit replaces.
    Text(String),
    /// A tool result, which an edit replaces if it is the only block, with its other fields.
    Answer(String, String),
    /// An image, which an edit keeps and a fork copies.
    Picture(ImageRef),
    /// Any other block, which an edit keeps.
    Kept(String),
}

/// An image: media type and id.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageRef {
    /// Its media type.
    pub media: String,
    /// The id of its content.
    pub picture: ContentId,
}

impl PlainEntry {
    /// Creates an entry with this content.
    pub fn new(id: EntryId, entry_content: EntryContent) -> Self {
        let digest = entry_content.digest();
        Self { id, entry_content, digest }
    }

    /// The hash of its content.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl EntryContent {
    /// The hash of all fields.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        text(&mut hasher, &self.role);
        for part in &self.parts {
            match part {
                Part::Text(words) => text(hasher.update(b"t"), words),
                Part::Answer(words, kept) => {
                    text(hasher.update(b"a"), words);
                    text(&mut hasher, kept);
                }
                Part::Picture(shown) => shown.digest(hasher.update(b"p")),
                Part::Kept(words) => text(hasher.update(b"k"), words),
            }
        }
        hasher.update(&self.created.to_le_bytes());
        maybe(&mut hasher, self.edited.map(|edited| (i128::from(edited)).to_le_bytes()).as_ref());
        text(&mut hasher, &self.beside);
        *hasher.finalize().as_bytes()
    }

    /// The text blocks, separated by blank lines.
    pub fn text(&self) -> String {
        let mut joined = String::new();
        let mut first = true;
        for part in &self.parts {
            if let Part::Text(words) = part {
                if !first {
                    joined.push_str("\n\n");
                }
                joined.push_str(words);
                first = false;
            }
        }
        joined
    }

    /// The images, without duplicates.
    pub fn pictures(&self) -> Vec<ImageRef> {
        let mut all: Vec<ImageRef> = Vec::new();
        for part in &self.parts {
            match part {
                Part::Picture(shown) if all.iter().all(|one| one.picture != shown.picture) => {
                    all.push(shown.clone());
                }
                _ => {}
            }
        }
        all
    }

    /// Empty content.
    pub fn nothing() -> Self {
        Self { role: String::new(), parts: Vec::new(), created: 0, edited: None, beside: String::new() }
    }

    /// Whether the user wrote it.
    pub fn is_from_user(&self) -> bool {
        matches!(self.role.to_lowercase().as_str(), "user" | "human")
    }
}

impl ImageRef {
    fn digest(&self, hasher: &mut Hasher) {
        text(hasher, &self.media);
        text(hasher, &self.picture.to_string());
    }
}

impl PlainTake {
    /// The hash of all fields.
    pub fn digest(&self) -> Digest {
        let mut entries = Vec::with_capacity(self.entries.len() * 48);
        for entry in &self.entries {
            append(&mut entries, entry.id, entry.digest);
        }
        self.digest_with(&entries)
    }

    /// The hash of the take with these [`append`]ed entries instead of its own.
    pub fn digest_with(&self, entries: &[u8]) -> Digest {
        let mut hasher = Hasher::new();
        hasher.update(self.id.bytes()).update(&self.created.to_le_bytes());
        text(&mut hasher, &self.name);
        text(&mut hasher, &self.draft);
        hasher.update(&(self.attached.len() as u64).to_le_bytes());
        for shown in &self.attached {
            shown.digest(&mut hasher);
        }
        for list in &self.files {
            texts(&mut hasher, list);
        }
        maybe(&mut hasher, self.parent.as_ref().map(TakeId::bytes));
        maybe(&mut hasher, self.fork_point.as_ref().map(EntryId::bytes));
        if let Some((markdown, prompt)) = &self.sent {
            text(hasher.update(b"sent"), markdown);
            text(&mut hasher, prompt);
        }
        if let Some(turn) = self.running {
            hasher.update(b"running").update(&turn.to_le_bytes());
        }
        hasher.update(entries);
        *hasher.finalize().as_bytes()
    }
}

/// Appends an entry to the input of a take's hash.
pub fn append(entries: &mut Vec<u8>, id: EntryId, digest: Digest) {
    entries.extend_from_slice(id.bytes());
    entries.extend_from_slice(&digest);
}

impl PlainThread {
    /// The ids of its takes.
    pub fn take_ids(&self) -> Vec<TakeId> {
        self.takes.iter().map(|take| take.id).collect()
    }

    /// The hash of all fields.
    pub fn digest(&self) -> Digest {
        let takes = self.takes.iter().map(PlainTake::digest).collect::<Vec<_>>();
        self.digest_with(&takes)
    }

    /// The hash of the thread with these takes instead of its own.
    pub fn digest_with(&self, takes: &[Digest]) -> Digest {
        let mut hasher = Hasher::new();
        text(&mut hasher, &self.title);
        texts(&mut hasher, &self.tags);
        texts(&mut hasher, &self.roles);
        text(&mut hasher, &self.visibility);
        let flags = [self.pinned, self.private, self.shared_with_support, self.deleted.is_some()];
        hasher.update(&flags.map(u8::from));
        hasher.update(&self.deleted.unwrap_or_default().to_le_bytes());
        if let Some((thread, take, entry)) = &self.parent {
            hasher.update(thread.bytes());
            maybe(&mut hasher, take.as_ref().map(TakeId::bytes));
            maybe(&mut hasher, entry.as_ref().map(EntryId::bytes));
        }
        for (name, value) in &self.settings {
            text(&mut hasher, name);
            text(&mut hasher, value);
        }
        hasher.update(self.active.bytes());
        for take in takes {
            hasher.update(take);
        }
        *hasher.finalize().as_bytes()
    }

    /// The visibility of a thread that starts with this state.
    pub fn marks(&self) -> (String, bool, bool) {
        (self.visibility.clone(), self.private, self.shared_with_support)
    }

    /// Finds a take.
    pub fn take(&self, id: TakeId) -> Option<&PlainTake> {
        self.takes.iter().find(|take| take.id == id)
    }

    /// Describes the first difference.
    pub fn difference(&self, other: &Self) -> Option<String> {
        for (ours, theirs) in self.takes.iter().zip(&other.takes) {
            for (place, (left, right)) in ours.entries.iter().zip(&theirs.entries).enumerate() {
                if left != right {
                    return Some(format!("take {}, entry {place}: {left:?} is not {right:?}", ours.name));
                }
            }
            if ours.entries.len() != theirs.entries.len() {
                let (left, right) = (ours.entries.len(), theirs.entries.len());
                return Some(format!("take {}: {left} entries are not {right}", ours.name));
            }
            if ours != theirs {
                let bare = |take: &PlainTake| PlainTake { entries: Vec::new(), ..take.clone() };
                return Some(format!("{:?} is not {:?}", bare(ours), bare(theirs)));
            }
        }
        let bare = |picture: &Self| Self { takes: Vec::new(), ..picture.clone() };
        let names = |picture: &Self| picture.takes.iter().map(|take| take.name.clone()).collect::<Vec<_>>();
        (self != other).then(|| {
            format!(
                "{:?} with {:?} is not {:?} with {:?}",
                bare(self),
                names(self),
                bare(other),
                names(other)
            )
        })
    }
}

/// Length first, so that no two lists hash alike.
fn text(hasher: &mut Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn texts(hasher: &mut Hasher, texts: &[String]) {
    hasher.update(&(texts.len() as u64).to_le_bytes());
    for each in texts {
        text(hasher, each);
    }
}

fn maybe(hasher: &mut Hasher, bytes: Option<&[u8; 16]>) {
    match bytes {
        Some(bytes) => hasher.update(b"1").update(bytes),
        None => hasher.update(b"0"),
    };
}
