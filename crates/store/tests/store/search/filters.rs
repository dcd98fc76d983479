//! Filters by thread and time, and the order of results.

use retake_model::command::{Command, InsertPosition, NewEntry};
use retake_model::entry::EntryVersion;
use retake_model::id::EntryId;
use retake_model::time::Timestamp;
use retake_store::{DeletedFilter, Facet, SearchOrder, SearchQuery, SearchScope};

use super::texts::Rng;
use super::world::{BEGINNING, World};

#[test]
fn filters_narrow_a_search() {
    let mut world = World::new();
    world.around.git_branch = Some("main".to_owned());
    world.around.git_commit = Some("abcdef0123".to_owned());
    world.around.working_directory = Some("/home/me/code/api".to_owned());
    let first = world.thread("Fix the login page");
    let old = world.say(first, "User", "needle one");
    world.around = retake_model::environment::Environment::default();
    let second = world.thread("Other");
    let new = world.say(second, "AI", "needle two");
    world.command(first, Command::Tag { add: vec!["bug".to_owned()], remove: vec![] });

    let check = |change: &dyn Fn(&mut SearchQuery), expected: &[EntryId]| {
        let mut query = SearchQuery { order: SearchOrder::Newest, ..SearchQuery::words("needle") };
        change(&mut query);
        let found: Vec<EntryId> = world.find(&query).iter().map(|hit| hit.entry).collect();
        assert_eq!(found, expected, "{query:?}");
        // Without words, the same filters list the same entries.
        query.words.clear();
        let found: Vec<EntryId> = world.find(&query).iter().map(|hit| hit.entry).collect();
        assert_eq!(found, expected, "{query:?}");
    };
    let facet = |facet: Facet, value: &str| {
        let facets = vec![(facet, value.to_owned())];
        move |query: &mut SearchQuery| query.threads.facets.clone_from(&facets)
    };
    check(&|_| (), &[new, old]);
    check(&|query| query.roles = vec!["user".to_owned()], &[old]);
    check(&|query| query.roles = vec!["ai".to_owned()], &[new]);
    check(&|query| query.roles = vec!["' OR 1=1 --".to_owned()], &[]);
    check(&facet(Facet::Tag, "bug"), &[old]);
    check(&facet(Facet::Branch, "main"), &[old]);
    check(&facet(Facet::Commit, "abcd"), &[old]);
    check(&facet(Facet::Commit, "abce"), &[]);
    check(&facet(Facet::Directory, "/home/me/code"), &[old]);
    check(&facet(Facet::Directory, "/home/you"), &[]);
    check(&|query| query.threads.title = Some("LOGIN".to_owned()), &[old]);
    check(&|query| query.threads.project = Some(world.project), &[new, old]);
    check(&|query| query.threads.deleted = DeletedFilter::Only, &[]);
    check(&|query| query.since = Some(Timestamp::from_millis(BEGINNING)), &[new, old]);
    check(&|query| query.until = Some(Timestamp::from_millis(BEGINNING)), &[]);
    let time = world.find(&SearchQuery::words("two"))[0].time;
    check(&|query| query.since = Some(time), &[new]);
    check(&|query| query.until = Some(Timestamp::from_millis(time.millis() - 1)), &[old]);
    check(&|query| query.limit = 1, &[new]);
    check(&|query| query.offset = 1, &[old]);
    check(&|query| query.offset = 9, &[]);

    world.command(first, Command::Delete);
    check(&|_| (), &[new]);
    check(&|query| query.threads.deleted = DeletedFilter::Shown, &[new, old]);
    check(&|query| query.threads.deleted = DeletedFilter::Only, &[old]);
}

#[test]
fn current_and_past_versions_are_distinguished() {
    let world = World::new();
    let thread = world.thread("Story");
    let entries =
        world.say_all(thread, &[("User", "alpha one"), ("AI", "beta two"), ("User", "gamma three")]);
    let main = world.active(thread);
    let now = |words: &str| world.find(&SearchQuery::words(words));
    let ever =
        |words: &str| world.find(&SearchQuery { scope: SearchScope::History, ..SearchQuery::words(words) });

    // Edited in one take, unchanged in another.
    world.branch(thread, entries[1], "other");
    let other = world.active(thread);
    world.edit(thread, entries[1], "beta rewritten");
    let hits = now("two");
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].take, hits[0].position), (Some(main), Some(1)));
    let hits = now("rewritten");
    assert_eq!((hits[0].take, hits[0].position), (Some(other), Some(1)));
    // In both takes: the result names the active one.
    assert_eq!(now("alpha")[0].take, Some(other));

    // Deleted from all takes.
    world.command(thread, Command::Switch { take: main });
    world.command(thread, Command::DeleteEntries { take: main, entries: vec![entries[1], entries[2]] });
    assert_eq!(now("two"), []);
    assert_eq!(now("gamma"), []);
    let hits = ever("two");
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].take, hits[0].position), (None, None));
    assert_eq!(ever("beta").len(), 2);

    // Deleting a take removes its entries from the current ones.
    world.command(thread, Command::DeleteTake { take: other });
    assert_eq!(now("rewritten"), []);
    assert_eq!(ever("rewritten").len(), 1);
    assert_eq!(now("alpha")[0].take, Some(main));
    world.assert_sound();
}

#[test]
fn many_takes_are_looked_up_together() {
    let world = World::new();
    let thread = world.thread("Forks");
    let first = world.say(thread, "User", "shared stem");
    let main = world.active(thread);
    for number in 0..40 {
        world.command(thread, Command::Switch { take: main });
        world.branch(thread, first, &format!("fork {number}"));
        world.say(thread, "User", &format!("leaf number{number}"));
    }
    world.edit(thread, first, "another stem");
    let hits = world.find(&SearchQuery::words("number7"));
    assert_eq!(hits[0].position, Some(1));
    let hits = world.find(&SearchQuery::words("shared"));
    assert_eq!(hits.len(), 1);
    assert_ne!(hits[0].take, Some(world.active(thread)));
    assert_eq!(world.find(&SearchQuery { limit: 100, ..SearchQuery::words("leaf") }).len(), 40);
    world.assert_sound();
}

#[test]
fn better_matches_come_first_and_then_newer_ones() {
    let world = World::new();
    let thread = world.thread("Ranks");
    let older = world.say(thread, "User", "lantern by the door");
    let newer = world.say(thread, "User", "lantern by the gate");
    let best = world.say(thread, "User", "lantern lantern lantern");
    for _ in 0..20 {
        world.say(thread, "User", &format!("lantern among {}", "many other words ".repeat(20)));
    }
    let found = world.entries("lantern");
    assert_eq!(found[..3], [best, newer, older]);
    let newest = world.find(&SearchQuery { order: SearchOrder::Newest, ..SearchQuery::words("lantern") });
    assert!(newest.is_sorted_by(|left, right| left.time >= right.time));
}

#[test]
fn an_older_read_transaction_can_still_search() {
    let world = World::new();
    let thread = world.thread("Times");
    world.say(thread, "User", "early bird");
    let early = world.store.read().expect("a read transaction");
    world.say(thread, "User", "late bird");
    assert_eq!(world.entries("bird").len(), 2);
    let found = world.index.search(&early.queries(), &SearchQuery::words("bird")).expect("search succeeds");
    assert_eq!(found.len(), 1, "what came later is not in its thread yet");
    assert_eq!(world.index.rebuild_reason(), None);
    assert_eq!(world.entries("bird").len(), 2);
}

/// Imported conversations are indexed later than they were written. `newest` waits until nothing newer can follow.
#[test]
fn the_newest_come_first_however_they_were_indexed() {
    let world = World::new();
    let mut rng = Rng(7);
    let mut times = Vec::new();
    for number in 0..30 {
        let thread = world.thread(&format!("Imported {number}"));
        let take = world.active(thread);
        // Some conversations are written now, some are older, and a few have times in the future.
        let (start, spread) = [(1_000, 10), (10, 900), (1_000, 900), (5_000, 1)][rng.below(4) as usize];
        let entries = (0..20).map(|_| {
            let time = Timestamp::from_millis(
                BEGINNING + ((start + number * 10 + rng.below(spread)) * 1_000) as i64,
            );
            times.push(time);
            NewEntry::from(EntryVersion::from_text("User", "common word", time))
        });
        let entries = entries.collect();
        world.command(thread, Command::AddEntries { take, at: InsertPosition::End, entries });
    }
    times.sort_by_key(|time| std::cmp::Reverse(*time));
    for (offset, limit) in [(0, 1), (0, 20), (40, 20), (590, 20), (0, 1000)] {
        let query = SearchQuery { order: SearchOrder::Newest, offset, limit, ..SearchQuery::words("common") };
        let found: Vec<Timestamp> = world.find(&query).iter().map(|hit| hit.time).collect();
        let end = (offset + limit).min(times.len());
        assert_eq!(found, times[offset..end], "{offset} {limit}");
    }
}

#[test]
fn a_common_word_is_found_in_an_old_thread() {
    let world = World::new();
    let old = world.thread("Old");
    let first = world.say(old, "User", "common here");
    let other = world.thread("Other");
    let entries: Vec<(&str, &str)> = vec![("User", "common there"); 10_500];
    world.say_all(other, &entries);
    let late = world.say(old, "AI", "common and late");
    for order in [SearchOrder::Relevance, SearchOrder::Newest] {
        let query = SearchQuery { thread: Some(old), order, limit: 50, ..SearchQuery::words("common") };
        let found: Vec<EntryId> = world.find(&query).iter().map(|hit| hit.entry).collect();
        assert_eq!(found, [late, first], "{order:?}");
        let everywhere = SearchQuery { thread: None, offset: 10_000, limit: 600, ..query };
        assert_eq!(world.find(&everywhere).len(), 502, "{order:?}");
    }
    let none = world.thread("Empty");
    assert_eq!(world.find(&SearchQuery { thread: Some(none), ..SearchQuery::words("common") }), []);
}
