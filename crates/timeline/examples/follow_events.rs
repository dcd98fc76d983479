//! Follows the operations of all threads, whichever process makes them.
//!
//! `cargo run -p retake-timeline --example follow_events [STORE]`
//!
//! With a store, follows it until Ctrl-C. Without one, follows a temporary store that a second thread of this program
//! changes.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use retake_model::id::ProjectId;
use retake_timeline::{Caller, Command, NewThread, Rules, Timeline};

const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(store) = std::env::args().nth(1) {
        return follow(&PathBuf::from(store), usize::MAX);
    }
    let temporary = tempfile::tempdir()?;
    let store = temporary.path().join("store");
    drop(Timeline::open(&store, Rules::default())?);
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || write(store).expect("a writable store"));
        follow(store, 3)
    })
}

/// Another program that uses the store.
fn write(store: &Path) -> Result<(), Box<dyn Error>> {
    let timeline = Timeline::open(store, Rules::default())?;
    let thread = timeline.create_thread(NewThread::in_project(PROJECT), Caller::human())?.thread;
    for title in ["First", "Second"] {
        timeline.change(thread, Command::Rename { title: title.to_owned() }, Caller::human())?;
    }
    Ok(())
}

/// Prints operations until that many were seen. A program that stores the sequence number continues behind it later.
fn follow(store: &Path, most: usize) -> Result<(), Box<dyn Error>> {
    let timeline = Timeline::open(store, Rules::default())?;
    let mut tail = timeline.tail()?;
    let (mut last, mut seen) = (0, 0);
    while seen < most {
        for event in tail.since(last, 100)? {
            last = event.sequence;
            seen += 1;
            match event.change {
                Some(change) => println!("{last}: version {}: {:?}", change.version, change.kind),
                None => println!("{last}: a thread was purged"),
            }
        }
        // Asking costs microseconds while nothing changes.
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
