//! Reads everything from a store, each item under its own name.
//!
//! A name has two parts, `list/element`. An unreadable list is one error under its name; a readable list has an item
//! for each element, and its order under its own name.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::path::Path;

use retake_model::id::ThreadId;
use retake_store::{DeletedFilter, Facet, ThreadFilter, ThreadRow};
use retake_timeline::{ReadError, Reader, Rules, Timeline, Tree};

use super::build::PROJECT;
use crate::model::observe::Observer;
use crate::violation::BoxError;

/// The result of reading an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// Its hash.
    Read(blake3::Hash),
    /// An error.
    Refused,
    /// It does not exist.
    Absent,
}

/// The item that is refused if the store knows that its log lost its end.
pub(super) const LOG_END: &str = "end of the log";

/// All items of a store.
pub(super) type StoreReadout = BTreeMap<String, ReadResult>;

/// Reads all items of these threads and versions. An error affects only its own item.
///
/// `versions` is the expected number of versions per thread; a store with fewer must report it.
pub(super) fn everything(
    store: &Path,
    threads: &[ThreadId],
    versions: &dyn Fn(ThreadId) -> u64,
) -> Result<StoreReadout, BoxError> {
    let timeline = Timeline::open(store, Rules::default())?;
    let reader = timeline.read()?;
    let mut store_reader = StoreReader { reader: &reader, found: StoreReadout::new() };
    let lost = timeline.store().lost_log_end()?;
    store_reader
        .found
        .insert(LOG_END.to_owned(), lost.map_or(ReadResult::Read(hash(&())), |_| ReadResult::Refused));
    store_reader.lists();
    for thread in threads {
        store_reader.thread(*thread);
        store_reader.versions(*thread, versions(*thread));
    }
    Ok(store_reader.found)
}

struct StoreReader<'looking> {
    reader: &'looking Reader<'looking>,
    found: StoreReadout,
}

impl StoreReader<'_> {
    fn thing<T: Debug>(&mut self, name: String, thing: Result<T, ReadError>) {
        let thing = match thing {
            Ok(thing) => ReadResult::Read(hash(&thing)),
            Err(
                ReadError::NoSuchThread(_)
                | ReadError::NoSuchVersion { .. }
                | ReadError::NoSuchSequence { .. },
            ) => ReadResult::Absent,
            Err(ReadError::Store(_)) => ReadResult::Refused,
        };
        self.found.insert(name, thing);
    }

    fn list<T: Debug, N: Display, E>(
        &mut self,
        name: &str,
        list: Result<Vec<T>, E>,
        element: impl Fn(&T) -> N,
    ) {
        let Ok(list) = list else {
            self.found.insert(name.to_owned(), ReadResult::Refused);
            return;
        };
        let order: Vec<String> = list.iter().map(|each| element(each).to_string()).collect();
        for (each, element) in list.iter().zip(&order) {
            self.found.insert(format!("{name}/{element}"), ReadResult::Read(hash(each)));
        }
        self.found.insert(name.to_owned(), ReadResult::Read(hash(&order)));
    }

    fn threads(&mut self, name: &str, filter: &ThreadFilter) {
        self.list(name, self.reader.threads(filter), |row| row.summary.id);
    }

    fn lists(&mut self) {
        let queries = self.reader.queries();
        let all = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        self.threads("threads", &all);
        let mine = ThreadFilter { project: Some(PROJECT), ..ThreadFilter::default() };
        self.threads("threads of the project", &mine);
        for tag in ["tag6", "tag21", "tag36", "tag51"] {
            let tagged = ThreadFilter { facets: vec![(Facet::Tag, tag.to_owned())], ..all.clone() };
            self.threads(&format!("threads tagged {tag}"), &tagged);
        }
        let tree = Tree::of(self.reader, Some(PROJECT), DeletedFilter::Hidden).map(|tree| tree.threads);
        self.list("tree", tree, |thread| thread.summary.id);
        self.list("projects", queries.projects(), |project| project.id);
        self.list("whole log", queries.operations_since(0, usize::MAX), |(sequence, ..)| *sequence);
    }

    fn thread(&mut self, thread: ThreadId) {
        let (reader, queries) = (self.reader, self.reader.queries());
        let short = thread.short();
        let id = |row: &ThreadRow| row.summary.id;
        let row = reader.thread(thread);
        if let Ok(row) = &row {
            self.list(&format!("{short} takes"), queries.takes_of(row.number), |take| take.summary.id);
            let presentations =
                queries.presentations(row.number).map(|shown| shown.into_iter().collect::<BTreeMap<_, _>>());
            self.list(&format!("{short} shown"), presentations.map(Vec::from_iter), |(entry, _)| *entry);
            for facet in [Facet::Tag, Facet::Branch, Facet::Commit, Facet::Directory] {
                self.list(&format!("{short} {facet:?}"), queries.facets(row.number, facet), Clone::clone);
            }
            self.list(&format!("{short} by title"), queries.threads_with_title(&row.summary.title), id);
        }
        self.thing(format!("{short} row"), row);
        self.thing(format!("{short} head"), reader.head(thread));
        self.thing(format!("{short} undo_status"), reader.history(thread).undo_status());
        self.thing(format!("{short} pages"), pages(reader, thread));
        self.list(&format!("{short} history"), reader.history(thread).list(None, usize::MAX), |item| {
            item.version
        });
        self.list(&format!("{short} by prefix"), queries.threads_with_prefix(&short, 5), id);
    }

    fn versions(&mut self, thread: ThreadId, versions: u64) {
        let mut observer = Observer::default();
        for version in 1..=versions {
            let digest = self
                .reader
                .state_at(thread, version)
                .and_then(|state| Ok(observer.digest(&self.reader.queries(), &state)?));
            self.thing(format!("{} version/{version}", thread.short()), digest);
        }
    }
}

/// Every entry of every take, as on pages.
fn pages(reader: &Reader<'_>, thread: ThreadId) -> Result<Vec<String>, ReadError> {
    let mut shown = Vec::new();
    for take in reader.state(thread)?.all_takes(&reader.queries())? {
        let page = reader.entries(thread, &take).page(0..take.entries.len())?;
        shown.push(format!("{} {page:?}", take.name));
    }
    Ok(shown)
}

fn hash(thing: &impl Debug) -> blake3::Hash {
    blake3::hash(format!("{thing:?}").as_bytes())
}
