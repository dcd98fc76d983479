//! Replays over random snapshots that exclude some paths.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use retake_model::content::{ContentId, Kind};
use retake_model::merge::MergeLabels;
use retake_model::object::{Additions, MemoryObjects, load};
use retake_model::path::TreePath;
use retake_model::replay::{FileStep, OnConflict, PathOutcome, ReplayPlan, ReplayResult, replay};
use retake_model::tree::{
    Excluded, ExcludedKind, ExcludedPath, ExclusionReason, Node, Snapshot, SnapshotRoot, Tree, graft, resolve,
};

const PATHS: [&str; 3] = ["a", "b", "c"];
const LABELS: MergeLabels<'static> = MergeLabels { ours: "ours", theirs: "theirs" };

/// What a snapshot says about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Missing,
    File(u8),
    Ignored,
    IgnoredFolder,
}

type States = [State; PATHS.len()];

fn states() -> impl Strategy<Value = States> {
    let state = prop_oneof![
        Just(State::Missing),
        (0..3_u8).prop_map(State::File),
        Just(State::Ignored),
        Just(State::IgnoredFolder)
    ];
    [state.clone(), state.clone(), state]
}

fn path(text: &str) -> TreePath {
    TreePath::new(text.as_bytes()).expect("a valid path")
}

fn snapshot(additions: &mut Additions<'_, MemoryObjects>, states: States) -> ContentId {
    let (mut nodes, mut excluded) = (BTreeMap::new(), Vec::new());
    for (name, state) in PATHS.iter().zip(states) {
        match state {
            State::Missing => {}
            State::File(byte) => {
                let content = additions.add_bytes(Kind::Blob, vec![byte]);
                nodes.insert(path(name), Some(Node::file(content, 1, 0o644)));
            }
            State::Ignored | State::IgnoredFolder => excluded.push(ExcludedPath {
                path: name.as_bytes().to_vec(),
                reason: ExclusionReason::Ignored,
                kind: (state == State::IgnoredFolder).then_some(ExcludedKind::Folder),
            }),
        }
    }
    let empty = Tree::default().add_to(additions);
    let tree = graft(additions, empty, &nodes).expect("content is in memory");
    let excluded = (!excluded.is_empty()).then(|| additions.add(&Excluded(excluded)));
    let root = SnapshotRoot { name: String::new(), tree, excluded, files: 0, bytes: 0, sealed: None };
    additions.add(&Snapshot { roots: vec![root] })
}

/// The first broken rule.
fn check(
    states: &[States],
    replayed: &ReplayResult,
    additions: &Additions<'_, MemoryObjects>,
) -> Option<String> {
    let (present, target) = (states[0], states[states.len() - 1]);
    let tree = replayed.snapshot.roots[0].tree;
    let named: BTreeSet<String> = replayed.paths.iter().map(|path| path.path.path.to_string()).collect();
    for (index, name) in PATHS.iter().enumerate() {
        let after = resolve(additions, tree, &path(name)).expect("content is in memory");
        let stays = match (present[index], target[index]) {
            // There is no copy of what would be overwritten.
            (State::Ignored | State::IgnoredFolder, _) => after.is_none(),
            // An unknown file existed there in the target.
            (State::File(_), State::Ignored) => after.is_some(),
            _ => true,
        };
        if !stays {
            return Some(format!("{name} became {after:?}"));
        }
        let is_ignored = |state| matches!(state, State::Ignored | State::IgnoredFolder);
        // A captured file became ignored, or the reverse: the one that is there now may be the other one.
        let is_same = states.windows(2).any(|pair| {
            let [one, other] = [pair[0][index], pair[1][index]];
            (matches!(one, State::File(_)) && is_ignored(other))
                || (is_ignored(one) && matches!(other, State::File(_)))
        });
        if is_same && is_ignored(present[index]) && !named.contains(*name) {
            return Some(format!("{name} stays unnamed"));
        }
    }
    let wrong = replayed
        .paths
        .iter()
        .find(|path| matches!(path.how, PathOutcome::NotCaptured(_)) && path.present != path.wanted);
    wrong.map(|path| format!("{} is left and written", path.path))
}

/// Replays the steps between the states, one by one or summed up.
fn run(states: &[States], on_conflict: OnConflict, summed_up: bool) -> Option<String> {
    let memory = MemoryObjects::default();
    let mut additions = Additions::new(&memory);
    let ids: Vec<ContentId> = states.iter().map(|states| snapshot(&mut additions, *states)).collect();
    let steps: Vec<FileStep> = ids.windows(2).map(|pair| FileStep::new(pair[0], pair[1])).collect();
    let plan = if summed_up {
        ReplayPlan { passed: steps, ..ReplayPlan::of(vec![FileStep::new(ids[0], ids[ids.len() - 1])]) }
    } else {
        ReplayPlan::of(steps)
    };
    let present: Snapshot = load(&additions, ids[0]).expect("just created");
    let replayed =
        replay(&mut additions, &present, &plan, on_conflict, LABELS).expect("content is in memory");
    check(states, &replayed, &additions)
}

proptest! {
    #[test]
    fn a_replay_leaves_and_names_what_is_excluded(
        states in prop::collection::vec(states(), 2..6),
        take in any::<bool>(),
        summed_up in any::<bool>(),
    ) {
        let on_conflict = if take { OnConflict::Take } else { OnConflict::Keep };
        prop_assert_eq!(run(&states, on_conflict, summed_up), None);
    }
}

/// Control: a replay that takes an excluded path for a missing one breaks the rules.
#[test]
fn a_replay_that_takes_excluded_for_missing_is_caught() {
    let states = [[State::File(1); 3], [State::Missing; 3], [State::Ignored; 3]];
    let memory = MemoryObjects::default();
    let mut additions = Additions::new(&memory);
    let ids = [states[0], states[1]].map(|states| snapshot(&mut additions, states));
    let present: Snapshot = load(&additions, ids[0]).expect("just created");
    let plan = ReplayPlan::of(vec![FileStep::new(ids[0], ids[1])]);
    let replayed =
        replay(&mut additions, &present, &plan, OnConflict::Keep, LABELS).expect("content is in memory");
    assert!(check(&states, &replayed, &additions).is_some_and(|what| what.contains("became None")));
    assert_eq!(run(&states, OnConflict::Keep, false), None);
}
