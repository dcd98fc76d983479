//! Pictures: a thread as plain vectors and strings, with nothing shared and nothing clever.
//!
//! The naive model works on pictures, and what the real store holds is turned into pictures too; so the two
//! can be compared. A picture's digest stands for it where the whole is too much to keep.

use blake3::Hasher;
use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};

/// The hash of a picture.
pub type Digest = [u8; 32];

/// Everything that a thread is.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPicture {
    /// Its title.
    pub title: String,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Who may see it, by name.
    pub visibility: String,
    /// Whether it stays on this machine.
    pub private: bool,
    /// Whether support may see it.
    pub shared_with_support: bool,
    /// Its roles.
    pub roles: Vec<String>,
    /// Its settings: names and values.
    pub settings: Vec<(String, String)>,
    /// Its takes, oldest first.
    pub takes: Vec<TakePicture>,
    /// The take that is being worked on.
    pub active: TakeId,
    /// When it was put away.
    pub deleted: Option<i64>,
    /// Where it came from: thread, take, last shared entry.
    pub parent: Option<(ThreadId, Option<TakeId>, Option<EntryId>)>,
}

/// Everything that a take is.
#[derive(Clone, Debug, PartialEq)]
pub struct TakePicture {
    /// Its identity.
    pub id: TakeId,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: i64,
    /// Its entries.
    pub entries: Vec<EntryPicture>,
    /// Its draft.
    pub draft: String,
    /// The pictures that go along with it.
    pub attached: Vec<Shown>,
    /// Files, context files, screenshots.
    pub files: [Vec<String>; 3],
    /// The take it came from.
    pub parent: Option<TakeId>,
    /// The last entry that both share.
    pub fork_point: Option<EntryId>,
    /// What was last sent: conversation and system prompt.
    pub sent: Option<(String, String)>,
    /// The number of the turn that runs in it.
    pub running: Option<u64>,
}

/// An entry: who it is, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPicture {
    /// Its identity.
    pub id: EntryId,
    /// What it says.
    pub said: Said,
    digest: Digest,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Who says it.
    pub role: String,
    /// In which parts.
    pub parts: Vec<Part>,
    /// When it was first said.
    pub created: i64,
    /// When its text was last changed.
    pub edited: Option<i64>,
    /// Everything else, as text.
    pub beside: String,
}

/// A part of what an entry says.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text, which an edit replaces.
    Text(String),
    /// What a tool answered, which an edit replaces where it is all there is; and what else is known of it.
    Answer(String, String),
    /// A picture, which an edit leaves alone, and a fork takes along.
    Picture(Shown),
    /// Anything else, which an edit leaves alone.
    Kept(String),
}

/// A picture: its kind, and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Its media type.
    pub media: String,
    /// The name of its bytes.
    pub picture: ContentId,
}

impl EntryPicture {
    /// An entry that says that.
    pub fn new(id: EntryId, said: Said) -> Self {
        let digest = said.digest();
        Self { id, said, digest }
    }

    /// The hash of what it says.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Said {
    /// The hash of all of it.
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

    /// The text parts, a blank line between them.
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

    /// The pictures, each once.
    pub fn pictures(&self) -> Vec<Shown> {
        let mut all: Vec<Shown> = Vec::new();
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

    /// Nothing at all.
    pub fn nothing() -> Self {
        Self { role: String::new(), parts: Vec::new(), created: 0, edited: None, beside: String::new() }
    }

    /// Whether a person says it.
    pub fn is_from_user(&self) -> bool {
        matches!(self.role.to_lowercase().as_str(), "user" | "human")
    }
}

impl Shown {
    fn digest(&self, hasher: &mut Hasher) {
        text(hasher, &self.media);
        text(hasher, &self.picture.to_string());
    }
}

impl TakePicture {
    /// The hash of all of it.
    pub fn digest(&self) -> Digest {
        let mut entries = Vec::with_capacity(self.entries.len() * 48);
        for entry in &self.entries {
            append(&mut entries, entry.id, entry.digest);
        }
        self.digest_with(&entries)
    }

    /// The hash of the take with these entries, one [`append`]ed to the other, in the place of its own.
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

/// An entry as it goes into the hash of a take.
pub fn append(entries: &mut Vec<u8>, id: EntryId, digest: Digest) {
    entries.extend_from_slice(id.bytes());
    entries.extend_from_slice(&digest);
}

impl ThreadPicture {
    /// Its takes, by identity.
    pub fn take_ids(&self) -> Vec<TakeId> {
        self.takes.iter().map(|take| take.id).collect()
    }

    /// The hash of all of it.
    pub fn digest(&self) -> Digest {
        let takes = self.takes.iter().map(TakePicture::digest).collect::<Vec<_>>();
        self.digest_with(&takes)
    }

    /// The hash of the thread with these takes in the place of its own.
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

    /// Who may see a thread that begins so.
    pub fn marks(&self) -> (String, bool, bool) {
        (self.visibility.clone(), self.private, self.shared_with_support)
    }

    /// One of its takes.
    pub fn take(&self, id: TakeId) -> Option<&TakePicture> {
        self.takes.iter().find(|take| take.id == id)
    }

    /// The first difference between two pictures, in words.
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
                let bare = |take: &TakePicture| TakePicture { entries: Vec::new(), ..take.clone() };
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

/// Length first, so that no two rows of texts hash alike.
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
