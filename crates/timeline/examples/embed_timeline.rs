//! Embeds the timeline in a program: a thread with entries, an edit, an undo, and two takes.
//!
//! `cargo run -p retake-timeline --example embed_timeline [STORE]`

use std::error::Error;
use std::path::PathBuf;

use retake_model::entry::EntryVersion;
use retake_timeline::{Caller, Command, InsertPosition, NewThread, Rules, Timeline, Unit};

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let place = std::env::args().nth(1).map_or_else(|| temporary.path().join("store"), PathBuf::from);
    let timeline = Timeline::open(&place, Rules::default())?;

    // A project is a folder. Its threads move with it.
    let project = timeline.project(temporary.path())?;
    let new = NewThread::in_project(project.id).titled("Fix the login");
    let thread = timeline.create_thread(new, Caller::human())?.thread;

    // Every change is one operation, which is durable when the call returns.
    let main = timeline.read()?.state(thread)?.active;
    let say = |role: &str, text: &str| EntryVersion::from_text(role, text, timeline.now()).into();
    let entries =
        vec![say("User", "Why does the login fail?"), say("AI", "The cookie expires after an hour.")];
    let add = Command::AddEntries { take: main, at: InsertPosition::End, entries };
    let done = timeline.change(thread, add, Caller::human())?;
    println!("version {}: two entries", done.version);

    // A caller that names the version it saw changes nothing if somebody else was faster.
    let rename = Command::Rename { title: "Fix the cookie".to_owned() };
    let stale = timeline.change(thread, rename, Caller::human().expecting(done.version - 1));
    println!("stale: {}", stale.err().map(|error| error.to_string()).unwrap_or_default());

    // Undo and redo are operations too; nothing is lost.
    timeline.undo(thread, Unit::Turn, 1, Caller::human())?;
    timeline.redo(thread, Unit::Turn, 1, Caller::human())?;

    // A branch of 100,000 entries costs as much as this one.
    let reader = timeline.read()?;
    let state = reader.state(thread)?;
    let take = state.active_take(&reader.queries())?;
    let first = reader.entries(thread, &take).page(0..1)?;
    drop(reader);
    let branch = Command::Branch { from: main, at: Some(first[0].id), name: Some("shorter".to_owned()) };
    timeline.change(thread, branch, Caller::human())?;

    let reader = timeline.read()?;
    let row = reader.thread(thread)?;
    for take in reader.queries().takes_of(row.number)? {
        println!("take {}: {} entries", take.summary.name, take.summary.entries);
    }
    Ok(())
}
