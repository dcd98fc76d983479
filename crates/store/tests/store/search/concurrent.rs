//! Concurrent processes and large batches.

use retake_store::{SearchIndex, SearchQuery, Store};

use super::texts::texts;
use super::world::World;

#[test]
fn two_indexes_catch_up_concurrently() {
    let world = World::new();
    let thread = world.thread("Busy");
    for number in 0..30 {
        let texts: Vec<String> = (0..40).map(|part| format!("common w{number} p{part}")).collect();
        let entries: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
        world.say_all(thread, &entries);
    }
    let folder = world.folder.path();
    let added: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let store = Store::open(folder).expect("a store");
                    let index = SearchIndex::open(folder).expect("an index");
                    let reading = store.read().expect("a read transaction");
                    let done = index.catch_up(&reading.queries(), &mut |_| ()).expect("catch-up succeeds");
                    let query = SearchQuery { limit: 2000, ..SearchQuery::words("common") };
                    assert_eq!(
                        index.search(&reading.queries(), &query).expect("search succeeds").len(),
                        1200
                    );
                    assert_eq!(index.rebuild_reason(), None);
                    done.added
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    assert_eq!(added, 1200, "each doc was added once");
    world.assert_sound();
}

#[test]
fn one_operation_can_exceed_a_batch() {
    let world = World::new();
    let thread = world.thread("Import");
    let texts: Vec<String> = (0..5000).map(|number| format!("imported n{number}")).collect();
    let entries: Vec<(&str, &str)> = texts.iter().map(|text| ("User", text.as_str())).collect();
    world.say_all(thread, &entries);
    let reading = world.store.read().expect("a read transaction");
    let mut reached = Vec::new();
    let done = world
        .index
        .catch_up(&reading.queries(), &mut |progress| reached.push(progress.reached))
        .expect("catch-up succeeds");
    assert_eq!(done.added, 5000);
    assert!(reached.is_sorted() && reached.last() == Some(&2), "{reached:?}");
    assert_eq!(world.entries("n4999").len(), 1);
    world.assert_sound();
}

#[test]
fn a_search_during_a_rebuild_finds_everything() {
    let (world, _) = texts();
    let folder = world.folder.path();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let store = Store::open(folder).expect("a store");
                let index = SearchIndex::open(folder).expect("an index");
                let reading = store.read().expect("a read transaction");
                for _ in 0..10 {
                    index.rebuild(&reading.queries(), &mut |_| ()).expect("rebuild succeeds");
                }
            });
        }
        scope.spawn(|| {
            let store = Store::open(folder).expect("a store");
            let index = SearchIndex::open(folder).expect("an index");
            let reading = store.read().expect("a read transaction");
            for _ in 0..100 {
                let found =
                    index.search(&reading.queries(), &SearchQuery::words("the")).expect("search succeeds");
                assert_eq!(found.len(), 2);
            }
        });
    });
    world.assert_sound();
}
