//! A store with history verifies clean; verification finds and classifies every kind of planted damage.

use crate::support::*;
use rusqlite::Connection;

#[test]
fn a_grown_store_is_clean_and_counted() {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    let verified = assert_clean(&store);
    assert_eq!(verified.threads, grown.threads.len() as u64);
    assert_eq!(verified.takes, 5);
    assert!(verified.objects > 100 && verified.object_bytes > 1000 && verified.operations > 30);
    assert_eq!(verified.known_losses, 0);
    assert!(!codes_match_json(&store).is_empty());
}

/// The code of a problem equals the tag in its JSON.
fn codes_match_json(store: &retake_store::Store) -> Vec<String> {
    let folder = store.folder().to_owned();
    let raw = Connection::open(folder.join("retake.db")).expect("open succeeds");
    raw.execute_batch(
        "DELETE FROM facet; DELETE FROM thread; UPDATE object_index SET prefix = 1 WHERE number = 1",
    )
    .expect("damage planted");
    let problems = verify(store).problems;
    problems
        .iter()
        .map(|problem| {
            let json = serde_json::to_value(problem).expect("serializes");
            assert_eq!(json["code"], problem.code());
            assert!(!problem.to_string().is_empty());
            problem.code().to_owned()
        })
        .collect()
}

type Plant = fn(&Connection);

/// Each kind of damage, and the problems reported for it.
const DAMAGE: &[(&str, &[&str], Plant)] = &[
    ("none (the control)", &[], |_| {}),
    ("a byte of an entry flipped", &["object_damaged", "reference_missing", "thread_incomplete"], |raw| {
        flip(raw, 1);
    }),
    ("a byte of a state flipped", &["object_damaged", "reference_missing", "thread_incomplete"], |raw| {
        flip(raw, 6);
    }),
    ("an object gone with its index row", &["reference_missing", "thread_incomplete"], |raw| {
        run(raw, "DELETE FROM object_index WHERE number = (SELECT min(number) FROM object WHERE kind = 1)");
        run(raw, "DELETE FROM object WHERE number = (SELECT min(number) FROM object WHERE kind = 1)");
    }),
    (
        "an object gone, its index row left",
        &["index_stray", "reference_missing", "thread_incomplete"],
        |raw| run(raw, "DELETE FROM object WHERE number = (SELECT min(number) FROM object WHERE kind = 1)"),
    ),
    (
        "an object said to be of no known kind",
        &["object_damaged", "reference_missing", "thread_incomplete"],
        |raw| {
            run(
                raw,
                "UPDATE object SET kind = 99 WHERE number = (SELECT min(number) FROM object WHERE kind = 1)",
            );
        },
    ),
    ("an index row gone", &["object_not_indexed"], |raw| {
        run(raw, "DELETE FROM object_index WHERE number = (SELECT min(number) FROM object WHERE kind = 1)");
    }),
    ("an index row too many", &["index_stray"], |raw| {
        run(raw, "INSERT INTO object_index (prefix, number) VALUES (42, 999999)");
    }),
    ("content that is nothing", &["object_malformed"], |raw| {
        let body = b"not a take at all";
        let id = retake_model::content::ContentId::of(retake_model::content::Kind::Take, body);
        raw.execute(
            "INSERT INTO object (number, kind, packing, born, body) VALUES (999999, 3, 0, 0, ?1)",
            [body.as_slice()],
        )
        .expect("damage planted");
        raw.execute("INSERT INTO object_index (prefix, number) VALUES (?1, 999999)", [id.prefix()])
            .expect("damage planted");
    }),
    ("an operation's bytes flipped", &["operation_damaged"], |raw| {
        let (sequence, mut body): (i64, Vec<u8>) = raw
            .query_row("SELECT sequence, body FROM operation WHERE version = 5", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .expect("a matching row");
        body[40] ^= 1;
        raw.execute("UPDATE operation SET body = ?2 WHERE sequence = ?1", rusqlite::params![sequence, body])
            .expect("damage planted");
    }),
    ("an operation cut out of the middle", &["log_gap"], |raw| {
        run(raw, "DELETE FROM operation WHERE version = 7");
    }),
    ("the last operation cut off", &["log_end_lost", "thread_index_differs"], |raw| {
        run(raw, "DELETE FROM operation WHERE thread = 3 AND version = 2");
    }),
    ("an operation under another thread", &["log_gap", "operation_foreign"], |raw| {
        run(raw, "UPDATE operation SET thread = 2, version = 4 WHERE thread = 1 AND version = 9");
    }),
    ("a mark of a purge beside a log", &["purged_thread_has_log"], |raw| {
        run(raw, "INSERT INTO operation (thread, version, id, body) VALUES (1, 0, x'', NULL)");
    }),
    ("a thread's title altered", &["row_checksums_differ", "thread_index_differs"], |raw| {
        run(raw, "UPDATE thread SET title = 'something else' WHERE number = 1");
    }),
    ("a thread's record altered", &["thread_index_differs"], |raw| {
        run(raw, "UPDATE thread SET record = x'00' WHERE number = 1");
    }),
    ("a thread listed elsewhere", &["row_checksums_differ", "thread_index_differs"], |raw| {
        run(raw, "UPDATE thread SET project = zeroblob(16) WHERE number = 1");
    }),
    ("a thread's row gone", &["row_checksums_differ", "thread_not_indexed"], |raw| {
        run(raw, "DELETE FROM thread WHERE number = 1");
    }),
    ("a take's row gone", &["take_index_differs"], |raw| {
        run(raw, "DELETE FROM take WHERE name = 'short'");
    }),
    ("a take's name altered", &["take_index_differs"], |raw| {
        run(raw, "UPDATE take SET name = 'long' WHERE name = 'short'");
    }),
    ("a facet gone", &["facets_differ", "row_checksums_differ"], |raw| {
        run(raw, "DELETE FROM facet WHERE value = 'feature/login'");
    }),
    ("a facet too many", &["facets_differ", "row_checksums_differ"], |raw| {
        run(raw, "INSERT INTO facet (kind, value, thread) VALUES (1, 'auth', 1)");
    }),
    ("rows of a thread that has no log", &["row_checksums_differ", "stray_rows"], |raw| {
        run(raw, "INSERT INTO facet (kind, value, thread) VALUES (1, 'auth', 77)");
        run(raw, "INSERT INTO presentation (thread, entry, shown) VALUES (78, x'00', 1)");
    }),
    ("a description of a table altered", &["schema_altered"], |raw| {
        raw.execute_batch(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, 'remote TEXT', 'remote BLOB') WHERE name = 'project';
             PRAGMA writable_schema = RESET",
        )
        .expect("damage planted");
    }),
    ("an altered row checksum", &["row_checksums_differ"], |raw| {
        run(raw, "UPDATE tally SET digest = digest + 1 WHERE kind = 13");
    }),
    ("a project's path altered", &["project_damaged"], |raw| {
        run(raw, "UPDATE project SET path = '/elsewhere'");
    }),
];

#[test]
fn every_kind_of_damage_is_found() {
    for (name, expected, plant) in DAMAGE {
        let folder = Folder::new();
        let store = folder.open();
        grow(&store);
        plant(&folder.raw());
        let verified = verify(&store);
        let problems: Vec<String> = verified.problems.iter().map(ToString::to_string).collect();
        assert_eq!(codes(&verified), *expected, "{name}: {problems:#?}");
    }
}

#[test]
fn damage_names_the_thread_and_its_newest_complete_version() {
    let folder = Folder::new();
    let store = folder.open();
    let thread = grow(&store).threads[0];
    flip(&folder.raw(), 1);
    let verified = verify(&store);
    let found = verified.problems.iter().find_map(|problem| match problem {
        retake_store::Problem::ThreadIncomplete { thread, newest_complete, .. } => {
            Some((thread.id, *newest_complete))
        }
        _ => None,
    });
    // Version 2 added the first entry, and every later state contains it.
    assert_eq!(found, Some((Some(thread), Some(1))));
}

fn run(raw: &Connection, sql: &str) {
    let changed = raw.execute(sql, []).expect("damage planted");
    assert!(changed > 0, "nothing was planted by {sql}");
}

/// Flips a byte in the first object of a kind.
fn flip(raw: &Connection, kind: i64) {
    let (number, mut body): (i64, Vec<u8>) = raw
        .query_row("SELECT number, body FROM object WHERE kind = ?1 ORDER BY number LIMIT 1", [kind], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("a matching row");
    let middle = body.len() / 2;
    body[middle] ^= 0x10;
    raw.execute("UPDATE object SET body = ?2 WHERE number = ?1", rusqlite::params![number, body])
        .expect("damage planted");
}
