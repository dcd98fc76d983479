//! Resolves threads, takes and entries from user input: a name, or the prefix of an id.

use retake_model::id::{EntryId, ProjectId, ThreadId};
use retake_model::take::Take;
use retake_store::{StoreError, TakeRow, ThreadRow};

use crate::{ReadError, Reader};

/// Minimum length of an id prefix.
pub const SHORTEST_PREFIX: usize = 4;
/// Number of candidates to list in an error.
const MAX_NAMED: usize = 5;

/// A resolved thread.
#[derive(Clone, Debug)]
pub struct ThreadMatch {
    /// The thread.
    pub thread: ThreadRow,
    /// The take, if one was named.
    pub take: Option<TakeRow>,
}

/// Why a text does not identify exactly one object.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No thread matches.
    #[error("no thread is named {text:?}, and {hint}; `retake thread list` shows all threads", text = .0, hint = id_hint(.0))]
    NoThread(String),
    /// No take matches.
    #[error("no take of {thread:?} is named {text:?}, and {hint}; `retake tree` shows all takes", hint = id_hint(text))]
    NoTake {
        /// The thread's title.
        thread: String,
        /// The input.
        text: String,
    },
    /// No entry matches.
    #[error(
        "the take has no entry {0:?}; entries are numbered from 1, `last` is the last one, and {SHORTEST_PREFIX} or more \
         characters of an id also work"
    )]
    NoEntry(String),
    /// No turn matches.
    #[error("there is no turn {text:?} in the take; {}", turn_hint(*count))]
    NoTurn {
        /// The input.
        text: String,
        /// Number of turns of the take.
        count: u64,
    },
    /// No version matches.
    #[error(
        "{0:?} is not a version: name a number, a saved version or `turn:NUMBER`; `retake history` and `retake save --list` \
         list them"
    )]
    NoVersion(String),
    /// Several objects match.
    #[error("{text:?} is ambiguous: {}", candidates.join(", "))]
    Several {
        /// The input.
        text: String,
        /// Some of the candidates.
        candidates: Vec<String>,
    },
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Lists the turns that exist.
fn turn_hint(count: u64) -> String {
    match count {
        0 => "it has none yet, `retake run` starts one".to_owned(),
        1 => "it has one, `turn:1`".to_owned(),
        _ => format!("it has `turn:1` to `turn:{count}`, and `turn:last`"),
    }
}

/// Explains why a text matches no id.
pub fn id_hint(text: &str) -> String {
    if text.len() < SHORTEST_PREFIX {
        format!("an id prefix needs at least {SHORTEST_PREFIX} characters")
    } else {
        "no id begins with it".to_owned()
    }
}

impl From<StoreError> for FindError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

/// Resolves names that users type.
#[derive(Clone, Copy)]
pub struct Finder<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
}

impl Finder<'_> {
    /// Finds a thread by title (in this project first) or id prefix; `thread/take` also names a take.
    pub fn thread(&self, project: Option<ProjectId>, text: &str) -> Result<ThreadMatch, FindError> {
        if let Some(thread) = self.find_thread(project, text)? {
            return Ok(ThreadMatch { thread, take: None });
        }
        // A title may contain a slash, so the whole text was tried first.
        if let Some((thread, take)) = text.rsplit_once('/')
            && let Some(thread) = self.find_thread(project, thread)?
        {
            let take = Some(self.take(&thread, take)?);
            return Ok(ThreadMatch { thread, take });
        }
        let takes = by_prefix(text, |prefix| self.reader.queries().takes_with_prefix(prefix, MAX_NAMED + 1))?;
        match takes.as_slice() {
            [] => Err(FindError::NoThread(text.to_owned())),
            [take] => {
                let thread = self.reader.queries().thread_by_number(take.thread)?;
                let thread = thread.ok_or_else(|| FindError::NoThread(text.to_owned()))?;
                Ok(ThreadMatch { thread, take: Some(take.clone()) })
            }
            several => Err(FindError::Several {
                text: text.to_owned(),
                candidates: several.iter().take(MAX_NAMED).map(|take| take.summary.id.short()).collect(),
            }),
        }
    }

    /// Finds a take of a thread by name or id prefix.
    pub fn take(&self, thread: &ThreadRow, text: &str) -> Result<TakeRow, FindError> {
        if let Some(take) = self.reader.queries().take_named(thread.number, text)? {
            return Ok(take);
        }
        let takes =
            by_prefix(text, |prefix| self.reader.queries().takes_with_prefix(prefix, usize::MAX >> 1))?;
        let own: Vec<&TakeRow> = takes.iter().filter(|take| take.thread == thread.number).collect();
        match own.as_slice() {
            [] => Err(FindError::NoTake { thread: thread.summary.title.clone(), text: text.to_owned() }),
            [take] => Ok((*take).clone()),
            several => Err(FindError::Several {
                text: text.to_owned(),
                candidates: several.iter().take(MAX_NAMED).map(|take| take.summary.name.clone()).collect(),
            }),
        }
    }

    /// Finds an entry by number (from 1; negative from the end), `last`, or id prefix.
    pub fn entry(&self, take: &Take, text: &str) -> Result<(u64, EntryId), FindError> {
        let missing = || FindError::NoEntry(text.to_owned());
        let count = take.entries.len();
        let queries = self.reader.queries();
        match position(text, count) {
            EntryNumber::At(position) => {
                let cell = take.entries.get(&queries, position).map_err(ReadError::from)?;
                return cell.map(|cell| (position, cell.entry)).ok_or_else(missing);
            }
            EntryNumber::OutOfRange => return Err(missing()),
            EntryNumber::NotANumber => {}
        }
        if let Ok(entry) = text.parse::<EntryId>() {
            let found = take.entries.find(&queries, entry.bytes()).map_err(ReadError::from)?;
            return found.map(|(position, _)| (position, entry)).ok_or_else(missing);
        }
        if text.len() < SHORTEST_PREFIX {
            return Err(missing());
        }
        let mut found = Vec::new();
        for (position, cell) in (0..).zip(take.entries.iter(&queries, 0)) {
            let entry = cell.map_err(ReadError::from)?.entry;
            if entry.to_string().starts_with(text) {
                found.push((position, entry));
            }
        }
        match found.as_slice() {
            [] => Err(missing()),
            [one] => Ok(*one),
            several => Err(FindError::Several {
                text: text.to_owned(),
                candidates: several.iter().take(MAX_NAMED).map(|(_, entry)| entry.to_string()).collect(),
            }),
        }
    }

    fn find_thread(self, project: Option<ProjectId>, text: &str) -> Result<Option<ThreadRow>, FindError> {
        if let Ok(id) = text.parse::<ThreadId>() {
            return Ok(self.reader.queries().thread(id)?);
        }
        let mut titled = self.reader.queries().threads_with_title(text)?;
        // Active threads of this project come before any other.
        titled.sort_by_key(|row| (Some(row.home) != project, row.summary.deleted.is_some()));
        if let Some(best) = titled.first() {
            let rank = |row: &ThreadRow| (Some(row.home) != project, row.summary.deleted.is_some());
            let equal: Vec<&ThreadRow> = titled.iter().filter(|row| rank(row) == rank(best)).collect();
            return match equal.as_slice() {
                [one] => Ok(Some((*one).clone())),
                several => Err(several_threads(text, several)),
            };
        }
        let found =
            by_prefix(text, |prefix| self.reader.queries().threads_with_prefix(prefix, MAX_NAMED + 1))?;
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            several => Err(several_threads(text, &several.iter().collect::<Vec<_>>())),
        }
    }
}

/// The object whose id begins with the text; a text that is too short matches nothing.
fn by_prefix<T>(
    text: &str,
    find: impl FnOnce(&str) -> Result<Vec<T>, StoreError>,
) -> Result<Vec<T>, FindError> {
    if text.len() < SHORTEST_PREFIX { Ok(Vec::new()) } else { Ok(find(&text.to_lowercase())?) }
}

fn several_threads(text: &str, rows: &[&ThreadRow]) -> FindError {
    FindError::Several {
        text: text.to_owned(),
        candidates: rows
            .iter()
            .take(MAX_NAMED)
            .map(|row| format!("{} ({})", row.summary.id.short(), row.summary.title))
            .collect(),
    }
}

/// A text parsed as position.
enum EntryNumber {
    /// The entry at that index.
    At(u64),
    /// A number without an entry.
    OutOfRange,
    /// Not a number.
    NotANumber,
}

fn position(text: &str, count: u64) -> EntryNumber {
    // An id can consist of digits only; a number that long is an id.
    let number = match text {
        "last" => Some(-1),
        text if text.trim_start_matches('-').len() > 10 => None,
        text => text.parse::<i64>().ok(),
    };
    let position = match number {
        None => return EntryNumber::NotANumber,
        Some(number) if number < 0 => count.checked_sub(number.unsigned_abs()),
        Some(number) => number.unsigned_abs().checked_sub(1),
    };
    position.filter(|position| *position < count).map_or(EntryNumber::OutOfRange, EntryNumber::At)
}
