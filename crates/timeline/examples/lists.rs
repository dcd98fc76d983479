//! Measures lists and pages in a store of many threads, with concurrent writers: `cargo run --example lists [threads]
//! [entries]`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use retake_model::entry::EntryVersion;
use retake_model::id::{ProjectId, ThreadId};
use retake_store::{DeletedFilter, EntryPresentation, ThreadFilter};
use retake_timeline::{Caller, Command, InsertPosition, NewThread, Rules, Timeline, Tree};

const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);
const WRITERS: usize = 8;
const PAGE: usize = 50;

fn main() {
    let asked = |number: usize, usual: usize| {
        std::env::args().nth(number).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (count, entries) = (asked(1, 10_000), asked(2, 100_000));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let timeline = Timeline::open(folder.path(), Rules::default()).expect("a new store");
    let threads = make(&timeline, count);
    let long = fill(&timeline, entries);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        println!("{count} threads, nobody writes");
        lists(&timeline);
        pages(&timeline, long, entries);
        for writer in 0..WRITERS {
            let (timeline, mine, stop) = (timeline.clone(), &threads[writer..], &stop);
            scope.spawn(move || {
                for thread in mine.iter().step_by(WRITERS).cycle() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    say(&timeline, *thread, 1);
                }
            });
        }
        println!("{count} threads, {WRITERS} writers");
        lists(&timeline);
        pages(&timeline, long, entries);
        stop.store(true, Ordering::Relaxed);
    });
}

fn make(timeline: &Timeline, count: usize) -> Vec<ThreadId> {
    let each = count.div_ceil(WRITERS);
    std::thread::scope(|scope| {
        let makers: Vec<_> = (0..WRITERS)
            .map(|maker| {
                scope.spawn(move || {
                    let new = |number| {
                        let title = format!("Thread {maker} {number}");
                        let new = NewThread::in_project(PROJECT).titled(title);
                        timeline.create_thread(new, Caller::human()).expect("a new thread").thread
                    };
                    (0..each).map(new).collect::<Vec<_>>()
                })
            })
            .collect();
        makers.into_iter().flat_map(|maker| maker.join().expect("it is made")).collect()
    })
}

fn fill(timeline: &Timeline, entries: usize) -> ThreadId {
    let new = NewThread::in_project(PROJECT).titled("Long");
    let thread = timeline.create_thread(new, Caller::human()).expect("a new thread").thread;
    for _ in 0..entries / 1000 {
        say(timeline, thread, 1000);
    }
    thread
}

fn say(timeline: &Timeline, thread: ThreadId, count: usize) {
    let take = timeline.read().expect("a reader").state(thread).expect("a state").active;
    let entry = |number| EntryVersion::from_text("User", &format!("entry {number}"), timeline.now()).into();
    let entries = (0..count).map(entry).collect();
    let command = Command::AddEntries { take, at: InsertPosition::End, entries };
    timeline.change(thread, command, Caller::human()).expect("a change that is allowed");
}

fn lists(timeline: &Timeline) {
    let filter = ThreadFilter::default();
    measure("the old list, whole", 20, || {
        timeline.read().expect("a reader").threads(&filter).expect("a list").len()
    });
    measure("list, first page", 500, || {
        timeline.threads_page(&filter, None, PAGE).expect("a page").items.len()
    });
    measure("list, all pages", 5, || {
        let (mut after, mut seen) = (None, 0);
        loop {
            let page = timeline.threads_page(&filter, after, PAGE).expect("a page");
            seen += page.items.len();
            after = page.next;
            if after.is_none() {
                return seen;
            }
        }
    });
    measure("list, by title", 100, || {
        let filter = ThreadFilter { title: Some("7 99".to_owned()), ..ThreadFilter::default() };
        timeline.threads_page(&filter, None, PAGE).expect("a page").items.len()
    });
    measure("the old tree, whole", 5, || {
        Tree::of(&timeline.read().expect("a reader"), None, DeletedFilter::Hidden)
            .expect("a tree")
            .threads
            .len()
    });
    measure("tree, first page", 500, || {
        timeline.tree_page(&ThreadFilter::default(), None, PAGE).expect("a page").items.len()
    });
}

fn pages(timeline: &Timeline, thread: ThreadId, entries: usize) {
    let page = |from: usize| {
        let reader = timeline.read().expect("a reader");
        let state = reader.state(thread).expect("a state");
        let take = state.active_take(&reader.queries()).expect("a take");
        let range = from as u64..(from + PAGE) as u64;
        reader.entries(thread, &take).page(range).expect("a page").len()
    };
    let mut from = 0;
    measure("page of a long thread", 500, || {
        from = (from + 7919) % (entries - PAGE);
        page(from)
    });
    measure("undo_status and history of a long thread", 200, || {
        let reader = timeline.read().expect("a reader");
        reader.history(thread).undo_status().expect("an undo status");
        reader.history(thread).list(None, PAGE).expect("a history").len()
    });
    let reader = timeline.read().expect("a reader");
    let take = reader.state(thread).expect("a state").active_take(&reader.queries()).expect("a take");
    let all = take.entries.page(&reader.queries(), 0..entries as u64).expect("a list");
    let number = reader.thread(thread).expect("a thread").number;
    let folded: Vec<_> = all.into_iter().map(|cell| cell.entry).collect();
    let shown = EntryPresentation { collapsed: true, source: false };
    let store = timeline.store();
    store.write(move |writing| writing.set_presentation(number, &folded, shown)).expect("stored");
    measure("the same, all folded", 500, || {
        from = (from + 7919) % (entries - PAGE);
        page(from)
    });
}

fn measure(name: &str, times: usize, mut run: impl FnMut() -> usize) {
    let mut taken: Vec<Duration> = Vec::with_capacity(times);
    let mut found = 0;
    for _ in 0..times {
        let began = Instant::now();
        found = run();
        taken.push(began.elapsed());
    }
    let first = taken[0];
    taken.sort();
    let at = |percent: usize| taken[(times * percent / 100).min(times - 1)];
    println!(
        "  {name:40} {found:6} found   first {first:9.1?}   median {:9.1?}   p99 {:9.1?}",
        at(50),
        at(99)
    );
}
