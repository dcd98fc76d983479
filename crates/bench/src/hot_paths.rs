//! Ten hot paths for an instruction counter, which is repeatable where a clock is not.
//!
//! ```text
//!   retake-bench hot-paths FOLDER        runs each path a few times, each run inside `counted`
//!        └─ valgrind --tool=callgrind --toggle-collect=…counted --dump-after=…counted
//!                    one dump per run, in the order of the names that the program prints
//! ```
//!
//! `tests/instructions.rs` compares the counts with limits. Time and random numbers come from a seed, so that two runs
//! of one build execute almost the same instructions, whatever else the machine does.

use std::path::Path;
use std::sync::Arc;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{Additions, MemoryObjects};
use retake_model::path::{FileName, TreePath};
use retake_model::projection::{Ask, Dialect, Thoughts, Wire, converse, request};
use retake_model::tree::{Node, Tree, TreeEntry, differences, graft};
use retake_store::{SearchIndex, SearchQuery, ThreadFilter};
use retake_timeline::{Caller, NewThread, SeededClock, Unit};

use crate::operations::{Operation, PreparedOperation};
use crate::subject::{MeasuredThread, PROJECT};
use crate::{Outcome, edits, moves};

/// Entries of the measured thread.
const ENTRIES: u64 = 600;
/// Further threads of the list.
const THREADS: u64 = 100;
/// Entries of a page.
const PAGE: u64 = 50;
/// Files of the compared folder.
const FILES: usize = 5_000;
/// Counted runs of each path.
const RUNS: usize = 5;

/// The operations of the table that are counted here too.
const OPERATIONS: [&str; 5] = ["append", "edit, middle", "undo", "redo", "fork, middle"];

/// Runs every path, and prints the name of each counted run.
pub(crate) fn run(folder: &Path) -> Outcome<()> {
    let mut subject = MeasuredThread::build_with(folder, ENTRIES, Arc::new(SeededClock::new(1)))?;
    for number in 0..THREADS {
        let new = NewThread::in_project(PROJECT).titled(format!("thread number {number}"));
        subject.timeline.create_thread(new, Caller::human())?;
    }
    let known: Vec<&Operation> = edits::OPERATIONS.iter().chain(moves::OPERATIONS).collect();
    for name in OPERATIONS {
        let operation = known.iter().find(|known| known.name == name).ok_or("no such operation")?;
        // The first run prepares statements and fills caches.
        for run in 0..=RUNS {
            let ready = (operation.prepare)(&mut subject)?;
            if run == 0 {
                ready()?;
            } else {
                println!("{name}");
                counted(ready)?;
            }
            // Undo needs something to undo, and redo an undo before it.
            if name == "redo" && run < RUNS {
                subject.timeline.undo(subject.thread, Unit::Turn, 1, Caller::human())?;
            }
        }
        if name == "fork, middle" {
            moves::tidy(&mut subject)?;
        }
    }
    let index = SearchIndex::open(subject.timeline.store().folder())?;
    let tree = ComparedTrees::build()?;
    let reads: [(&str, &dyn Fn() -> Outcome<u64>); 5] = [
        ("last page", &|| last_page(&subject)),
        ("list of threads", &|| list(&subject)),
        ("search", &|| search(&subject, &index)),
        ("request", &|| projected(&subject)),
        ("compare folders", &|| tree.compare()),
    ];
    for (name, read) in reads {
        read()?;
        for _ in 0..RUNS {
            println!("{name}");
            if counted(Box::new(read))? == 0 {
                return Err(format!("{name} found nothing").into());
            }
        }
    }
    Ok(())
}

/// The region that is counted: the instruction counter knows it by its name.
#[inline(never)]
fn counted(operation: PreparedOperation<'_>) -> Outcome<u64> {
    operation()
}

fn last_page(subject: &MeasuredThread) -> Outcome<u64> {
    let reader = subject.timeline.read()?;
    let take = reader.state(subject.thread)?.active_take(&reader.queries())?;
    let end = take.entries.len();
    Ok(reader.entries(subject.thread, &take).page(end - PAGE..end)?.len() as u64)
}

fn list(subject: &MeasuredThread) -> Outcome<u64> {
    let filter = ThreadFilter { project: Some(PROJECT), ..ThreadFilter::default() };
    Ok(subject.timeline.read()?.threads(&filter)?.len() as u64)
}

fn search(subject: &MeasuredThread, index: &SearchIndex) -> Outcome<u64> {
    let query = SearchQuery { words: "ra ket".to_owned(), limit: 20, ..SearchQuery::default() };
    let reader = subject.timeline.read()?;
    Ok(index.search(&reader.queries(), &query)?.len() as u64)
}

/// The body of a request with the whole conversation.
fn projected(subject: &MeasuredThread) -> Outcome<u64> {
    let reader = subject.timeline.read()?;
    let take = reader.state(subject.thread)?.active_take(&reader.queries())?;
    let views = reader.entries(subject.thread, &take).page(0..take.entries.len())?;
    let entries: Vec<_> = views.into_iter().map(|view| (view.id, view.entry)).collect();
    let ask = Ask {
        wire: Wire::Anthropic,
        dialect: Dialect::of(Wire::Anthropic),
        model: "measured",
        system: "",
        tools: &[],
        max_tokens: 1_000,
        temperature: None,
        top_p: None,
        thinking: None,
        thoughts: Thoughts::Accepted,
    };
    let body = request(&converse(&entries), &ask, &|_| None);
    Ok(serde_json::to_vec(&body)?.len() as u64)
}

/// Two folders of many files, one of which differs.
struct ComparedTrees {
    objects: MemoryObjects,
    before: ContentId,
    after: ContentId,
}

impl ComparedTrees {
    fn build() -> Outcome<Self> {
        let mut objects = MemoryObjects::default();
        let file = |number: usize| Node::File {
            content: ContentId::of(Kind::Blob, &number.to_le_bytes()),
            size: number as u64,
            mode: 0o644,
        };
        let entries = (0..FILES)
            .map(|number| {
                let name = FileName::new(format!("file-{number}.rs").as_bytes())?;
                Ok(TreeEntry { name, node: file(number) })
            })
            .collect::<Outcome<Vec<_>>>()?;
        let mut additions = Additions::new(&objects);
        let before = additions.add(&Tree::new(entries));
        let changed = TreePath::new(b"file-2500.rs")?;
        let after = graft(&mut additions, before, &[(changed, Some(file(FILES)))].into())?;
        let new = additions.into_new();
        objects.insert_all(new);
        Ok(Self { objects, before, after })
    }

    fn compare(&self) -> Outcome<u64> {
        Ok(differences(&self.objects, Some(self.before), Some(self.after))?.len() as u64)
    }
}
