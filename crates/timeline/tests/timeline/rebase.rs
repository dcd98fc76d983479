//! Two machines change a thread apart, and end with the same log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::list::{EntryCell, List};
use retake_model::replica::ReplicaOperation;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{
    Adoption, Caller, Command, Goal, InsertPosition, ReplicaPoint, Rules, SeededClock, Timeline, Unit,
};
use tempfile::TempDir;

use crate::support::{PROJECT, World};

/// A machine with its own store.
struct Device {
    timeline: Timeline,
    _folder: TempDir,
}

impl Device {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(SeededClock::new(seed));
        let timeline = Timeline::open_with(folder.path(), Rules::default(), clock).expect("a new store");
        Self { timeline, _folder: folder }
    }

    fn points(&self, thread: ThreadId) -> Vec<ReplicaPoint> {
        let reader = self.timeline.read().expect("a reader");
        let Ok(replica) = reader.replica(thread) else { return Vec::new() };
        replica.points(ReplicaPoint::default()).expect("a readable log")
    }

    fn ids(&self, thread: ThreadId) -> Vec<Option<ContentId>> {
        self.points(thread).into_iter().map(|point| point.id).collect()
    }

    fn state(&self, thread: ThreadId) -> ThreadState {
        self.timeline.read().expect("a reader").state(thread).expect("a state")
    }

    fn takes(&self, thread: ThreadId) -> BTreeMap<TakeId, Take> {
        let reader = self.timeline.read().expect("a reader");
        let takes = self.state(thread).all_takes(&reader.queries()).expect("readable takes");
        takes.into_iter().map(|take| (take.id, take)).collect()
    }

    fn entries(&self, take: &Take) -> Vec<EntryId> {
        let reader = self.timeline.read().expect("a reader");
        let cells: List<EntryCell> = take.entries;
        cells.iter(&reader.queries(), 0).map(|cell| cell.expect("a readable list").entry).collect()
    }

    /// All states that the log leads through.
    fn states(&self, thread: ThreadId) -> BTreeSet<ContentId> {
        let reader = self.timeline.read().expect("a reader");
        let row = reader.thread(thread).expect("a thread");
        let operation = |version| reader.queries().operation(row.number, version).expect("readable");
        (1..=row.summary.version).filter_map(|version| Some(operation(version)?.operation.after)).collect()
    }

    fn change(&self, thread: ThreadId, command: Command) -> bool {
        self.timeline.change(thread, command, Caller::human()).is_ok()
    }

    fn say(&self, thread: ThreadId, take: TakeId, text: &str) -> bool {
        let entry = EntryVersion::from_text("User", text, self.timeline.now());
        let add = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
        self.change(thread, add)
    }

    /// Takes over what another machine has.
    fn pull(&self, from: &Self, thread: ThreadId) -> Adoption {
        let (theirs, mine) = (from.points(thread), self.points(thread));
        let shared = theirs.iter().zip(&mine).take_while(|(theirs, mine)| theirs.id == mine.id).count();
        let common = shared.checked_sub(1).map_or_else(ReplicaPoint::default, |last| mine[last]);
        let operations = from.replica_after(thread, shared);
        if operations.is_empty() {
            return Adoption::Advanced;
        }
        self.timeline
            .adopt_operations(thread, PROJECT, common, operations)
            .expect("operations that follow the rules")
    }

    fn replica_after(&self, thread: ThreadId, shared: usize) -> Vec<ReplicaOperation> {
        let points = self.points(thread);
        let after = shared.checked_sub(1).map_or_else(ReplicaPoint::default, |last| points[last]);
        let reader = self.timeline.read().expect("a reader");
        let replica = reader.replica(thread).expect("a thread");
        let mut operations = Vec::new();
        let add = |it| {
            operations.push(it);
            true
        };
        replica.operations(after, add).expect("a readable log");
        operations
    }
}

/// A deterministic random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// Makes one random change; some are refused, which is fine.
fn work(device: &Device, thread: ThreadId, random: &mut Random, number: u64) {
    let takes: Vec<Take> = device.takes(thread).into_values().collect();
    let source = &takes[random.below(takes.len() as u64) as usize];
    let entries = device.entries(source);
    let entry = entries.get(random.below(entries.len() as u64) as usize).copied();
    let (take, text) = (source.id, format!("text {number}"));
    let few = random.below(4);
    let command = match (random.below(22), entry) {
        (0..=5, _) | (_, None) => {
            device.say(thread, take, &text);
            return;
        }
        (6, Some(entry)) => Command::EditEntry { take, entry, text },
        (7, Some(entry)) => Command::DeleteEntries { take, entries: vec![entry] },
        (8, Some(at)) => Command::Fork { from: take, at, name: None },
        (9, at) => Command::Branch { from: take, at, name: None },
        (10, _) => Command::Switch { take },
        (11, _) => Command::RenameTake { take, name: format!("named {few}") },
        (12, _) if few < 2 => Command::DeleteTake { take },
        (13, _) => Command::Rename { title: format!("title {few}") },
        (14, _) => {
            Command::Tag { add: vec![format!("tag{few}")], remove: vec![format!("tag{}", random.below(5))] }
        }
        (15, _) => {
            let name = ["temperature", "model", "max_tokens", "top_p"][few as usize].to_owned();
            Command::Set { values: vec![(name, (1 + random.below(2)).to_string())] }
        }
        (16, _) => Command::SetDraft { take: device.state(thread).active, text },
        (17, _) => {
            let roles = ["User", "AI", "Critic", "Judge"].map(str::to_owned);
            Command::SetRoles { roles: roles[few as usize..].to_vec() }
        }
        (21, _) if few == 0 => Command::Reset,
        (21, _) => Command::Save { name: format!("save {number}") },
        (other, _) => {
            let goal = match other {
                19 => Goal::Redo(Unit::Turn, 1 + few),
                20 => Goal::Jump(1 + random.below(device.points(thread).len() as u64)),
                _ => Goal::Undo(Unit::Turn, 1 + few),
            };
            // Nothing to undo is fine, too.
            let _ = device.timeline.go(thread, goal, Caller::human());
            return;
        }
    };
    device.change(thread, command);
}

/// What each side must find again: the entries of every take that it changed.
fn work_since(base: &BTreeMap<TakeId, Take>, now: &BTreeMap<TakeId, Take>) -> Vec<List<EntryCell>> {
    let changed =
        now.values().filter(|take| base.get(&take.id).is_none_or(|base| base.entries != take.entries));
    changed.map(|take| take.entries).filter(|entries| !entries.is_empty()).collect()
}

fn lost(work: &[List<EntryCell>], takes: &BTreeMap<TakeId, Take>) -> bool {
    work.iter().any(|entries| !takes.values().any(|take| take.entries == *entries))
}

/// Undoes and redoes each number of steps, and compares the states. Returns how many steps were possible.
fn check_undo(device: &Device, thread: ThreadId, context: &str) -> u64 {
    let (before, mut possible) = (device.state(thread), 0);
    for steps in 1..=6 {
        let Ok(undone) = device.timeline.undo(thread, Unit::Operation, steps, Caller::human()) else { break };
        let redone = device.timeline.redo(thread, Unit::Operation, undone.steps, Caller::human());
        assert!(redone.is_ok(), "{context}: redo of {steps}: {redone:?}");
        assert!(device.state(thread) == before, "{context}: undo and redo of {steps} steps is the identity");
        possible = steps;
    }
    possible
}

#[test]
fn random_divergences_end_in_one_log_without_loss() {
    let mut caught = [false; 2];
    let (mut merges, mut undone) = (0, 0);
    // The last one undoes a reset on one side.
    for seed in (1..=11).chain([1066]) {
        let mut random = Random(seed);
        let devices = [Device::new(seed * 10), Device::new(seed * 10 + 1), Device::new(seed * 10 + 2)];
        let new = retake_timeline::NewThread::in_project(PROJECT).titled("Fix");
        let thread = devices[0].timeline.create_thread(new, Caller::human()).expect("a thread").thread;
        let mut number = 0;
        for round in 0..4 {
            let context = format!("seed {seed}, round {round}");
            devices[1].pull(&devices[0], thread);
            assert_eq!(devices[0].ids(thread), devices[1].ids(thread), "{context}");
            let base = devices[0].takes(thread);
            for device in &devices[..2] {
                for _ in 0..random.below(8) {
                    number += 1;
                    work(device, thread, &mut random, number);
                }
            }
            let states: Vec<_> = devices[..2].iter().map(|device| device.states(thread)).collect();
            let takes: Vec<_> = devices[..2].iter().map(|device| device.takes(thread)).collect();
            // The first machine is the one that the remote heard of first.
            let adopted = devices[1].pull(&devices[0], thread);
            merges += u32::from(matches!(adopted, Adoption::Merged(_)));
            devices[0].pull(&devices[1], thread);
            assert_eq!(devices[0].ids(thread), devices[1].ids(thread), "{context}");
            let (merged, all) = (devices[1].takes(thread), devices[1].states(thread));
            for side in 0..2 {
                assert!(states[side].is_subset(&all), "{context}: every state of {side} is reachable");
                let work = work_since(&base, &takes[side]);
                assert!(!lost(&work, &merged), "{context}: work of {side} is lost: {adopted:?}");
                // Controls: the last write wins, and the second take is dropped.
                caught[0] |= lost(&work, &takes[1 - side]);
                let mut dropped = merged.clone();
                if let Adoption::Merged(report) = &adopted {
                    dropped.retain(|id, _| !report.takes.iter().any(|kept| kept.ours == *id));
                }
                caught[1] |= lost(&work, &dropped);
            }
            undone += check_undo(&devices[1], thread, &context);
            devices[0].pull(&devices[1], thread);
        }
        devices[2].pull(&devices[0], thread);
        assert_eq!(devices[0].ids(thread), devices[2].ids(thread), "seed {seed}: a clone is equal");
        for device in &devices {
            let verified = device.timeline.store().verify(&mut |_| {}).expect("verified");
            assert!(verified.is_clean(), "seed {seed}: {:?}", verified.problems);
        }
    }
    assert!(merges > 12 && undone > 100, "{merges} merges, {undone} steps undone");
    assert_eq!(caught, [true; 2], "both controls must be caught");
}

#[test]
fn take_changed_on_both_sides_becomes_two() {
    let [one, two] = [Device::new(1), Device::new(2)];
    let new = retake_timeline::NewThread::in_project(PROJECT).titled("Fix");
    let thread = one.timeline.create_thread(new, Caller::human()).expect("a thread").thread;
    let main = one.state(thread).active;
    one.say(thread, main, "common");
    two.pull(&one, thread);
    one.say(thread, main, "theirs");
    one.change(thread, Command::Tag { add: vec!["a".to_owned()], remove: Vec::new() });
    one.change(thread, Command::Rename { title: "Theirs".to_owned() });
    two.say(thread, main, "ours");
    two.change(thread, Command::Tag { add: vec!["b".to_owned()], remove: Vec::new() });
    two.change(thread, Command::Rename { title: "Ours".to_owned() });
    two.change(thread, Command::Pin { pinned: true });
    let Adoption::Merged(report) = two.pull(&one, thread) else { panic!("a merge") };
    one.pull(&two, thread);
    assert_eq!(one.ids(thread), two.ids(thread));
    let state = two.state(thread);
    assert_eq!((state.title.as_str(), state.pinned, state.active), ("Theirs", true, main));
    assert_eq!(state.tags.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(report.fields, ["title"]);
    let [kept] = report.takes.as_slice() else { panic!("one take, not {:?}", report.takes) };
    assert_eq!((kept.theirs, kept.copy.as_str()), (main, "main_take_1"));
    let takes = two.takes(thread);
    let common = two.entries(&takes[&main])[0];
    assert_eq!(takes[&kept.ours].fork_point, Some(common));
    // One undo takes the merge back, one redo repeats it.
    let before = two.state(thread);
    two.timeline.undo(thread, Unit::Turn, 1, Caller::human()).expect("an undo");
    assert!(!two.state(thread).pinned && two.takes(thread).len() == 1);
    two.timeline.redo(thread, Unit::Turn, 1, Caller::human()).expect("a redo");
    assert_eq!(two.state(thread), before);
}

#[test]
fn forged_operations_are_refused_and_change_nothing() {
    let [one, two] = [Device::new(1), Device::new(2)];
    let new = retake_timeline::NewThread::in_project(PROJECT);
    let thread = one.timeline.create_thread(new, Caller::human()).expect("a thread").thread;
    let main = one.state(thread).active;
    one.say(thread, main, "common");
    two.pull(&one, thread);
    // Another thread of the victim, whose content a forger knows by its hash.
    let secret = World::saying(&["secret"]);
    let hash = |entry: &Take| {
        entry.entries.get(&secret.read().queries(), 0).expect("a list").expect("an entry").version
    };
    let stolen = hash(&secret.take());
    one.say(thread, main, "more");
    let honest = one.replica_after(thread, 2);
    let common = two.points(thread)[1];
    let forged: [fn(&mut ReplicaOperation); 4] = [
        |it| it.operation[10] ^= 1,
        |it| it.objects.clear(),
        |it| it.objects[0].bytes = b"other"[..].into(),
        |it| it.operation.truncate(20),
    ];
    let before = two.ids(thread);
    for forge in forged {
        let mut operations = honest.clone();
        forge(&mut operations[0]);
        assert!(two.timeline.adopt_operations(thread, PROJECT, common, operations).is_err());
        assert_eq!(two.ids(thread), before);
    }
    assert!(honest[0].objects.iter().all(|object| object.id != stolen));
    assert!(matches!(two.timeline.adopt_operations(thread, PROJECT, common, honest), Ok(Adoption::Advanced)));
}
