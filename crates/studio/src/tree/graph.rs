//! The graph of takes of a thread: where each branches off its parent, and the path to the active one.
//!
//! ```text
//!   ●  main              a root
//!   ├──○  main_take_1    branched off after entry 4
//!   ┗━━●  retry          the path to the active take is bold
//! ```

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use retake_model::id::TakeId;
use retake_model::summary::TakeSummary;
use retake_timeline::TreeThread;

/// Height of the line with the name.
const NAME_HEIGHT: usize = 26;
/// Height of the line with details.
const DETAIL_HEIGHT: usize = 17;
/// Indentation per level.
const INDENT: usize = 14;
/// Maximum indentation level.
const MAX_INDENT: usize = 6;

/// A take in the graph.
pub(super) struct TakeLine<'a> {
    pub(super) take: &'a TakeSummary,
    /// Index of its parent.
    parent: Option<usize>,
    depth: usize,
    /// Whether it is the active take or an ancestor of it.
    is_ancestor: bool,
    pub(super) running: bool,
    /// Whether it has a line with details.
    pub(super) more: bool,
}

/// At most `most` takes of a thread, each after its parent. If there are more, prefers the active and the shown take with
/// their ancestors, then the latest.
pub(super) fn lines(thread: &TreeThread, shown: Option<TakeId>, most: usize) -> Vec<TakeLine<'_>> {
    let active = thread.summary.active.id;
    let parents: HashMap<TakeId, Option<TakeId>> =
        thread.all_takes.iter().map(|take| (take.id, thread.parent_of(take))).collect();
    // The limit ends cycles, which only a damaged log could contain.
    let way = |take: TakeId| {
        std::iter::successors(Some(take), |take| parents.get(take).copied().flatten()).take(parents.len())
    };
    let is_ancestor: HashSet<TakeId> = way(active).collect();
    let mut kept: HashSet<TakeId> = way(active).chain(shown.into_iter().flat_map(way)).take(most).collect();
    let mut latest: Vec<&TakeSummary> = thread.all_takes.iter().collect();
    latest.sort_by_key(|take| std::cmp::Reverse(take.last_entry));
    for take in latest {
        if kept.len() >= most {
            break;
        }
        kept.insert(take.id);
    }
    let mut children: HashMap<Option<TakeId>, Vec<&TakeSummary>> = HashMap::new();
    for take in thread.all_takes.iter().filter(|take| kept.contains(&take.id)) {
        let parent = way(take.id).skip(1).find(|parent| kept.contains(parent));
        children.entry(parent).or_default().push(take);
    }
    let mut lines = Vec::new();
    let mut waiting: Vec<(&TakeSummary, usize, Option<usize>)> = Vec::new();
    waiting.extend(children.get(&None).into_iter().flatten().rev().map(|take| (*take, 0, None)));
    while let Some((take, depth, parent)) = waiting.pop() {
        let own = lines.len();
        let is_ancestor = is_ancestor.contains(&take.id);
        lines.push(TakeLine { take, depth, parent, is_ancestor, running: false, more: false });
        let below = children.get(&Some(take.id)).into_iter().flatten().rev();
        waiting.extend(below.map(|child| (*child, depth + 1, Some(own))));
    }
    lines
}

/// Renders the graph.
pub(super) fn draw(lines: &[TakeLine<'_>], active: TakeId) -> Markup {
    let mut places = Vec::with_capacity(lines.len());
    let mut height = 0;
    for line in lines {
        places.push((line.depth.min(MAX_INDENT) * INDENT + 8, height + NAME_HEIGHT / 2));
        height += NAME_HEIGHT + if line.more { DETAIL_HEIGHT } else { 0 };
    }
    let width = places.iter().map(|(across, _)| across + 8).max().unwrap_or(0);
    let branch = |index: usize| {
        let (x, y) = places[lines[index].parent?];
        let (to_x, to_y) = places[index];
        let bend = to_y.saturating_sub(8);
        Some((x, bend, format!("M{x} {y}V{bend}Q{x} {to_y} {} {to_y}H{to_x}", (x + 8).min(to_x))))
    };
    html! {
        svg class="graph" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            // Draw the path to the active take last, on top.
            @for is_ancestor in [false, true] {
                @for index in (0..lines.len()).filter(|index| lines[*index].is_ancestor == is_ancestor) {
                    @if let Some((x, y, path)) = branch(index) {
                        path class=[is_ancestor.then_some("way")] d=(path) {}
                        circle class=(if is_ancestor { "point way" } else { "point" }) cx=(x) cy=(y) r="2" {}
                    }
                }
            }
            @for (line, (x, y)) in lines.iter().zip(&places) {
                circle class=(class_of(line, active)) cx=(x) cy=(y) r="4.5" {}
            }
        }
    }
}

fn class_of(line: &TakeLine<'_>, active: TakeId) -> &'static str {
    match (line.running, line.take.id == active, line.is_ancestor) {
        (true, ..) => "running",
        (_, true, _) => "active",
        (_, _, true) => "way",
        _ => "",
    }
}
