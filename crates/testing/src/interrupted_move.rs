//! Interrupted file moves.

use std::fs;
use std::path::PathBuf;

use retake_model::history::link_change;
use retake_model::id::TurnId;
use retake_model::intent::Intent;
use retake_model::operation::{FileChange, Operation, OperationKind};
use retake_timeline::{Rules, Timeline};

use crate::Sandbox;

/// A project in which an agent changed a file.
pub fn changed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    fs::write(sandbox.project().join("a"), "one\n").expect("our folder");
    sandbox.done(&["snapshot", "take"]);
    sandbox.done(&["exec", "--", "sh", "-c", "echo two > a"]);
    sandbox
}

/// Leaves the state of a process that was killed during an undo, before the first file moved.
pub fn interrupt(sandbox: &Sandbox) {
    interrupt_in(&Timeline::open(&store(sandbox), Rules::default()).expect("a store"));
}

/// The same, in a store that is open.
pub fn interrupt_in(timeline: &Timeline) {
    let reader = timeline.read().expect("a readable store");
    let row = reader.threads(&retake_store::ThreadFilter::default()).expect("a list").remove(0);
    let queries = reader.queries();
    let head = queries.head(row.number).expect("readable").expect("a head");
    let folder = queries.folders().expect("readable").remove(0);
    let was = head.operation.files.expect("files");
    let files = FileChange { before: was.after, after: was.before, ..was };
    let version = head.operation.version + 1;
    let (place, chains) =
        link_change(&queries.log(row.number), head.operation.version, Some(was.take)).expect("a log");
    let operation = Operation {
        version,
        previous: Some(head.id),
        kind: OperationKind::FilesMoved { from: head.operation.version, to: 1, paths: 1 },
        turn: TurnId::from_bytes([9; 16]),
        place,
        chains: Some(chains),
        files: Some(files),
        last_file_operation: Some(version),
        request: None,
        ..head.operation
    };
    let intent = Intent { folder: folder.id, roots: folder.roots, files, operation, token: "cut".to_owned() };
    drop(reader);
    let write = timeline.store().write(move |writing| writing.put_intent(&intent));
    write.expect("an intent");
}

/// The folder of the store.
pub fn store(sandbox: &Sandbox) -> PathBuf {
    sandbox.project().with_file_name("store")
}
