//! Records what another program does to files, and undoes it without touching what the user did.
//!
//! `cargo run -p retake-timeline --example record_program [COMMAND …]`

use std::error::Error;
use std::process::Command;

use retake_model::id::TurnId;
use retake_model::operation::Actor;
use retake_timeline::{Caller, Goal, MoveOptions, NewThread, Rules, Timeline, Unit, WorkingCopy};
use retake_workspace::snapshot::Workspace;

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = temporary.path().join("project");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("notes.txt"), "one\ntwo\nthree\n")?;

    let timeline = Timeline::open(&temporary.path().join("store"), Rules::default())?;
    let project = timeline.project(&folder)?.id;
    let thread = timeline.create_thread(NewThread::in_project(project), Caller::human())?.thread;
    let turn = TurnId::generate(&mut timeline.fresh());
    // While it is locked, other processes know that the program is alive.
    let alive = timeline.store().lock_alive(turn)?;
    let working_copy = WorkingCopy::at(timeline, project, Workspace::of(&folder)?);

    // What is there now is the user's. From here on, changes are the program's, even if this process is killed.
    let program = || Caller { actor: Actor::named("formatter"), turn: Some(turn), ..Caller::human() };
    let started = working_copy.mark_running(thread, program(), turn, None)?.version;
    let given: Vec<String> = std::env::args().skip(1).collect();
    let shell = ["sh", "-c", "sed -i s/one/1/ notes.txt; echo new > new.txt"].map(str::to_owned);
    let (name, arguments) = given.split_first().unwrap_or((&shell[0], &shell[1..]));
    Command::new(name).args(arguments).current_dir(&folder).status()?;
    let recorded = working_copy.record_run(thread, program(), started)?;
    drop(alive);
    for path in &recorded.files.paths {
        println!("the program: {path:?}");
    }

    // The user continues in the same file; the undo merges.
    let text = std::fs::read_to_string(folder.join("notes.txt"))?;
    std::fs::write(folder.join("notes.txt"), format!("{text}four, by hand\n"))?;
    working_copy.go(thread, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default())?;
    print!("after the undo:\n{}", std::fs::read_to_string(folder.join("notes.txt"))?);
    println!("new.txt exists: {}", folder.join("new.txt").exists());
    Ok(())
}
