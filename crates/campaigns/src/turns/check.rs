//! The rules that hold whenever no turn is running.

use std::collections::BTreeMap;
use std::path::PathBuf;

use retake_model::content::{ContentId, Kind};
use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId};
use retake_model::object::load;
use retake_model::projection::{Ask, Dialect, Thoughts, ToolSpec, Wire, converse, request, rules};
use retake_model::take::Take;
use retake_model::tree::{Node, Snapshot, differences};
use retake_timeline::{Caller, Reader, read_blob};

use super::world::World;
use crate::folder::{FileNode, Folder};
use crate::violation::BoxError;

/// Content that was checked before and need not be checked again.
#[derive(Default)]
pub(super) struct CheckedTakes {
    takes: BTreeMap<TakeId, Vec<ContentId>>,
    pub(super) projections: u64,
}

/// How many operations with files to search for the last one in the folder; a turn makes fewer takes.
const FILES: usize = 8;

/// The broken rule, if any.
pub(super) type Verdict = Result<(), String>;

fn trouble(error: impl Into<BoxError>) -> String {
    format!("it cannot be read: {}", error.into())
}

/// All rules.
pub(super) fn everything(world: &World, checked: &mut CheckedTakes, takes: u64) -> Verdict {
    let found = world.takes().map_err(trouble)?;
    if found.len() as u64 != takes {
        return Err(format!(
            "{} takes, and {takes} were created: a fork without its turn, or a lost one",
            found.len()
        ));
    }
    requests(world)?;
    leftovers(world)?;
    files(world)?;
    projections(world, checked, &found)
}

/// Every request satisfied its rules.
fn requests(world: &World) -> Verdict {
    world.assistant.with(|mind| mind.broken.first().cloned()).map_or(Ok(()), Err)
}

/// Nothing is left of a turn.
fn leftovers(world: &World) -> Verdict {
    let runtime_database = world.runtime.timeline.store().runtime_database().map_err(trouble)?;
    if let Some(left) = runtime_database.turns().map_err(trouble)?.first() {
        return Err(format!("a record of turn {} was left behind", left.turn));
    }
    let reader = world.runtime.timeline.read().map_err(trouble)?;
    for folder in reader.queries().folders().map_err(trouble)? {
        if let Some(run) = folder.running {
            return Err(format!("turn {} is recorded as running in the folder", run.turn));
        }
    }
    Ok(())
}

/// The folder matches the last operation with files, and a snapshot finds no unexplained changes.
fn files(world: &World) -> Verdict {
    let seen = world.working_copy.record_changes(world.thread, Caller::human()).map_err(trouble)?;
    if seen.operation.is_some() {
        let paths: Vec<String> = seen.files.paths.iter().map(|path| format!("{path:?}")).collect();
        return Err(format!("files changed without an operation that records it: {}", paths.join(", ")));
    }
    let reader = world.runtime.timeline.read().map_err(trouble)?;
    // A take that is created in the background has files that are not in the folder.
    let mut last = reader.files(world.thread).list(None, FILES).map_err(trouble)?.into_iter();
    let last = last.find(|last| !last.files.worktree);
    let Some(known) = last.map(|last| last.files.after) else { return Ok(()) };
    let recorded = recorded(&reader, known).map_err(trouble)?;
    let there = Folder::read(&world.project).map_err(trouble)?;
    if let Some(left) = there.leftovers().first() {
        return Err(format!("the temporary file {} was not removed", left.display()));
    }
    let there: BTreeMap<PathBuf, ContentId> = there
        .0
        .iter()
        .filter_map(|(path, thing)| match thing {
            FileNode::File { bytes, .. } => Some((path.clone(), ContentId::of(Kind::Blob, bytes))),
            _ => None,
        })
        .collect();
    if there == recorded {
        return Ok(());
    }
    let names = |files: &BTreeMap<PathBuf, ContentId>| format!("{:?}", files.keys().collect::<Vec<_>>());
    Err(format!("split: the folder holds {}, the log says {}", names(&there), names(&recorded)))
}

/// The files of a snapshot; none of them is long enough for parts.
fn recorded(reader: &Reader<'_>, snapshot: ContentId) -> Result<BTreeMap<PathBuf, ContentId>, BoxError> {
    let queries = reader.queries();
    let snapshot: Snapshot = load(&queries, snapshot)?;
    let found = differences(&queries, None, snapshot.root("").map(|root| root.tree))?;
    let file = |found: retake_model::tree::Difference| match found.after {
        Some(Node::File { content, .. }) => Some((PathBuf::from(found.path.to_string()), content)),
        _ => None,
    };
    Ok(found.into_iter().filter_map(file).collect())
}

/// Every take can be projected for every provider.
fn projections(world: &World, checked: &mut CheckedTakes, takes: &[Take]) -> Verdict {
    let reader = world.runtime.timeline.read().map_err(trouble)?;
    for take in takes {
        let page = reader.entries(world.thread, take).page(0..take.entries.len()).map_err(trouble)?;
        let versions: Vec<ContentId> = page.iter().map(|view| view.version).collect();
        if checked.takes.get(&take.id) == Some(&versions) {
            continue;
        }
        let entries: Vec<(EntryId, EntryVersion)> =
            page.into_iter().map(|view| (view.id, view.entry)).collect();
        for wire in Wire::ALL {
            checked.projections += 1;
            let model = format!("scripted-{}", wire.name());
            let body = request(&converse(&entries), &ask(wire, &model), &|id| read_blob(&reader, id).ok());
            if let Some(found) = rules::check(wire, &body).first() {
                return Err(format!("take {} on {wire:?}: {} {}", take.name, found.at, found.rule));
            }
        }
        checked.takes.insert(take.id, versions);
    }
    Ok(())
}

fn ask(wire: Wire, model: &str) -> Ask<'_> {
    const TOOLS: &[ToolSpec] = &[];
    Ask {
        wire,
        dialect: Dialect::of(wire),
        model,
        system: "Be brief.",
        tools: TOOLS,
        max_tokens: 4_096,
        temperature: None,
        top_p: None,
        thinking: None,
        thoughts: Thoughts::Accepted,
    }
}

/// The store verifies.
pub(super) fn verified(world: &World) -> Verdict {
    let found = world.runtime.timeline.store().verify(&mut |_| {}).map_err(trouble)?;
    found.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
}
