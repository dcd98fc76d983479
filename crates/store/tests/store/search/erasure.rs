//! Purged and redacted content leaves no bytes in the index.

use retake_store::SearchQuery;

use super::world::World;

#[test]
fn a_purged_thread_leaves_no_text_in_the_index() {
    let world = World::new();
    let (kept, purged) = (world.thread("Kept"), world.thread("Purged"));
    let stays = world.say(kept, "User", "xylophone in the open");
    world.say(purged, "User", "xylophone zanzibarsecret");
    assert_eq!(world.entries("xylophone").len(), 2);
    let number = {
        let reading = world.store.read().expect("a read transaction");
        reading.queries().thread(purged).expect("readable").expect("row exists").number
    };
    world.tamper(&format!(
        "INSERT INTO operation (thread, version, id, body) VALUES ({number}, 0, x'', NULL);
         DELETE FROM operation WHERE thread = {number} AND version > 0;
         DELETE FROM thread WHERE number = {number};"
    ));
    let reading = world.store.read().expect("a read transaction");
    let done = world.index.catch_up(&reading.queries(), &mut |_| ()).expect("catch-up succeeds");
    assert_eq!((done.added, done.removed, done.unreadable), (0, 1, 0));
    assert_eq!(world.entries("xylophone"), [stays]);
    world.assert_sound();
    assert!(!holds(&world, b"zanzibarsecret"));
    assert!(holds(&world, b"xylophone"), "the control: what is there can be seen in the file");
}

#[test]
fn the_next_command_finishes_a_purge_killed_before_the_index_step() {
    let world = World::new();
    let purged = world.thread("Purged");
    world.say(world.thread("Kept"), "User", "xylophone in the open");
    world.say(purged, "User", "xylophone zanzibarsecret");
    assert_eq!(world.entries("xylophone").len(), 2);
    let mark = world.folder.path().join("erasing");
    // The index is moved aside during the purge, as if the process had been killed before this step.
    let index = world.folder.path().join("search.db");
    let aside = world.folder.path().join("aside");
    std::fs::rename(&index, &aside).expect("a move");
    world.store.purge_threads(&[purged]).expect("a purge");
    assert!(!mark.exists());
    std::fs::rename(&aside, &index).expect("a move");
    assert!(holds(&world, b"zanzibarsecret"), "the control: its words are there");
    let running = std::fs::File::create(&mark).expect("an erasure marker");
    running.lock().expect("a lock");
    assert!(!world.store.finish_erasure().expect("erasure skipped"), "another process is at it");
    drop(running);
    assert!(world.store.finish_erasure().expect("erasure finished"));
    assert!(!mark.exists());
    assert!(!holds(&world, b"zanzibarsecret"));
    assert!(!world.store.finish_erasure().expect("nothing left to erase"));
    world.assert_sound();
}

#[test]
fn a_redacted_entry_leaves_no_text_in_the_index() {
    let world = World::new();
    let thread = world.thread("Secrets");
    world.say(thread, "User", "the password is quetzalcoatl");
    let version = world.find(&SearchQuery::words("quetzalcoatl"))[0].version;
    world.tamper(&format!("INSERT INTO redaction (id, kind, time) VALUES (x'{version}', 1, 0)"));
    // The index notices the redaction without a rebuild.
    assert_eq!(world.entries("quetzalcoatl"), []);
    assert!(!holds(&world, b"quetzalcoatl"));
    world.assert_sound();
    // A rebuild does not bring it back.
    let reading = world.store.read().expect("a read transaction");
    world.index.rebuild(&reading.queries(), &mut |_| ()).expect("rebuild succeeds");
    assert_eq!(world.entries("password"), []);
    world.assert_sound();
}

#[test]
fn an_erased_entry_disappears_immediately() {
    let world = World::new();
    let thread = world.thread("Secrets");
    world.say(thread, "User", "quetzalcoatl");
    let version = world.find(&SearchQuery::words("quetzalcoatl"))[0].version;
    assert_eq!(world.index.forget(&[version]).expect("erasure succeeds"), 1);
    assert_eq!(world.index.forget(&[version]).expect("erasure succeeds"), 0);
    assert!(!holds(&world, b"quetzalcoatl"));
    assert_eq!(world.entries("quetzalcoatl"), []);
}

/// Whether any file of the index contains the bytes.
fn holds(world: &World, bytes: &[u8]) -> bool {
    ["search.db", "search.db-wal"].iter().any(|name| {
        let content = std::fs::read(world.folder.path().join(name)).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}
