//! What was destroyed on purpose is in the index no longer, not even as bytes.

use retake_store::SearchQuery;

use super::world::World;

#[test]
fn a_purged_thread_leaves_no_word() {
    let world = World::new();
    let (kept, purged) = (world.thread("Kept"), world.thread("Purged"));
    let stays = world.say(kept, "User", "xylophone in the open");
    world.say(purged, "User", "xylophone zanzibarsecret");
    assert_eq!(world.entries("xylophone").len(), 2);
    let number = {
        let reading = world.store.read().expect("a reading");
        reading.queries().thread(purged).expect("readable").expect("there").number
    };
    world.tamper(&format!(
        "INSERT INTO operation (thread, version, id, body) VALUES ({number}, 0, x'00', NULL);
         DELETE FROM operation WHERE thread = {number} AND version > 0;
         DELETE FROM thread WHERE number = {number};"
    ));
    let reading = world.store.read().expect("a reading");
    let done = world.index.catch_up(&reading.queries(), &mut |_| ()).expect("caught up");
    assert_eq!((done.added, done.removed, done.unreadable), (0, 1, 0));
    assert_eq!(world.entries("xylophone"), [stays]);
    world.assert_sound();
    assert!(!holds(&world, b"zanzibarsecret"));
    assert!(holds(&world, b"xylophone"), "the control: what is there can be seen in the file");
}

#[test]
fn a_purge_that_was_killed_before_the_index_is_finished_by_the_next_command() {
    let world = World::new();
    let purged = world.thread("Purged");
    world.say(world.thread("Kept"), "User", "xylophone in the open");
    world.say(purged, "User", "xylophone zanzibarsecret");
    assert_eq!(world.entries("xylophone").len(), 2);
    let mark = world.folder.path().join("erasing");
    // The index stands still while a purge runs, as if it had been killed before this step.
    let index = world.folder.path().join("search.db");
    let aside = world.folder.path().join("aside");
    std::fs::rename(&index, &aside).expect("a move");
    world.store.purge_threads(&[purged]).expect("a purge");
    assert!(!mark.exists());
    std::fs::rename(&aside, &index).expect("a move");
    assert!(holds(&world, b"zanzibarsecret"), "the control: its words are there");
    let running = std::fs::File::create(&mark).expect("a mark");
    running.lock().expect("a lock");
    assert!(!world.store.finish_erasing().expect("it is left"), "another process is at it");
    drop(running);
    assert!(world.store.finish_erasing().expect("it is finished"));
    assert!(!mark.exists());
    assert!(!holds(&world, b"zanzibarsecret"));
    assert!(!world.store.finish_erasing().expect("nothing is left"));
    world.assert_sound();
}

#[test]
fn a_redacted_entry_leaves_no_word() {
    let world = World::new();
    let thread = world.thread("Secrets");
    world.say(thread, "User", "the password is quetzalcoatl");
    let version = world.find(&SearchQuery::words("quetzalcoatl"))[0].version;
    world.tamper(&format!("INSERT INTO redaction (id, kind, time) VALUES (x'{version}', 1, 0)"));
    // Found by itself.
    assert_eq!(world.entries("quetzalcoatl"), []);
    assert!(!holds(&world, b"quetzalcoatl"));
    world.assert_sound();
    // Not brought back by a rebuild.
    let reading = world.store.read().expect("a reading");
    world.index.rebuild(&reading.queries(), &mut |_| ()).expect("rebuilt");
    assert_eq!(world.entries("password"), []);
    world.assert_sound();
}

#[test]
fn a_forgotten_entry_is_gone_at_once() {
    let world = World::new();
    let thread = world.thread("Secrets");
    world.say(thread, "User", "quetzalcoatl");
    let version = world.find(&SearchQuery::words("quetzalcoatl"))[0].version;
    assert_eq!(world.index.forget(&[version]).expect("forgotten"), 1);
    assert_eq!(world.index.forget(&[version]).expect("forgotten"), 0);
    assert!(!holds(&world, b"quetzalcoatl"));
    assert_eq!(world.entries("quetzalcoatl"), []);
}

/// Whether bytes are anywhere in the files of the index.
fn holds(world: &World, bytes: &[u8]) -> bool {
    ["search.db", "search.db-wal"].iter().any(|name| {
        let held = std::fs::read(world.folder.path().join(name)).unwrap_or_default();
        held.windows(bytes.len()).any(|window| window == bytes)
    })
}
