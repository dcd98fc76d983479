//! Shared prompts and roles.

use std::sync::mpsc;
use std::{fs, thread};

use retake_model::command::{Prompt, TurnStart};
use retake_model::id::{ThreadId, TurnId};
use retake_store::StoreError;
use retake_timeline::{Caller, ChangeError, Command, Goal, ResetSummary, Unit};

use crate::support::World;

const PROMPT: &str = "project_system_prompt";

/// A step of a thread: its version, and the number of the thread's prompt after it.
#[derive(Clone, Copy)]
struct Step {
    version: u64,
    prompt: Option<usize>,
}

/// The steps of one thread, and how many of them are not undone.
#[derive(Default)]
struct Chain {
    steps: Vec<Step>,
    done: usize,
}

impl Chain {
    fn prompt(&self) -> Option<usize> {
        self.steps[..self.done].last().and_then(|step| step.prompt)
    }

    fn push(&mut self, step: Step) {
        self.steps.truncate(self.done);
        self.steps.push(step);
        self.done += 1;
    }
}

/// The effective prompt: the latest one that its thread still has.
fn expected(chains: &[Chain]) -> String {
    chains.iter().filter_map(Chain::prompt).max().map_or_else(String::new, |number| number.to_string())
}

/// A deliberate error of the model, as a control.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    ForgetsAChange,
    ResetClears,
}

fn run(seed: u64, mistake: Mistake) -> Result<(), String> {
    let world = World::new();
    let threads: [ThreadId; 3] = [world.thread, world.another(), world.another()];
    let mut chains: [Chain; 3] = Default::default();
    let mut rng = seed;
    let mut roll = |sides: usize| {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(rng >> 33).expect("a small number") % sides
    };
    for number in 0..60 {
        let at = roll(3);
        let (thread, chain) = (threads[at], &mut chains[at]);
        let go = |goal| world.timeline.go(thread, goal, Caller::human()).expect("a move");
        let change = |command| world.timeline.change(thread, command, Caller::human()).expect("a change");
        match roll(6) {
            0 if chain.done > 0 => {
                go(Goal::Undo(Unit::Turn, 1));
                chain.done -= 1;
            }
            1 if chain.done < chain.steps.len() => {
                go(Goal::Redo(Unit::Turn, 1));
                chain.done += 1;
            }
            2 if !chain.steps.is_empty() => {
                let to = roll(chain.steps.len());
                go(Goal::Jump(chain.steps[to].version));
                chain.done = to + 1;
            }
            3 => {
                change(Command::Set { values: vec![("top_p".to_owned(), format!("0.{}", number + 1))] });
                let done = change(Command::Reset);
                let cleared = if mistake == Mistake::ResetClears { None } else { chain.prompt() };
                chain.push(Step { version: done.version - 1, prompt: chain.prompt() });
                chain.push(Step { version: done.version, prompt: cleared });
            }
            _ => {
                let done = change(Command::Set { values: vec![(PROMPT.to_owned(), number.to_string())] });
                let forgotten = mistake == Mistake::ForgetsAChange && number == 20;
                let prompt = if forgotten { chain.prompt() } else { Some(number) };
                chain.push(Step { version: done.version, prompt });
            }
        }
        for thread in threads {
            let found = world.read().settings(thread).effective().expect("settings").project_system_prompt;
            if found != expected(&chains) {
                return Err(format!("seed {seed}, step {number}: {found:?} is not {:?}", expected(&chains)));
            }
        }
    }
    Ok(())
}

#[test]
fn a_shared_prompt_is_the_latest_that_is_not_undone() {
    for seed in 0..4 {
        run(seed, Mistake::None).expect("the result of the model");
    }
}

#[test]
fn a_wrong_model_of_shared_prompts_is_caught() {
    for mistake in [Mistake::ForgetsAChange, Mistake::ResetClears] {
        assert!((0..4).any(|seed| run(seed, mistake).is_err()));
    }
}

#[test]
fn a_reset_keeps_the_prompts_that_threads_share() {
    let world = World::new();
    let other = world.another();
    let set = |thread, prompt: &str| {
        let values = vec![(PROMPT.to_owned(), prompt.to_owned()), ("top_p".to_owned(), "0.5".to_owned())];
        world.timeline.change(thread, Command::Set { values }, Caller::human()).expect("a change");
    };
    set(world.thread, "OLD");
    set(other, "NEW");
    let state = world.read().state(other).expect("a state");
    let cleared = ResetSummary::of(&world.read(), &state).expect("readable");
    assert_eq!(cleared.settings, ["top_p"]);
    world.timeline.change(other, Command::Reset, Caller::human()).expect("a reset");
    for thread in [world.thread, other] {
        let settings = world.read().settings(thread).effective().expect("settings");
        assert_eq!(settings.project_system_prompt, "NEW");
    }
}

#[test]
fn a_draft_is_sent_in_the_first_of_the_shared_roles() {
    let world = World::new();
    let other = world.another();
    let roles = ["Boss", "User", "AI"].map(str::to_owned).to_vec();
    world.timeline.change(other, Command::SetRoles { roles }, Caller::human()).expect("roles");
    let take = world.state().active;
    world.done(Command::SetDraft { take, text: "one".into() });
    world.done(Command::SendDraft { take, role: None });
    world.done(Command::SetDraft { take, text: "two".into() });
    let start = TurnStart {
        turn: TurnId::from_bytes([3; 16]),
        context: Vec::new(),
        prompt: Prompt::Draft { role: None },
        settings: Vec::new(),
        sent: None,
    };
    world.done(Command::StartTurn { take, start });
    let (take, reader) = (world.take(), world.read());
    let page = reader.entries(world.thread, &take).page(0..take.entries.len()).expect("a page");
    let found: Vec<(&str, String)> =
        page.iter().map(|view| (view.entry.role.as_str(), view.entry.text())).collect();
    assert_eq!(found, [("Boss", "one".to_owned()), ("Boss", "two".to_owned())]);
}

/// The setting is recorded before the change is made, and removed again when the change is refused. If that fails too, the
/// reason of the refusal is still the one that is reported: it may be that the outcome is unknown.
#[test]
fn a_refused_change_keeps_its_reason_if_its_record_cannot_be_removed() {
    let world = World::new();
    let shared = world.timeline.store().folder().join("shared");
    let (release, released) = mpsc::channel::<()>();
    let (begun, writing) = mpsc::channel();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            world.timeline.store().write(move |_| {
                begun.send(()).expect("the test waits for this");
                released.recv().expect("the test ends this");
                Ok::<_, StoreError>(())
            })
        });
        writing.recv().expect("the writer is busy");
        let change = scope.spawn(|| {
            let expecting = Caller { expected: Some(1_000), ..Caller::human() };
            let roles = vec!["User".to_owned(), "Reviewer".to_owned()];
            world.timeline.change(world.thread, Command::SetRoles { roles }, expecting)
        });
        // The record is there, and the change waits for the writer: now nothing can be recorded any more.
        let project = world.read().thread(world.thread).expect("a thread").home;
        while !shared.join(project.to_string()).exists() {
            thread::yield_now();
        }
        let lock = fs::File::open(shared.join("lock")).expect("a file");
        lock.lock().expect("the record is complete");
        fs::rename(&shared, shared.with_extension("away")).expect("the folder of the records");
        fs::write(&shared, "not a folder").expect("a file in its place");
        release.send(()).expect("the writer waits for this");
        writer.join().expect("no panic").expect("nothing was written");
        let refused = change.join().expect("no panic");
        assert!(
            matches!(refused, Err(ChangeError::Conflict { expected: 1_000, .. })),
            "the reason is lost: {refused:?}"
        );
    });
}
