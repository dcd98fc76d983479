//! Following events, and lists in pages.

use retake_model::id::ProjectId;
use retake_model::operation::OperationKind;
use retake_store::{DeletedFilter, Facet, ThreadFilter, ThreadSelection};
use retake_timeline::{
    Caller, Command, LogEvent, NewThread, ReadError, Rules, Tail, ThreadCursor, Timeline, Tree, TreeThread,
};

use crate::support::{FileWorld, PROJECT, World};

fn news(tail: &mut Tail, since: i64) -> Vec<LogEvent> {
    tail.since(since, 100).expect("a readable log")
}

#[test]
fn a_follower_gets_each_operation_of_any_process_once() {
    let world = World::saying(&["one"]);
    let other = Timeline::open(world.folder.path(), Rules::default()).expect("the same store");
    let mut tail = world.timeline.tail().expect("a tail");
    let mut seen = tail.last().expect("a log");
    assert_eq!(seen, 2);
    assert_eq!(news(&mut tail, seen), []);
    let rename = Command::Rename { title: "Other".to_owned() };
    let done = other.change(world.thread, rename, Caller::human()).expect("it is allowed");
    world.say("AI", "two");
    let found = news(&mut tail, seen);
    let first = found[0].change.as_ref().expect("a change");
    assert_eq!((found.len(), first.thread, first.version), (2, world.thread, 3));
    assert_eq!(Some(first.operation), done.operation);
    assert!(matches!(first.kind, OperationKind::Renamed { .. }), "{:?}", first.kind);
    assert!(!first.files_changed);
    seen = found[1].sequence;
    assert_eq!(news(&mut tail, seen), [], "nothing twice");
    assert_eq!(tail.since(0, 3).expect("a readable log").len(), 3, "as much as was asked for");
    assert_eq!(news(&mut tail, 3), found[1..]);
    for unknown in [seen + 1, i64::MAX, -1] {
        let refused = tail.since(unknown, 100);
        assert!(matches!(refused, Err(ReadError::NoSuchSequence { last, .. }) if last == seen), "{unknown}");
    }
    let text = serde_json::to_value(&found[1]).expect("it has a JSON shape");
    assert_eq!((text["sequence"].as_i64(), text["version"].as_i64()), (Some(seen), Some(4)));
    // A purge leaves a gap and an event after all others.
    other.store().purge_threads(&[world.thread]).expect("it is destroyed");
    let found = news(&mut tail, seen);
    assert_eq!(found, [LogEvent { sequence: seen + 1, change: None }]);
    assert_eq!(news(&mut tail, 0), found, "whoever comes late finds the hole and the mark");
}

#[test]
fn a_follower_gets_file_changes() {
    let world = FileWorld::new();
    let mut tail = world.world.timeline.tail().expect("a tail");
    let seen = tail.last().expect("a log");
    world.agent(|world| world.write("file", "one"));
    let found = news(&mut tail, seen);
    assert!(found.last().and_then(|last| last.change.as_ref()).expect("a change").files_changed);
}

fn titles(timeline: &Timeline, filter: &ThreadFilter, limit: usize) -> Vec<String> {
    let (mut after, mut found): (Option<ThreadCursor>, Vec<String>) = (None, Vec::new());
    loop {
        let page = timeline.threads_page(filter, after, limit).expect("a page");
        assert!(page.items.len() <= limit);
        found.extend(page.items.into_iter().map(|row| row.summary.title));
        // Like a client that has only the text.
        after = page.next.map(|cursor| cursor.to_string().parse().expect("its own text"));
        if after.is_none() {
            return found;
        }
    }
}

/// Checks that pages of every size equal the whole list.
fn agree(timeline: &Timeline, filter: &ThreadFilter) -> Vec<String> {
    let reader = timeline.read().expect("a reader");
    let whole: Vec<String> =
        reader.threads(filter).expect("a list").into_iter().map(|row| row.summary.title).collect();
    for limit in [1, 2, 3, 100] {
        assert_eq!(titles(timeline, filter, limit), whole, "{limit}");
    }
    let of_tree =
        ThreadFilter { project: filter.project, deleted: filter.deleted, ..ThreadFilter::default() };
    let tree = Tree::of(&reader, filter.project, filter.deleted).expect("a tree");
    let mut after = None;
    let mut threads = Vec::new();
    loop {
        let page = timeline.tree_page(&of_tree, after, 2).expect("a page");
        threads.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let text = |threads: &[TreeThread]| serde_json::to_string(threads).expect("it has a JSON shape");
    assert_eq!(text(&threads), text(&tree.threads));
    whole
}

#[test]
fn pages_add_up_to_the_list_despite_changes_in_between() {
    let world = World::saying(&["one", "two"]);
    let timeline = &world.timeline;
    let other = Timeline::open(world.folder.path(), Rules::default()).expect("the same store");
    let elsewhere = ProjectId::from_bytes([8; 16]);
    let all = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
    let here = ThreadFilter { project: Some(PROJECT), ..ThreadFilter::default() };
    let deleted = ThreadFilter { deleted: DeletedFilter::Only, ..ThreadFilter::default() };
    let titled = ThreadFilter { title: Some("THREAD".to_owned()), ..ThreadFilter::default() };
    let tagged = ThreadFilter { facets: vec![(Facet::Tag, "draft".to_owned())], ..ThreadFilter::default() };
    let check = || {
        for filter in [&all, &here, &deleted, &titled] {
            agree(timeline, filter);
        }
        titles(timeline, &tagged, 2)
    };
    assert!(check().is_empty());
    let mut made = Vec::new();
    for (project, tags) in [(PROJECT, vec![]), (elsewhere, vec!["draft".to_owned()]), (PROJECT, vec![])] {
        let new = NewThread { tags, ..NewThread::in_project(project) };
        made.push(other.create_thread(new, Caller::human()).expect("it is allowed").thread);
    }
    assert_eq!(check(), ["Thread 1"]);
    let change = |number: usize, command: Command| {
        other.change(made[number], command, Caller::human()).expect("it is allowed");
    };
    change(0, Command::Delete);
    check();
    change(0, Command::Restore);
    change(1, Command::Rename { title: "Thread at last".to_owned() });
    assert_eq!(check(), ["Thread at last"], "what was acknowledged is there");
    // A promoted thread appears below its source.
    let (take, at) = (world.state().active, world.entry(1));
    world.done(Command::Fork { from: take, at, name: None });
    let forked = world.state().active;
    world.done(Command::Switch { take });
    let promoted = timeline.promote(world.thread, forked, None, Caller::human()).expect("it is allowed");
    check();
    let below = || {
        let mut page = timeline.tree_page(&ThreadFilter::default(), None, 1).expect("a page");
        while page.items[0].summary.id != promoted.promoted.thread {
            page = timeline.tree_page(&ThreadFilter::default(), page.next, 1).expect("a page");
        }
        page.items[0].below
    };
    assert_eq!(below(), Some(world.thread), "its parent is on another page");
    other.store().purge_threads(&made[..2]).expect("they are destroyed");
    assert!(check().is_empty());
    other.store().purge_threads(&[world.thread]).expect("it is destroyed");
    check();
    assert_eq!(below(), None, "a parent that is gone makes a root");
}

#[test]
fn a_thread_is_found_by_title_and_id_prefix() {
    let world = World::saying(&["one"]);
    let timeline = &world.timeline;
    let mut made = Vec::new();
    for (title, tags, private) in [("Apples", vec!["fruit"], false), ("Pears", vec!["Fruit", "late"], true)] {
        let tags = tags.into_iter().map(str::to_owned).collect();
        let new =
            NewThread { title: Some(title.to_owned()), tags, private, ..NewThread::in_project(PROJECT) };
        made.push(timeline.create_thread(new, Caller::human()).expect("it is allowed").thread);
    }
    let from = world.state().active;
    world.done(Command::Fork { from, at: world.entry(1), name: Some("A better way".to_owned()) });
    let title = world.state().title;
    let check = |name_query: &str, expected: &[&str]| {
        let filter = ThreadFilter { name_query: Some(name_query.to_owned()), ..ThreadFilter::default() };
        let mut found = agree(timeline, &filter);
        found.sort();
        assert_eq!(found, expected, "{name_query}");
    };
    check("APPLE", &["Apples"]);
    check("fruit", &["Apples", "Pears"]);
    check("#late", &["Pears"]);
    check("better", &[&title]);
    check("main", &[]);
    check("nobody", &[]);
    check(&made[1].to_string(), &["Pears"]);
    check(&world.state().active.to_string(), &[&title]);
    let only = |only: ThreadSelection| {
        agree(timeline, &ThreadFilter { only: Some(only), ..ThreadFilter::default() })
    };
    assert_eq!(only(ThreadSelection::Private), ["Pears"]);
    assert_eq!(only(ThreadSelection::Pinned), Vec::<String>::new());
    timeline.change(made[0], Command::Pin { pinned: true }, Caller::human()).expect("it is allowed");
    assert_eq!(only(ThreadSelection::Pinned), ["Apples"]);
    assert_eq!(only(ThreadSelection::Ids([made[0], made[1]].into())), ["Apples", "Pears"]);
}

#[test]
fn lists_show_acknowledged_changes_while_others_write() {
    let world = World::new();
    let other = Timeline::open(world.folder.path(), Rules::default()).expect("the same store");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (ours, other) = (world.timeline.clone(), &other);
            scope.spawn(move || {
                for number in 0..20 {
                    let title = format!("{writer} {number}");
                    let new = NewThread::in_project(PROJECT).titled(title.clone());
                    other.create_thread(new, Caller::human()).expect("it is allowed");
                    let filter = ThreadFilter { title: Some(title.clone()), ..ThreadFilter::default() };
                    let page = ours.threads_page(&filter, None, 100).expect("a page");
                    assert!(page.items.iter().any(|row| row.summary.title == title), "{title} is missing");
                    ours.tree_page(&ThreadFilter::default(), None, 10)
                        .expect("takes of the same transaction");
                }
            });
        }
    });
    assert_eq!(titles(&world.timeline, &ThreadFilter::default(), 7).len(), 81);
}
