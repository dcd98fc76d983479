//! Builds the tree of threads and takes as labels.

use std::collections::{HashMap, HashSet};

use retake_model::id::{TakeId, ThreadId};
use retake_model::summary::TakeSummary;
use retake_timeline::{Project, Tree, TreeThread};

use super::shape::MessageTree;
use crate::context::Context;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::tree::{Forest, NodeKey, NodePosition};
use crate::ui::width::Align;

/// All threads with their takes; promoted threads are below their source.
pub(super) fn threads(context: &Context, tree: &Tree, project: &Project) -> Forest {
    let below: HashMap<ThreadId, Option<ThreadId>> =
        tree.threads.iter().map(|thread| (thread.summary.id, thread.below)).collect();
    // The path to the current thread comes first at every level.
    let first: HashSet<ThreadId> =
        project.current.map(|current| ancestors(&below, current).collect()).unwrap_or_default();
    let mut ordered: Vec<&TreeThread> = tree.threads.iter().collect();
    // Parents must be added before their children.
    ordered.sort_by_key(|thread| {
        let id = thread.summary.id;
        (ancestors(&below, id).count(), !first.contains(&id))
    });
    let facts = TailColumns::new(context, tree.threads.iter().flat_map(|thread| &thread.all_takes));
    let mut forest = Forest::new();
    let mut drawn: HashMap<ThreadId, TakeNodes> = HashMap::new();
    for thread in ordered {
        let id = thread.summary.id;
        let label = thread_label(context, thread, project);
        let node = match thread.below.and_then(|parent| drawn.get(&parent)) {
            // A promoted thread hangs where its take was.
            Some(parent) => {
                let origin = thread.summary.parent.and_then(|parent| parent.take);
                let origin = origin.and_then(|take| parent.nodes.get(&take).copied()).unwrap_or(parent.first);
                forest.add_aside(origin, label, Label::new(), NodePosition::No)
            }
            None => forest.add(None, label, NodePosition::No),
        };
        let takes = takes(context, &mut forest, node, thread, Some(id) == project.current, &facts);
        drawn.insert(id, takes);
    }
    forest
}

/// The nodes of a thread's takes.
struct TakeNodes {
    first: NodeKey,
    nodes: HashMap<TakeId, NodeKey>,
}

/// The messages of one thread, with each take after its last message.
pub(super) fn messages(context: &Context, thread: &TreeThread, shape: &MessageTree) -> Forest {
    let styles = &context.styles;
    let facts = TailColumns::new(context, &thread.all_takes);
    let mut forest = Forest::new();
    let title = Label::new().with(styles.active, &thread.summary.title);
    let title = title.with(styles.id, &format!("  {}", thread.summary.id.short()));
    let root = forest.add(None, title, NodePosition::No);
    let mut nodes: Vec<NodeKey> = Vec::with_capacity(shape.messages.len());
    for message in &shape.messages {
        let parent = message.below.and_then(|index| nodes.get(index).copied()).unwrap_or(root);
        let label = Label::new().with(styles.count, &format!("{} ", message.number));
        nodes.push(forest.add(Some(parent), label.with(styles.user, &message.preview), NodePosition::No));
    }
    for end in &shape.takes {
        let parent = end.below.and_then(|index| nodes.get(index).copied()).unwrap_or(root);
        let Some(take) = thread.all_takes.iter().find(|take| take.id == end.take) else { continue };
        let active = take.id == thread.summary.active.id;
        let here = if active { NodePosition::Yes } else { NodePosition::No };
        let draft = draft(take).map(|draft| format!("  draft: {draft}")).unwrap_or_default();
        let label = take_name(context, take, active, true).with(styles.muted, &draft);
        forest.add_with_tail(Some(parent), label, facts.of_take(context, take), here);
    }
    forest
}

/// A thread and its ancestors, nearest first.
pub(super) fn ancestors(
    below: &HashMap<ThreadId, Option<ThreadId>>,
    thread: ThreadId,
) -> impl Iterator<Item = ThreadId> {
    // Bounded by the number of threads, in case a damaged log contains a cycle.
    std::iter::successors(Some(thread), |id| below.get(id).copied().flatten()).take(below.len() + 1)
}

fn takes(
    context: &Context,
    forest: &mut Forest,
    root: NodeKey,
    thread: &TreeThread,
    current: bool,
    facts: &TailColumns,
) -> TakeNodes {
    let mut takes = TakeNodes { first: root, nodes: HashMap::new() };
    // Takes are sorted by age, so parents come first.
    for take in &thread.all_takes {
        let active = take.id == thread.summary.active.id;
        let here = if active { NodePosition::Yes } else { NodePosition::No };
        let label = take_label(context, take, active, current);
        let tail = facts.of_take(context, take);
        let node = match take.parent.and_then(|parent| takes.nodes.get(&parent)) {
            Some(&parent) => forest.add_aside(parent, label, tail, here),
            None => forest.add_with_tail(Some(root), label, tail, here),
        };
        if takes.nodes.is_empty() {
            takes.first = node;
        }
        takes.nodes.insert(take.id, node);
    }
    takes
}

fn thread_label(context: &Context, thread: &TreeThread, project: &Project) -> Label {
    let styles = &context.styles;
    let summary = &thread.summary;
    let current = Some(summary.id) == project.current;
    let mut label = Label::new().with(if current { styles.active } else { styles.title }, &summary.title);
    label = label.with(styles.id, &format!("  {}", summary.id.short()));
    if summary.pinned {
        label = label.with(styles.warning, "  ⚑");
    }
    for tag in &summary.tags {
        label = label.with(styles.muted, &format!("  #{tag}"));
    }
    if summary.private {
        label = label.with(styles.muted, "  private");
    }
    if summary.deleted.is_some() {
        label = label.with(styles.removed, "  deleted");
    }
    if summary.project != project.id {
        let folder = summary.last_seen.workspace_root.as_deref().unwrap_or("another project");
        label = label.with(styles.muted, &format!("  {folder}"));
    }
    label
}

fn take_label(context: &Context, take: &TakeSummary, active: bool, current: bool) -> Label {
    let label = take_name(context, take, active, current);
    match draft(take) {
        Some(draft) => label.with(context.styles.muted, &format!("  draft: {draft}")),
        None if take.preview.is_empty() => label,
        None => label.plain(&format!("  {}", take.preview)),
    }
}

fn take_name(context: &Context, take: &TakeSummary, active: bool, current: bool) -> Label {
    let styles = &context.styles;
    match (active, current) {
        (true, true) => Label::new().with(styles.active, &format!("● {}", take.name)),
        (true, false) => Label::new().with(styles.muted, "○ ").with(styles.tool, &take.name),
        (false, _) => Label::new().with(styles.tool, &take.name),
    }
}

/// The draft of a take without entries of its own.
fn draft(take: &TakeSummary) -> Option<&str> {
    (take.entries == take.shared && !take.preview.is_empty()).then_some(take.preview.as_str())
}

/// The aligned columns at the right.
struct TailColumns {
    from: usize,
    entries: usize,
    time: usize,
}

impl TailColumns {
    fn new<'tree>(context: &Context, takes: impl IntoIterator<Item = &'tree TakeSummary>) -> Self {
        let mut facts = Self { from: 0, entries: 0, time: 0 };
        for take in takes {
            facts.from = facts.from.max(from(take).chars().count());
            facts.entries = facts.entries.max(entries(take).chars().count());
            facts.time = facts.time.max(context.ago(take.last_entry).chars().count());
        }
        facts
    }

    fn of_take(&self, context: &Context, take: &TakeSummary) -> Label {
        let styles = &context.styles;
        let cell = |style, text: &str, width| Label::new().with(style, text).pad(width, Align::Right);
        let mut tail = cell(styles.muted, &from(take), self.from);
        if self.from > 0 {
            tail = tail.plain("  ");
        }
        tail.join(cell(styles.count, &entries(take), self.entries)).plain("  ").join(cell(
            styles.muted,
            &context.ago(take.last_entry),
            self.time,
        ))
    }
}

/// The fork point: the number of the last entry shared with the parent.
fn from(take: &TakeSummary) -> String {
    let commit = take.git_commit.as_deref().unwrap_or_default();
    let commit: String = commit.chars().take(7).collect();
    let commit = if commit.is_empty() { commit } else { format!(" @{commit}") };
    match (take.parent, take.shared) {
        (None, _) => String::new(),
        (Some(_), 0) => format!("from start{commit}"),
        (Some(_), shared) => format!("from #{shared}{commit}"),
    }
}

fn entries(take: &TakeSummary) -> String {
    counted(take.entries, "entry", "entries")
}
