//! After a repair the store verifies clean, and what could not be saved is named.

use crate::support::*;
use retake_model::command::{Command, Spot};
use retake_model::content::Kind;
use retake_model::entry::EntryVersion;
use retake_model::object::load;
use retake_model::operation::{Actor, OperationKind};
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use retake_store::{Change, OpenError, Repaired, Store, StoreError};
use rusqlite::{Connection, params};

fn repair(store: &Store) -> Repaired {
    store.repair(&mut |_| {}, Timestamp::from_millis(START + 1_000_000)).expect("the repair runs")
}

fn run(raw: &Connection, sql: &str) {
    let changed = raw.execute(sql, []).expect("plants");
    assert!(changed > 0, "nothing was planted by {sql}");
}

fn flip(raw: &Connection, kind: Kind, which: &str) {
    let (number, mut body): (i64, Vec<u8>) = raw
        .query_row(
            &format!("SELECT number, body FROM object WHERE kind = ?1 ORDER BY number {which} LIMIT 1"),
            [kind as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .expect("there is one");
    let middle = body.len() / 2;
    body[middle] ^= 0x10;
    raw.execute("UPDATE object SET body = ?2 WHERE number = ?1", params![number, body]).expect("plants");
}

fn change_codes(repaired: &Repaired) -> Vec<&'static str> {
    let mut codes: Vec<&str> = repaired.changes.iter().map(Change::code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn a_sound_store_is_left_as_it_is() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    let repaired = repair(&store);
    assert!(repaired.is_unchanged(), "{repaired:?}");
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn everything_derived_is_made_anew() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    folder
        .raw()
        .execute_batch(
            "DELETE FROM object_index WHERE number % 3 = 0;
             UPDATE object_index SET prefix = prefix + 1 WHERE number % 7 = 0;
             INSERT INTO object_index VALUES (1, 999999);
             DELETE FROM thread WHERE number = 2; UPDATE thread SET title = 'x', record = x'00';
             DELETE FROM take; INSERT INTO facet VALUES (1, 'wrong', 1), (1, 'stray', 55);
             DELETE FROM facet WHERE kind = 2;",
        )
        .expect("plants");
    assert!(!verify(&store).is_clean());
    let repaired = repair(&store);
    assert_eq!(change_codes(&repaired), ["index_mended", "stray_rows_removed", "thread_derived"]);
    assert_eq!(repaired.losses().count(), 0);
    assert_clean(&store);
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn a_lost_entry_leaves_a_note_and_everything_else() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    let main = active(&store, thread);
    // Back to the take that all entries are in.
    let takes = store.read().expect("a reading");
    let first = takes.queries().takes_of(number_of(&store, thread)).expect("readable").remove(0);
    drop(takes);
    assert_ne!(main, first.summary.id);
    publish(&store, thread, Command::Switch { take: first.summary.id });
    let before = entries(&store, thread);
    flip(&folder.raw(), Kind::Entry, "ASC");
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    assert_eq!(
        change_codes(&repaired),
        ["content_lost", "entry_replaced", "index_mended", "object_set_aside", "thread_derived"]
    );
    assert_eq!(repaired.losses().count(), 1);
    let verified = assert_clean(&store);
    assert_eq!(verified.known_losses, 1);
    let after = entries(&store, thread);
    assert_eq!(after.len(), before.len());
    assert!(after[0].2.contains("was lost"), "{:?}", after[0]);
    assert_eq!(after[0].0, before[0].0, "it is still the same entry");
    assert_eq!(after[1..], before[1..]);
    let reading = store.read().expect("a reading");
    let head = reading.queries().head(number_of(&store, thread)).expect("readable");
    assert_eq!(head.expect("a head").operation.actor, Actor::Recovery);
    // A second repair finds nothing to do.
    drop(reading);
    assert!(repair(&store).is_unchanged());
    // The bytes as they were found are kept.
    let kept: i64 =
        folder.raw().query_row("SELECT count(*) FROM quarantine", [], |row| row.get(0)).expect("countable");
    assert_eq!(kept, 1);
}

#[test]
fn a_lost_node_of_a_list_costs_only_the_entries_that_it_names() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = create(&store, grow(&store).project, "long");
    let take = active(&store, thread);
    let said: Vec<String> = (0..200).map(|turn| format!("turn {turn}")).collect();
    let new = |text: &String| EntryVersion::from_text("User", text, Timestamp::from_millis(START)).into();
    let entries_to_add = said.iter().map(new).collect();
    publish(&store, thread, Command::AddEntries { take, at: Spot::End, entries: entries_to_add });
    publish(&store, thread, Command::Pin { pinned: true });
    let before = entries(&store, thread);
    // Leaves come first: a list is stored from below.
    let raw = folder.raw();
    let number: i64 = raw
        .query_row("SELECT max(number) FROM object WHERE kind = 1", [], |row| row.get(0))
        .expect("there is one");
    let lost = raw
        .execute("DELETE FROM object WHERE number = (SELECT min(number) FROM object WHERE kind = 2 AND number > ?1)", [number])
        .expect("plants");
    assert_eq!(lost, 1);
    drop((raw, store));
    let store = folder.open();
    let repaired = repair(&store);
    assert!(change_codes(&repaired).contains(&"entries_lost"), "{repaired:?}");
    assert_clean(&store);
    let after = entries(&store, thread);
    let gone = before.len() - after.len();
    assert!((1..=64).contains(&gone), "{gone} are gone");
    assert_eq!(after[..], before[gone..], "all others are there, in order");
    let reading = store.read().expect("a reading");
    let row = reading.queries().thread(thread).expect("readable").expect("there");
    assert!(row.summary.pinned, "what else was changed is kept");
}

#[test]
fn a_lost_state_sends_the_thread_back_to_the_newest_whole_one() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[1];
    let number = number_of(&store, thread);
    let (after, versions) = {
        let reading = store.read().expect("a reading");
        let operations = reading.queries().operations_back(number, u64::MAX, 10).expect("readable");
        (operations[1].operation.after, operations.len() as u64)
    };
    // The newest state of the second thread, found by its place in the log.
    let lost: Vec<u8> = {
        let reading = store.read().expect("a reading");
        let head = reading.queries().head(number).expect("readable").expect("a head");
        head.operation.after.bytes().to_vec()
    };
    let prefix = i64::from_be_bytes(lost[..8].try_into().expect("eight bytes"));
    folder
        .raw()
        .execute(
            "DELETE FROM object WHERE number = (SELECT number FROM object_index WHERE prefix = ?1)",
            [prefix],
        )
        .expect("plants");
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    assert!(change_codes(&repaired).contains(&"thread_went_back"), "{repaired:?}");
    assert_clean(&store);
    let reading = store.read().expect("a reading");
    let head = reading.queries().head(number).expect("readable").expect("a head");
    assert_eq!(head.operation.version, versions + 1, "the log only grows");
    assert_eq!(head.operation.after, after);
    assert_eq!(head.operation.actor, Actor::Recovery);
    assert!(matches!(head.operation.kind, OperationKind::Jumped { from: 3, to: 2 }));
    drop(reading);
    publish(&store, thread, say(active(&store, thread), "User", "and on it goes"));
    assert_clean(&store);
}

#[test]
fn a_log_with_a_hole_keeps_all_other_operations() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    let number = number_of(&store, thread);
    let before = entries(&store, thread);
    let states = |store: &Store| -> Vec<String> {
        let reading = store.read().expect("a reading");
        let operations = reading.queries().operations_back(number, u64::MAX, 1000).expect("readable");
        operations.iter().rev().map(|stored| stored.operation.after.to_string()).collect()
    };
    let states_before = states(&store);
    run(&folder.raw(), "DELETE FROM operation WHERE thread = 1 AND version = 9");
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    let joined = repaired.changes.iter().find_map(|change| match change {
        Change::LogJoined { from, kept, lost, .. } => Some((*from, *kept, *lost)),
        _ => None,
    });
    let total = states_before.len() as u64;
    assert_eq!(joined, Some((9, total - 9, 1)));
    assert_clean(&store);
    let mut expected = states_before;
    expected.remove(8);
    assert_eq!(states(&store), expected, "every other state is where it was");
    assert_eq!(entries(&store, thread), before);
    // Undo works across the seam.
    for _ in 0..4 {
        publish(&store, thread, Next::Undo);
    }
    assert_clean(&store);
}

#[test]
fn a_log_without_a_beginning_begins_where_it_can() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let thread = grown.threads[0];
    let before = entries(&store, thread);
    run(&folder.raw(), "DELETE FROM operation WHERE thread = 1 AND version < 4");
    run(&folder.raw(), "UPDATE thread SET record = x'00' WHERE number = 1");
    drop(store);
    let store = folder.open();
    repair(&store);
    assert_clean(&store);
    assert_eq!(entries(&store, thread), before);
    let reading = store.read().expect("a reading");
    let row = reading.queries().thread(thread).expect("readable").expect("there");
    assert_eq!(row.summary.project, grown.project, "the column still knew");
}

#[test]
fn rows_go_back_to_where_their_bytes_say_they_belong() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    let raw = folder.raw();
    run(&raw, "UPDATE operation SET thread = 2, version = 900 WHERE thread = 1 AND version = 6");
    run(&raw, "UPDATE operation SET version = 700 WHERE thread = 1 AND version = 8");
    run(&raw, "UPDATE operation SET id = zeroblob(32) WHERE thread = 1 AND version = 12");
    drop(raw);
    assert!(!verify(&store).is_clean());
    let repaired = repair(&store);
    assert_eq!(change_codes(&repaired), ["operation_returned"], "{repaired:?}");
    assert_clean(&store);
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn a_thread_without_any_readable_state_starts_over_and_keeps_its_log() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[2];
    let states: Vec<i64> = {
        let reading = store.read().expect("a reading");
        let number = number_of(&store, thread);
        let operations = reading.queries().operations_back(number, u64::MAX, 10).expect("readable");
        operations.iter().map(|stored| stored.operation.after.prefix()).collect()
    };
    for prefix in states {
        folder
            .raw()
            .execute(
                "DELETE FROM object WHERE number = (SELECT number FROM object_index WHERE prefix = ?1)",
                [prefix],
            )
            .expect("plants");
    }
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    assert!(change_codes(&repaired).contains(&"thread_emptied"), "{repaired:?}");
    assert_clean(&store);
    assert_eq!(entries(&store, thread), []);
    let reading = store.read().expect("a reading");
    let head = reading.queries().head(number_of(&store, thread)).expect("readable").expect("a head");
    assert_eq!(head.operation.version, 3);
    let state: ThreadState = load(&reading.queries(), head.operation.after).expect("readable");
    assert_eq!(state.title, "Recovered thread");
}

/// Overwrites one page of the file.
fn spoil_page(folder: &Folder, page: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(folder.database()).expect("opens");
    file.write_all_at(&[0x5a; 4096], (page - 1) * 4096).expect("writes");
}

/// A page that is part of a table, neither its first nor shared with another.
fn leaf_of(folder: &Folder, table: &str) -> Option<u64> {
    // Without a page-by-page view of the file, the pages of a table are found by what is in them.
    let raw = folder.raw();
    let needle: Vec<u8> = match table {
        "operation" => raw
            .query_row("SELECT id FROM operation WHERE version = 20", [], |row| row.get(0))
            .expect("there is one"),
        _ => raw
            .query_row("SELECT body FROM object WHERE kind = 6 ORDER BY number DESC LIMIT 1", [], |row| {
                row.get(0)
            })
            .expect("there is one"),
    };
    drop(raw);
    let bytes = std::fs::read(folder.database()).expect("readable");
    let at = bytes.windows(needle.len()).position(|window| window == needle)?;
    Some(at as u64 / 4096 + 1)
}

#[test]
fn a_damaged_file_is_salvaged_in_place() {
    for table in ["object", "operation"] {
        let folder = Folder::new();
        let store = folder.open();
        let grown = grow(&store);
        drop(store);
        let page = leaf_of(&folder, table).expect("the page is found");
        spoil_page(&folder, page);
        let store = folder.open();
        let other = folder.open();
        assert!(codes(&verify(&store)).contains(&"database"));
        let repaired = repair(&store);
        let salvaged = repaired.salvaged.as_ref().expect("rows were salvaged");
        assert!(salvaged.rows > 100, "{salvaged:?}");
        assert!(salvaged.unreadable.iter().any(|rows| rows.table == table), "{salvaged:?}");
        assert!(salvaged.kept_as.ends_with("backups/damaged-1.db"));
        assert!(salvaged.kept_as.exists());
        assert_clean(&store);
        assert_clean(&other);
        assert!(!folder.path.join("salvage").exists());
        for thread in grown.threads {
            publish(&other, thread, say(active(&other, thread), "User", "still works"));
        }
        assert_clean(&store);
    }
}

/// A table whose topmost page is gone has lost the road to all its rows, and none of the rows.
#[test]
fn a_table_without_its_root_is_put_together_from_its_leaves() {
    for table in ["object", "operation"] {
        let folder = Folder::new();
        let store = folder.open();
        let thread = grow(&store).threads[1];
        let take = active(&store, thread);
        for turn in 0..60 {
            // Long enough to be on pages of their own, and not to be packed.
            let text: String =
                (0..3000u32).map(|n| char::from(b'a' + ((n * n + turn * n) % 23) as u8)).collect();
            publish(&store, thread, say(take, "User", &text));
        }
        let before = dump(&store).expect("readable");
        drop(store);
        let root: i64 = folder
            .raw()
            .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))
            .expect("there is one");
        {
            use std::os::unix::fs::FileExt;
            let file = std::fs::OpenOptions::new().write(true).open(folder.database()).expect("opens");
            file.write_all_at(&[0; 4096], (root as u64 - 1) * 4096).expect("writes");
        }
        let store = folder.open();
        let repaired = repair(&store);
        assert!(repaired.salvaged.is_some(), "{repaired:?}");
        assert_eq!(repaired.losses().count(), 0, "{table}: {repaired:?}");
        assert_clean(&store);
        assert_eq!(dump(&store).expect("readable"), before);
    }
}

/// Whatever pages of the log are damaged, one repair leaves a store that verifies clean and can be worked in.
#[test]
fn one_repair_is_enough_where_pages_of_the_log_are_damaged() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[1];
    let take = active(&store, thread);
    for turn in 0..120 {
        publish(&store, thread, say(take, "User", &format!("turn {turn}")));
    }
    drop(store);
    drop(folder.raw());
    let ids: Vec<Vec<u8>> = {
        let raw = folder.raw();
        let mut statement =
            raw.prepare("SELECT id FROM operation WHERE version IN (30, 60, 90, 120)").expect("prepares");
        let rows = statement.query_map([], |row| row.get(0)).expect("runs");
        rows.collect::<Result<_, _>>().expect("readable")
    };
    let bytes = std::fs::read(folder.database()).expect("readable");
    let page_of = |needle: &[u8]| {
        bytes.windows(needle.len()).position(|window| window == needle).map(|at| at as u64 / 4096 + 1)
    };
    for page in ids.iter().filter_map(|id| page_of(id)) {
        spoil_page(&folder, page);
    }
    let store = folder.open();
    assert!(!verify(&store).is_clean());
    let repaired = repair(&store);
    assert!(repaired.salvaged.is_some(), "{repaired:?}");
    assert_clean(&store);
    publish(&store, thread, say(active(&store, thread), "User", "still works"));
    assert_clean(&store);
}

#[test]
fn a_store_whose_first_page_is_gone_is_salvaged_whole() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    drop(store);
    spoil_page(&folder, 1);
    assert!(Store::open(&folder.path).is_err());
    let repaired =
        Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START)).expect("salvages");
    assert!(repaired.salvaged.is_some());
    assert_eq!(repaired.losses().count(), 0, "{repaired:?}");
    let store = folder.open();
    assert_clean(&store);
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn a_schema_that_says_something_else_is_damage_and_is_salvaged_whole() {
    let check = |was: &[u8], became: &[u8]| {
        let folder = Folder::new();
        let store = folder.open();
        grow(&store);
        let before = dump(&store).expect("readable");
        drop(store);
        let mut bytes = std::fs::read(folder.database()).expect("readable");
        let at = bytes[..4096].windows(was.len()).position(|found| found == was).expect("is there");
        bytes[at..at + became.len()].copy_from_slice(became);
        std::fs::write(folder.database(), bytes).expect("writes");
        let what = String::from_utf8_lossy(became);
        let refused = Store::open(&folder.path).err();
        assert!(
            matches!(refused, Some(OpenError::Store(StoreError::Damaged(_)))),
            "{what}: {:?}",
            refused.map(|error| error.to_string())
        );
        let repaired =
            Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START)).expect("salvages");
        assert_eq!(repaired.losses().count(), 0, "{what}: {repaired:?}");
        let store = folder.open();
        assert_clean(&store);
        assert_eq!(dump(&store).expect("readable"), before, "{what}");
    };
    check(b"kind INTEGER NOT NULL,packing INTEGER", b"packing INTEGER NOT NULL,kind INTEGER");
    check(b"thread INTEGER NOT NULL,version INTEGER", b"version INTEGER NOT NULL,thread INTEGER");
    check(b"born", b"bOrn");
    check(b"WITHOUT ROWID", b"without ROWID");
}

#[test]
fn what_is_not_a_store_is_not_salvaged() {
    let folder = Folder::new();
    drop(folder.open());
    let bytes = b"a shopping list, not a database ".repeat(500);
    std::fs::write(folder.database(), &bytes).expect("writes");
    let refused = Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START));
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(std::fs::read(folder.database()).expect("readable"), bytes);
}
