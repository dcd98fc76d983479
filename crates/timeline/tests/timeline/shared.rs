//! Prompts that threads share, against a model of who has set what.

use retake_model::id::ThreadId;
use retake_timeline::{Caller, Command, Goal, Unit};

use crate::support::World;

const PROMPT: &str = "project_system_prompt";

/// What one thread did: the numbers of the prompts that it has set, and how many of them are done.
#[derive(Default)]
struct Chain {
    set: Vec<usize>,
    done: usize,
}

/// The prompt that counts: the latest one that is the last its thread has done.
fn expected(chains: &[Chain]) -> String {
    let last = chains.iter().filter_map(|chain| chain.set[..chain.done].last()).max();
    last.map_or_else(String::new, ToString::to_string)
}

fn run(seed: u64, broken: bool) -> Result<(), String> {
    let world = World::new();
    let threads: [ThreadId; 3] = [world.thread, world.another(), world.another()];
    let mut chains: [Chain; 3] = Default::default();
    let mut dice = seed;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((dice >> 33) % sides).expect("a small number")
    };
    for number in 0..40 {
        let at = roll(3);
        let (thread, chain) = (threads[at], &mut chains[at]);
        let go = |goal| world.timeline.go(thread, goal, Caller::human()).expect("a move");
        match roll(4) {
            0 if chain.done > 0 => {
                go(Goal::Undo(Unit::Turn, 1));
                chain.done -= 1;
            }
            1 if chain.done < chain.set.len() => {
                go(Goal::Redo(Unit::Turn, 1));
                chain.done += 1;
            }
            _ => {
                let values = vec![(PROMPT.to_owned(), number.to_string())];
                world.timeline.change(thread, Command::Set { values }, Caller::human()).expect("a change");
                chain.set.truncate(chain.done);
                chain.set.push(number);
                // The control: a model that forgets a change.
                chain.done += usize::from(!(broken && number == 20));
            }
        }
        for thread in threads {
            let found = world.look().effective_settings(thread).expect("settings").project_system_prompt;
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
        run(seed, false).expect("as the model says");
    }
}

#[test]
fn a_wrong_model_of_shared_prompts_is_noticed() {
    assert!((0..4).any(|seed| run(seed, true).is_err()));
}
