//! Everything that can be read from a store, each thing by a name of its own.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use retake_model::id::ThreadId;
use retake_store::{Deleted, Facet, ThreadFilter};
use retake_timeline::{Looking, Rules, Timeline};

use super::build::PROJECT;
use crate::model::observe::Observer;
use crate::violation::Trouble;

/// What was read, or why it could not be.
pub(super) type Thing = Result<blake3::Hash, String>;

/// Everything that was read.
pub(super) type Everything = BTreeMap<String, Thing>;

/// Reads everything, of these threads and versions. An error ends only what it is about.
///
/// `versions` says how many versions of each thread are looked for; a store that has fewer must say so.
pub(super) fn everything(
    store: &Path,
    threads: &[ThreadId],
    versions: &dyn Fn(ThreadId) -> u64,
) -> Result<Everything, Trouble> {
    let timeline = Timeline::open(store, Rules::default())?;
    let looking = timeline.look()?;
    let mut reader = Reader { looking: &looking, found: Everything::new() };
    reader.lists();
    for thread in threads {
        reader.thread(*thread);
        reader.versions(*thread, versions(*thread));
    }
    Ok(reader.found)
}

struct Reader<'looking> {
    looking: &'looking Looking<'looking>,
    found: Everything,
}

impl Reader<'_> {
    fn put<T: Debug, E: ToString>(&mut self, name: String, thing: Result<T, E>) {
        let thing = thing
            .map(|thing| blake3::hash(format!("{thing:?}").as_bytes()))
            .map_err(|error| error.to_string());
        self.found.insert(name, thing);
    }

    fn lists(&mut self) {
        let queries = self.looking.queries();
        let all = ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() };
        self.put("threads".to_owned(), self.looking.threads(&all));
        let mine = ThreadFilter { project: Some(PROJECT), ..ThreadFilter::default() };
        self.put("threads of the project".to_owned(), self.looking.threads(&mine));
        for tag in ["tag6", "tag21", "tag36", "tag51"] {
            let tagged = ThreadFilter { facets: vec![(Facet::Tag, tag.to_owned())], ..all.clone() };
            self.put(format!("threads tagged {tag}"), self.looking.threads(&tagged));
        }
        self.put("tree".to_owned(), self.looking.tree(Some(PROJECT), Deleted::Hidden));
        self.put("projects".to_owned(), queries.projects());
        self.put("whole log".to_owned(), queries.operations_since(0, usize::MAX));
        self.put("last sequence".to_owned(), queries.last_sequence());
    }

    fn thread(&mut self, thread: ThreadId) {
        let looking = self.looking;
        let short = thread.short();
        let row = looking.thread(thread);
        self.put(format!("{short} row"), row.as_ref().map_err(ToString::to_string));
        self.put(format!("{short} head"), looking.head(thread));
        self.put(format!("{short} standing"), looking.standing(thread));
        self.put(format!("{short} history"), looking.history(thread, None, usize::MAX));
        self.put(format!("{short} by prefix"), looking.queries().threads_with_prefix(&short, 5));
        if let Ok(row) = row {
            self.put(format!("{short} takes"), looking.queries().takes_of(row.number));
            self.put(format!("{short} shown"), sorted(looking.queries().shown(row.number)));
            for facet in [Facet::Tag, Facet::Branch, Facet::Commit, Facet::Directory] {
                self.put(format!("{short} {facet:?}"), looking.queries().facets(row.number, facet));
            }
            self.put(format!("{short} by title"), looking.queries().threads_titled(&row.summary.title));
        }
        self.put(format!("{short} pages"), pages(looking, thread));
    }

    fn versions(&mut self, thread: ThreadId, versions: u64) {
        let mut observer = Observer::default();
        for version in 1..=versions {
            let state = self.looking.state_at(thread, version).map_err(Trouble::from);
            let digest = state
                .and_then(|state| observer.digest(&self.looking.queries(), &state).map_err(Trouble::from));
            self.put(format!("{} version {version}", thread.short()), digest);
        }
    }
}

/// Every entry of every take, as pages show them.
fn pages(looking: &Looking<'_>, thread: ThreadId) -> Result<Vec<String>, Trouble> {
    let mut shown = Vec::new();
    for take in looking.state(thread)?.all_takes(&looking.queries())? {
        let page = looking.page(thread, &take, 0..take.entries.len())?;
        shown.push(format!("{} {page:?}", take.name));
    }
    Ok(shown)
}

/// The order of a hash map says nothing.
fn sorted<K: Ord, V, E>(map: Result<std::collections::HashMap<K, V>, E>) -> Result<BTreeMap<K, V>, E> {
    map.map(|map| map.into_iter().collect())
}
