//! What forks of a long thread store.

use std::collections::{BTreeMap, HashSet};

use retake_model::command::{Command, CommandContext, CommandOutcome, InsertPosition, apply};
use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::id::IdSource;
use retake_model::object::{Additions, MemoryObjects};
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;

use crate::support::Rng;

struct Fresh {
    now: i64,
    rng: Rng,
}

impl IdSource for Fresh {
    fn now(&mut self) -> Timestamp {
        self.now += 1;
        Timestamp::from_millis(self.now)
    }

    fn random(&mut self) -> [u8; 10] {
        std::array::from_fn(|_| self.rng.below(256) as u8)
    }
}

struct World {
    objects: MemoryObjects,
    known: HashSet<ContentId>,
    fresh: Fresh,
    state: ThreadState,
    names: HashSet<String>,
    added: BTreeMap<Kind, (usize, usize)>,
}

impl World {
    fn apply(&mut self, command: Command) {
        let mut additions = Additions::new(&self.objects);
        let names = &self.names;
        let mut context = CommandContext {
            additions: &mut additions,
            fresh: &mut self.fresh,
            take_named: &|name| Ok(names.contains(name)),
            git_commit: None,
        };
        let CommandOutcome::Changed { state, .. } =
            apply(&self.state, command, &mut context).expect("a valid command")
        else {
            panic!("it changes something")
        };
        additions.add(&state);
        let new: Vec<_> =
            additions.into_new().into_iter().filter(|object| self.known.insert(object.id)).collect();
        for object in &new {
            let sum = self.added.entry(object.kind).or_default();
            *sum = (sum.0 + 1, sum.1 + object.bytes.len());
        }
        self.objects.insert_all(new);
        self.state = state;
        let take = self.state.active_take(&self.objects).expect("it is stored");
        self.names.insert(take.name);
    }
}

#[test]
fn a_fork_shares_what_it_can() {
    let base = MemoryObjects::default();
    let mut fresh = Fresh { now: 1_790_000_000_000, rng: Rng::new(23) };
    let mut additions = Additions::new(&base);
    let state = ThreadState::new("A".to_owned(), &mut additions, &mut fresh).expect("a thread");
    let mut objects = MemoryObjects::default();
    objects.insert_all(additions.into_new());
    let mut world = World {
        objects,
        known: HashSet::new(),
        fresh,
        state,
        names: HashSet::from(["main".to_owned()]),
        added: BTreeMap::new(),
    };
    let take = world.state.active;
    let entry = |number: u64| {
        EntryVersion::from_text("User", &format!("message {number} ").repeat(130), Timestamp::from_millis(1))
    };
    let entries = (0..10_000).map(|number| entry(number).into()).collect();
    world.apply(Command::AddEntries { take, at: InsertPosition::End, entries });
    let cells = {
        let list = world.state.active_take(&world.objects).expect("it is stored").entries;
        list.page(&world.objects, 0..10_000).expect("it is stored")
    };
    world.added.clear();
    for _ in 0..1_000 {
        let at = cells[world.fresh.rng.below(10_000) as usize].entry;
        world.apply(Command::Fork { from: take, at, name: None });
    }
    // The forked message is stored again as the draft of the new take, 1.7 KB of this.
    let sum = |kind: Kind| world.added.get(&kind).map_or(0, |(_, bytes)| bytes / 1_000);
    let costs = (sum(Kind::Entries), sum(Kind::Takes), sum(Kind::Take), sum(Kind::State));
    let all: usize = world.added.values().map(|(_, bytes)| bytes / 1_000).sum();
    assert!(
        costs.0 < 1_400 && costs.1 < 900 && all < 4_200,
        "{costs:?} and in all {all} bytes for each fork"
    );
}
