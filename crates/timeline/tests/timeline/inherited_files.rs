//! Forks, branches and retries at inherited entries restore the files of that entry, however far up it was added.

use retake_model::command::{Prompt, TurnStart};
use retake_model::id::{EntryId, TakeId, ThreadId, TurnId};
use retake_timeline::{Caller, Command, MoveOptions, PlanRequest, Scope};

use crate::support::FileWorld;

/// Three takes, each branched off the last entry of the one before.
///
/// ```text
///   main   one ─ a=1 ─ two ─ a=2 ─ three
///   B                              └── four ─ a=3 ─ five
///   C                                               └── six ─ a=4
/// ```
struct Branches {
    world: FileWorld,
    /// Each take with its last file, oldest first.
    takes: Vec<(TakeId, &'static str)>,
    /// Each entry with the file at the time it was added, and the first take that has it.
    entries: Vec<(EntryId, Option<&'static str>, usize)>,
}

impl Branches {
    fn new() -> Self {
        let world = FileWorld::new();
        let main = world.world.state().active;
        let mut takes = Self { world, takes: vec![(main, "2")], entries: Vec::new() };
        takes.say("one", None);
        takes.work("1");
        takes.say("two", Some("1"));
        takes.work("2");
        takes.say("three", Some("2"));
        takes.branch("3");
        takes.say("four", Some("2"));
        takes.work("3");
        takes.say("five", Some("3"));
        takes.branch("4");
        takes.say("six", Some("3"));
        takes.work("4");
        takes
    }

    fn say(&mut self, text: &str, file: Option<&'static str>) {
        self.world.world.say("User", text);
        let number = self.world.world.take().entries.len();
        self.entries.push((self.world.world.entry(number), file, self.takes.len() - 1));
    }

    fn work(&self, text: &str) {
        self.world.agent(|world| world.write("a", text));
    }

    fn branch(&mut self, file: &'static str) {
        let from = self.world.world.state().active;
        let last = self.entries.last().map(|(entry, ..)| *entry);
        self.world.change(Command::Branch { from, at: last, name: None });
        self.takes.push((self.world.world.state().active, file));
    }

    fn command(&self, how: &str, from: TakeId, at: EntryId) -> Command {
        match how {
            "fork" => Command::Fork { from, at, name: None },
            "branch" => Command::Branch { from, at: Some(at), name: None },
            _ => {
                let turn = TurnId::generate(&mut self.world.world.timeline.fresh());
                let (context, settings) = (Vec::new(), Vec::new());
                let start = TurnStart { turn, context, prompt: Prompt::Original, settings, sent: None };
                Command::Retry { from, at, name: None, start }
            }
        }
    }
}

/// Splits off a take at each entry of each take, with each take as the active one.
fn check(how: &str) {
    for active in 0..3 {
        let takes = Branches::new();
        let switch = || takes.world.change(Command::Switch { take: takes.takes[active].0 });
        switch();
        for (from, (take, last)) in takes.takes.iter().enumerate() {
            let entries: Vec<_> = takes.entries.iter().filter(|(.., first)| *first <= from).collect();
            for (at, (entry, file, _)) in entries.iter().enumerate() {
                // A branch at the last entry has all files of the take.
                let all = how == "branch" && at + 1 == entries.len();
                takes.world.change(takes.command(how, *take, *entry));
                let wanted = if all { Some(*last) } else { *file };
                let found = takes.world.read("a");
                assert_eq!(
                    found.as_deref(),
                    wanted,
                    "{how} of take {from} at entry {at}, {active} is active"
                );
                // The take that was active keeps its files.
                switch();
                assert_eq!(takes.world.read("a").as_deref(), Some(takes.takes[active].1));
            }
        }
    }
}

#[test]
fn a_fork_at_an_inherited_entry_has_the_files_of_that_entry() {
    check("fork");
}

#[test]
fn a_branch_at_an_inherited_entry_has_the_files_of_that_entry() {
    check("branch");
}

#[test]
fn a_retry_of_an_inherited_entry_has_the_files_of_that_entry() {
    check("retry");
}

#[test]
fn a_fork_of_a_fork_reverts_from_the_start_of_the_first() {
    let takes = Branches::new();
    let (main, (two, three)) = (takes.takes[0].0, (takes.entries[1].0, takes.entries[2].0));
    takes.world.change(takes.command("fork", main, three));
    let fork = takes.world.world.state().active;
    takes.world.write("mine", "by hand");
    takes.world.record_changes();
    takes.work("5");
    takes.world.agent(|world| world.write("b", "5"));
    takes.world.change(takes.command("fork", fork, two));
    assert_eq!((takes.world.read("a").as_deref(), takes.world.read("b")), (Some("1"), None));
    assert_eq!(takes.world.read("mine").as_deref(), Some("by hand"), "an edit by hand stays");
    takes.world.change(takes.command("fork", fork, two));
    assert_eq!((takes.world.read("a").as_deref(), takes.world.read("b")), (Some("1"), None));
}

#[test]
fn a_fork_in_the_background_at_an_inherited_entry_has_the_files_of_that_entry() {
    let takes = Branches::new();
    let running = takes.world.world.timeline.store().lease_turn(takes.takes[2].0);
    let running = running.expect("a lease").expect("a free lease");
    for (at, (entry, ..)) in takes.entries.iter().enumerate() {
        let fork = Command::Fork { from: takes.takes[2].0, at: *entry, name: Some(format!("fork{at}")) };
        takes.world.change(fork);
    }
    drop(running);
    for (at, (_, file, _)) in takes.entries.iter().enumerate() {
        let take = takes.world.world.named(&format!("fork{at}"));
        takes.world.change(Command::Switch { take });
        assert_eq!(takes.world.read("a").as_deref(), *file, "entry {at}");
    }
}

/// Promotes the first take while the files of the third are in the folder.
fn promoted(takes: &Branches) -> ThreadId {
    let (thread, main) = (takes.world.world.thread, takes.takes[0].0);
    let promoted = takes.world.working_copy.promote(thread, main, None, Caller::human(), Scope::Both);
    promoted.expect("a promotion").promoted.thread
}

#[test]
fn a_fork_in_a_promoted_thread_has_the_files_of_an_entry_from_before_the_promotion() {
    for (at, wanted) in [(0, None), (1, Some("1")), (2, Some("2"))] {
        let takes = Branches::new();
        let thread = promoted(&takes);
        let change = |command| {
            let changed =
                takes.world.working_copy.change(thread, command, Caller::human(), MoveOptions::default());
            changed.expect("a change that is allowed");
            takes.world.world.read().state(thread).expect("a state").active
        };
        let (main, entry) = (takes.takes[0].0, takes.entries[at].0);
        // The active take, the same take while inactive, and a take that inherited the entry.
        change(takes.command("fork", main, entry));
        assert_eq!(takes.world.read("a").as_deref(), wanted, "entry {at}");
        takes.world.agent_of(thread, |world| world.write("a", "7"));
        change(takes.command("fork", main, entry));
        assert_eq!(takes.world.read("a").as_deref(), wanted, "entry {at} of the take that was left");
        let child = change(takes.command("branch", main, takes.entries[2].0));
        takes.world.agent_of(thread, |world| world.write("a", "8"));
        change(takes.command("fork", child, entry));
        assert_eq!(takes.world.read("a").as_deref(), wanted, "entry {at} of a branch");
    }
}

#[test]
fn a_fork_at_an_entry_with_files_of_the_parent_thread_reports_them() {
    let takes = Branches::new();
    let thread = promoted(&takes);
    let working_copy = &takes.world.working_copy;
    let fork = |at: usize| takes.command("fork", takes.takes[0].0, takes.entries[at].0);
    let perform = |command| {
        let order =
            working_copy.plan(thread, PlanRequest::Change(command), Caller::human(), MoveOptions::default());
        let order = order.expect("a plan");
        let preview = order.preview().files.clone().expect("files");
        let done = order.execute().expect("a change that is allowed").files.expect("files");
        assert_eq!(preview.files_unknown, done.files_unknown);
        done.files_unknown
    };
    assert!(!perform(fork(1)), "the parent thread knows");
    takes.world.world.timeline.store().purge_threads(&[takes.world.world.thread]).expect("a purge");
    assert!(perform(fork(1)), "nobody knows what they were");
}

#[test]
fn a_fork_without_file_changes_reports_no_missing_files() {
    let world = FileWorld::new();
    for text in ["one", "two"] {
        world.world.say("User", text);
    }
    let (from, at) = (world.world.state().active, world.world.entry(1));
    let fork = Command::Fork { from, at, name: None };
    let changed =
        world.working_copy.change(world.world.thread, fork, Caller::human(), MoveOptions::default());
    assert!(!changed.expect("a fork").files.expect("files").files_unknown);
}
