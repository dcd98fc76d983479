//! Watched folders: their status, and the events about them.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::workspace::{snapshot, texts, write};
use crate::world::{World, until};

#[test]
fn changes_of_a_folder_are_announced_to_streams_and_shown_by_its_status() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Watched");
    write(&world.project(), "a.txt", "one\n");
    snapshot(&client, &thread, json!({}));
    let path = format!("/v1/workspace/status?thread={thread}");
    let changed = || {
        let status = client.get(&path).done();
        let paths = texts(&status["files"]["changed"], "path").into_iter().map(str::to_owned);
        paths
            .filter(|path| std::path::Path::new(path).extension().is_some_and(|found| found == "txt"))
            .collect::<Vec<_>>()
    };
    assert!(changed().is_empty());
    // A folder concerns every stream, whatever its thread, and also without events of turns.
    // Reading the folder records nothing while it has the recorded files.
    let version = client.version(&thread);
    let read = || client.get(&format!("/v1/threads/{thread}/workspace/files?at=folder")).done();
    assert_eq!((texts(&read()["items"], "path"), client.version(&thread)), (vec!["a.txt"], version));
    let mut events = client.request("GET", &format!("/v1/events?thread={thread}&turns=false")).open();
    for (paths, edit) in [
        (&["a.txt"][..], &(|| write(&world.project(), "a.txt", "two\n")) as &dyn Fn()),
        (&["a.txt", "new/deep/b.txt"], &|| write(&world.project(), "new/deep/b.txt", "new\n")),
        (&["a.txt", "new/deep/b.txt"], &|| write(&world.project(), "new/deep/b.txt", "changed\n")),
        (&["a.txt"], &|| fs::remove_dir_all(world.project().join("new")).expect("it is there")),
    ] {
        edit();
        let event = loop {
            let event = events.next(Duration::from_secs(20)).expect("it is announced");
            if event.kind == "folder" {
                break event.data;
            }
        };
        assert_eq!((&event["thread"], event["project"].is_string()), (&Value::Null, true), "{event}");
        until("the status shows it", || changed() == paths);
        // One edit may take several events, and the next one must not get one of them.
        std::thread::sleep(Duration::from_millis(700));
        while events.next(Duration::from_millis(1)).is_some() {}
    }
    // It records what changed, and then the status has nothing to show.
    assert_eq!(texts(&read()["items"], "path"), ["a.txt"]);
    assert_eq!((changed().is_empty(), client.version(&thread)), (true, version + 1));
    fs::remove_dir_all(world.project()).expect("our folder");
    until("the status shows that it is gone", || client.get(&path).done()["exists"] == false);
}
