//! After a repair the store verifies clean, and the report lists all losses.

use crate::support::*;
use retake_model::command::{Command, InsertPosition};
use retake_model::content::Kind;
use retake_model::entry::EntryVersion;
use retake_model::object::load;
use retake_model::operation::{Actor, OperationKind};
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use retake_store::{OpenError, RepairChange, RepairReport, Store, StoreError};
use rusqlite::{Connection, params};

fn repair(store: &Store) -> RepairReport {
    store.repair(&mut |_| {}, Timestamp::from_millis(START + 1_000_000)).expect("the repair runs")
}

fn run(raw: &Connection, sql: &str) {
    let changed = raw.execute(sql, []).expect("damage planted");
    assert!(changed > 0, "nothing was planted by {sql}");
}

fn flip(raw: &Connection, kind: Kind, which: &str) {
    let (number, mut body): (i64, Vec<u8>) = raw
        .query_row(
            &format!("SELECT number, body FROM object WHERE kind = ?1 ORDER BY number {which} LIMIT 1"),
            [kind as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .expect("a matching row");
    let middle = body.len() / 2;
    body[middle] ^= 0x10;
    raw.execute("UPDATE object SET body = ?2 WHERE number = ?1", params![number, body])
        .expect("damage planted");
}

fn change_codes(repaired: &RepairReport) -> Vec<&'static str> {
    let mut codes: Vec<&str> = repaired.changes.iter().map(RepairChange::code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn an_intact_store_is_unchanged() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    let repaired = repair(&store);
    assert!(repaired.is_unchanged(), "{repaired:?}");
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn derived_rows_are_rebuilt() {
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
        .expect("damage planted");
    assert!(!verify(&store).is_clean());
    let repaired = repair(&store);
    assert_eq!(change_codes(&repaired), ["index_repaired", "stray_rows_removed", "thread_index_rebuilt"]);
    assert_eq!(repaired.losses().count(), 0);
    assert_clean(&store);
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn a_lost_entry_is_replaced_by_a_note() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    let main = active(&store, thread);
    // Switch to the take that contains all entries.
    let takes = store.read().expect("a read transaction");
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
        ["content_lost", "entry_replaced", "index_repaired", "object_quarantined", "thread_index_rebuilt"]
    );
    assert_eq!(repaired.losses().count(), 1);
    let verified = assert_clean(&store);
    assert_eq!(verified.known_losses, 1);
    let after = entries(&store, thread);
    assert_eq!(after.len(), before.len());
    assert!(after[0].2.contains("was lost"), "{:?}", after[0]);
    assert_eq!(after[0].0, before[0].0, "it is still the same entry");
    assert_eq!(after[1..], before[1..]);
    let reading = store.read().expect("a read transaction");
    let head = reading.queries().head(number_of(&store, thread)).expect("readable");
    assert_eq!(head.expect("a head").operation.actor, Actor::Recovery);
    // A second repair finds nothing to do.
    drop(reading);
    assert!(repair(&store).is_unchanged());
    // The original bytes are in quarantine.
    let kept: i64 = folder
        .raw()
        .query_row("SELECT count(*) FROM quarantine", [], |row| row.get(0))
        .expect("rows counted");
    assert_eq!(kept, 1);
}

#[test]
fn a_lost_list_node_costs_only_its_entries() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = create(&store, grow(&store).project, "long");
    let take = active(&store, thread);
    let messages: Vec<String> = (0..200).map(|turn| format!("turn {turn}")).collect();
    let new = |text: &String| EntryVersion::from_text("User", text, Timestamp::from_millis(START)).into();
    let entries_to_add = messages.iter().map(new).collect();
    publish(&store, thread, Command::AddEntries { take, at: InsertPosition::End, entries: entries_to_add });
    publish(&store, thread, Command::Pin { pinned: true });
    let before = entries(&store, thread);
    // Leaves have the lowest numbers: a list is stored bottom-up.
    let raw = folder.raw();
    let number: i64 = raw
        .query_row("SELECT max(number) FROM object WHERE kind = 1", [], |row| row.get(0))
        .expect("a matching row");
    let lost = raw
        .execute("DELETE FROM object WHERE number = (SELECT min(number) FROM object WHERE kind = 2 AND number > ?1)", [number])
        .expect("damage planted");
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
    let reading = store.read().expect("a read transaction");
    let row = reading.queries().thread(thread).expect("readable").expect("row exists");
    assert!(row.summary.pinned, "what else was changed is kept");
}

#[test]
fn a_lost_state_rolls_the_thread_back_to_the_newest_complete_one() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[1];
    let number = number_of(&store, thread);
    let (after, versions) = {
        let reading = store.read().expect("a read transaction");
        let operations = reading.queries().operations_back(number, u64::MAX, 10).expect("readable");
        (operations[1].operation.after, operations.len() as u64)
    };
    // The newest state of the second thread, found through its log.
    let lost: Vec<u8> = {
        let reading = store.read().expect("a read transaction");
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
        .expect("damage planted");
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    assert!(change_codes(&repaired).contains(&"thread_rolled_back"), "{repaired:?}");
    assert_clean(&store);
    let reading = store.read().expect("a read transaction");
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
fn a_log_with_a_gap_keeps_all_other_operations() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    let number = number_of(&store, thread);
    let before = entries(&store, thread);
    let states = |store: &Store| -> Vec<String> {
        let reading = store.read().expect("a read transaction");
        let operations = reading.queries().operations_back(number, u64::MAX, 1000).expect("readable");
        operations.iter().rev().map(|stored| stored.operation.after.to_string()).collect()
    };
    let states_before = states(&store);
    run(&folder.raw(), "DELETE FROM operation WHERE thread = 1 AND version = 9");
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    let joined = repaired.changes.iter().find_map(|change| match change {
        RepairChange::LogJoined { from, kept, lost, .. } => Some((*from, *kept, *lost)),
        _ => None,
    });
    let total = states_before.len() as u64;
    assert_eq!(joined, Some((9, total - 9, 1)));
    assert_clean(&store);
    let mut expected = states_before;
    expected.remove(8);
    assert_eq!(states(&store), expected, "every other state is where it was");
    assert_eq!(entries(&store, thread), before);
    // Undo works across the gap.
    for _ in 0..4 {
        publish(&store, thread, NextOperation::Undo);
    }
    assert_clean(&store);
}

#[test]
fn a_log_without_a_start_begins_at_the_first_intact_operation() {
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
    let reading = store.read().expect("a read transaction");
    let row = reading.queries().thread(thread).expect("readable").expect("row exists");
    assert_eq!(row.summary.project, grown.project, "the column still knew");
}

#[test]
fn misplaced_rows_return_to_their_place() {
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
fn a_thread_without_readable_states_restarts_and_keeps_its_log() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[2];
    let states: Vec<i64> = {
        let reading = store.read().expect("a read transaction");
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
            .expect("damage planted");
    }
    drop(store);
    let store = folder.open();
    let repaired = repair(&store);
    assert!(change_codes(&repaired).contains(&"thread_emptied"), "{repaired:?}");
    assert_clean(&store);
    assert_eq!(entries(&store, thread), []);
    let reading = store.read().expect("a read transaction");
    let head = reading.queries().head(number_of(&store, thread)).expect("readable").expect("a head");
    assert_eq!(head.operation.version, 3);
    let state: ThreadState = load(&reading.queries(), head.operation.after).expect("readable");
    assert_eq!(state.title, "Recovered thread");
}

/// Overwrites a page of the file.
fn spoil_page(folder: &Folder, page: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(folder.database()).expect("open succeeds");
    file.write_all_at(&[0x5a; PAGE], (page - 1) * PAGE as u64).expect("write succeeds");
}

/// A leaf page of a table.
fn leaf_of(folder: &Folder, table: &str) -> Option<u64> {
    // Finds the page by its content, since SQLite offers no list of a table's pages.
    let raw = folder.raw();
    let needle: Vec<u8> = match table {
        "operation" => raw
            .query_row("SELECT id FROM operation WHERE version = 20", [], |row| row.get(0))
            .expect("a matching row"),
        _ => raw
            .query_row("SELECT body FROM object WHERE kind = 6 ORDER BY number DESC LIMIT 1", [], |row| {
                row.get(0)
            })
            .expect("a matching row"),
    };
    drop(raw);
    let bytes = std::fs::read(folder.database()).expect("readable");
    let at = bytes.windows(needle.len()).position(|window| window == needle)?;
    Some((at / PAGE) as u64 + 1)
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

/// A table that lost its root page has lost the path to its rows, but no rows.
#[test]
fn a_table_without_its_root_is_rebuilt_from_its_leaves() {
    for table in ["object", "operation"] {
        let folder = Folder::new();
        let store = folder.open();
        let thread = grow(&store).threads[1];
        let take = active(&store, thread);
        for turn in 0..60 {
            // Long and incompressible, so that each is on separate pages.
            let text: String =
                (0..3000u32).map(|n| char::from(b'a' + ((n * n + turn * n) % 23) as u8)).collect();
            publish(&store, thread, say(take, "User", &text));
        }
        let before = dump(&store).expect("readable");
        drop(store);
        let root: i64 = folder
            .raw()
            .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))
            .expect("a matching row");
        {
            use std::os::unix::fs::FileExt;
            let file =
                std::fs::OpenOptions::new().write(true).open(folder.database()).expect("open succeeds");
            file.write_all_at(&[0; PAGE], (root as u64 - 1) * PAGE as u64).expect("write succeeds");
        }
        let store = folder.open();
        let repaired = repair(&store);
        assert!(repaired.salvaged.is_some(), "{repaired:?}");
        assert_eq!(repaired.losses().count(), 0, "{table}: {repaired:?}");
        assert_clean(&store);
        assert_eq!(dump(&store).expect("readable"), before);
    }
}

/// Whichever log pages are damaged, one repair leaves a usable store that verifies clean.
#[test]
fn one_repair_suffices_for_damaged_log_pages() {
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
            raw.prepare("SELECT id FROM operation WHERE version IN (30, 60, 90, 120)").expect("valid SQL");
        let rows = statement.query_map([], |row| row.get(0)).expect("run succeeds");
        rows.collect::<Result<_, _>>().expect("readable")
    };
    let bytes = std::fs::read(folder.database()).expect("readable");
    let page_of = |needle: &[u8]| {
        bytes.windows(needle.len()).position(|window| window == needle).map(|at| (at / PAGE) as u64 + 1)
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
fn a_store_without_its_first_page_is_salvaged_completely() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let before = dump(&store).expect("readable");
    drop(store);
    spoil_page(&folder, 1);
    assert!(Store::open(&folder.path).is_err());
    let repaired =
        Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START)).expect("salvage succeeds");
    assert!(repaired.salvaged.is_some());
    assert_eq!(repaired.losses().count(), 0, "{repaired:?}");
    let store = folder.open();
    assert_clean(&store);
    assert_eq!(dump(&store).expect("readable"), before);
}

#[test]
fn an_altered_schema_is_damage_and_is_salvaged_completely() {
    let check = |was: &[u8], became: &[u8]| {
        let folder = Folder::new();
        let store = folder.open();
        grow(&store);
        let before = dump(&store).expect("readable");
        drop(store);
        let mut bytes = std::fs::read(folder.database()).expect("readable");
        let at = bytes[..SCHEMA_BYTES].windows(was.len()).position(|found| found == was).expect("text found");
        bytes[at..at + became.len()].copy_from_slice(became);
        std::fs::write(folder.database(), bytes).expect("write succeeds");
        let what = String::from_utf8_lossy(became);
        let refused = Store::open(&folder.path).err();
        assert!(
            matches!(refused, Some(OpenError::Store(StoreError::Damaged(_)))),
            "{what}: {:?}",
            refused.map(|error| error.to_string())
        );
        let repaired = Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START))
            .expect("salvage succeeds");
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
fn a_foreign_file_is_not_salvaged() {
    let folder = Folder::new();
    drop(folder.open());
    let bytes = b"a shopping list, not a database ".repeat(500);
    std::fs::write(folder.database(), &bytes).expect("write succeeds");
    let refused = Store::salvage(&folder.path, &mut |_| {}, Timestamp::from_millis(START));
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(std::fs::read(folder.database()).expect("readable"), bytes);
}
