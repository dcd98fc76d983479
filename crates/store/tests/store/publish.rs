//! Published operations are visible to this process and to others, also with concurrent writers.

use std::thread;

use crate::support::*;
use retake_store::{PublishError, Store, StoreError, WriteError};

#[test]
fn published_operations_survive_reopening() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let before = dump(&store).expect("readable");
    drop(store);
    let store = folder.open();
    assert_eq!(dump(&store).expect("readable"), before);
    assert!(before.len() > 100, "only {} pieces", before.len());
    let texts: Vec<String> = entries(&store, grown.threads[1]).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["document the parser"]);
}

#[test]
fn two_stores_on_one_folder_see_each_other() {
    let folder = Folder::new();
    let (one, other) = (folder.open(), folder.open());
    let grown = grow(&one);
    let thread = grown.threads[1];
    assert_eq!(dump(&one).expect("readable"), dump(&other).expect("readable"));
    for turn in 0..10 {
        let (writer, reader) = if turn % 2 == 0 { (&one, &other) } else { (&other, &one) };
        publish(writer, thread, say(active(writer, thread), "User", &format!("turn {turn}")));
        let last = entries(reader, thread).pop().expect("an entry");
        assert_eq!(last.2, format!("turn {turn}"));
    }
    assert_clean(&one);
}

#[test]
fn a_read_transaction_does_not_see_later_operations() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[1];
    let reading = store.read().expect("a read transaction");
    let version = |store: &retake_store::Queries<'_>| {
        let row = store.thread(thread).expect("readable");
        row.expect("the thread exists").summary.version
    };
    let before = version(&reading.queries());
    publish(&store, thread, say(active(&store, thread), "User", "later"));
    assert_eq!(version(&reading.queries()), before);
    assert_eq!(version(&store.read().expect("a read transaction").queries()), before + 1);
}

#[test]
fn a_stale_operation_is_refused_with_the_current_version() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[1];
    let before = dump(&store).expect("readable");
    let refused = store.write(move |writing| {
        let row = writing.thread(thread)?.expect("the thread exists");
        let head = writing.head(row.number)?.expect("the thread has a head");
        writing.publish(retake_store::Publication { operation: head.operation, objects: Vec::new() })
    });
    let Err(WriteError::Refused(PublishError::NotNext { version: 3, current: 3 })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn eight_writers_lose_nothing() {
    const EACH: usize = 25;
    let folder = Folder::new();
    let stores = [folder.open(), folder.open()];
    let grown = grow(&stores[0]);
    let shared = grown.threads[1];
    let before = entries(&stores[0], shared).len();
    thread::scope(|scope| {
        for writer in 0..8 {
            let store: &Store = &stores[writer % 2];
            let project = grown.project;
            scope.spawn(move || {
                let own = create(store, project, &format!("writer {writer}"));
                for turn in 0..EACH {
                    publish(store, own, say(active(store, own), "User", &format!("{writer} {turn}")));
                    publish(store, shared, say(active(store, shared), "AI", &format!("{writer} {turn}")));
                }
                assert_eq!(entries(store, own).len(), EACH);
            });
        }
    });
    let mut entries: Vec<String> =
        entries(&stores[1], shared).into_iter().skip(before).map(|(_, _, text)| text).collect();
    entries.sort_unstable();
    entries.dedup();
    assert_eq!(entries.len(), 8 * EACH);
    assert_clean(&stores[0]);
}

#[test]
fn a_failing_job_changes_nothing_and_does_not_affect_others() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let (kept, spoiled) = (grown.threads[1], grown.threads[0]);
    let before = dump(&store).expect("readable");
    let spoiled_before = entries(&store, spoiled).len();
    // All queue behind the first job, so they share its transaction.
    thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            let waited = store.write(|_| {
                thread::sleep(std::time::Duration::from_millis(200));
                Ok::<_, StoreError>(())
            });
            waited.expect("the waiting job succeeds");
        });
        thread::sleep(std::time::Duration::from_millis(50));
        for turn in 0..6 {
            scope.spawn(move || {
                let take = active(store, kept);
                publish(store, kept, say(take, "User", &format!("kept {turn}")));
            });
            scope.spawn(move || {
                let take = active(store, spoiled);
                let refused = store.write(move |writing| {
                    publish_inside(writing, spoiled, say(take, "User", "spoiled").into())
                        .expect("operation published");
                    Err::<(), _>("changed my mind")
                });
                assert!(matches!(refused, Err(WriteError::Refused("changed my mind"))));
            });
        }
    });
    assert_eq!(entries(&store, spoiled).len(), spoiled_before);
    assert_eq!(entries(&store, kept).len(), 1 + 6);
    let after = dump(&store).expect("readable");
    for (name, value) in before.iter().filter(|(name, _)| name.contains(&spoiled.to_string())) {
        assert_eq!(after.get(name), Some(value), "{name}");
    }
    assert_clean(&store);
}

#[test]
fn the_number_of_a_purged_thread_is_never_reused() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let last = create(&store, grown.project, "gone soon");
    let number = number_of(&store, last);
    store.purge_threads(&[last]).expect("purge succeeds");
    let next = create(&store, grown.project, "the next one");
    assert_eq!(number_of(&store, next), number + 1);
    assert_clean(&store);
}
