//! A thread in the tree: title, labels, takes, and threads promoted from it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use maud::{Markup, html};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Version;
use retake_render::number::{count, counted};
use retake_timeline::TreeThread;

use super::badges::ThreadBadges;
use super::filter;
use super::graph::{self, TakeLine};
use crate::draw::moment;
use crate::studio::PageQuery;

/// Maximum takes of the open thread.
const MAX_TAKES: usize = 60;
/// Maximum takes of another thread.
const MAX_TAKES_OF_OTHER: usize = 8;
/// Maximum takes of all other threads together.
const MAX_TAKES_OF_OTHERS: usize = 60;
/// Maximum indentation level.
const MAX_INDENT: usize = 4;

/// The data for rendering threads.
pub(super) struct TreeView<'a> {
    query: &'a PageQuery,
    running: HashSet<TakeId>,
    /// The open thread.
    here: Option<ThreadId>,
    /// Badges of threads, as far as known.
    known: HashMap<ThreadId, Arc<ThreadBadges>>,
    /// Saved versions of the open thread.
    saved: Vec<(Version, String)>,
    /// Threads by the thread they were promoted from.
    below: HashMap<ThreadId, Vec<&'a TreeThread>>,
    /// Remaining takes of other threads.
    room: Cell<usize>,
}

impl<'a> TreeView<'a> {
    pub(super) fn new(
        query: &'a PageQuery,
        running: HashSet<TakeId>,
        here: Option<ThreadId>,
        known: HashMap<ThreadId, Arc<ThreadBadges>>,
        saved: Vec<(Version, String)>,
    ) -> Self {
        let (below, room) = (HashMap::new(), Cell::new(MAX_TAKES_OF_OTHERS));
        Self { query, running, here, known, saved, below, room }
    }

    /// Groups promoted threads below their parents; returns the others.
    pub(super) fn arrange(&mut self, threads: &'a [TreeThread]) -> Vec<&'a TreeThread> {
        let known: HashMap<ThreadId, &TreeThread> =
            threads.iter().map(|thread| (thread.summary.id, thread)).collect();
        let above = |thread: &TreeThread| {
            let parent = known.get(&thread.below?)?;
            (parent.summary.project == thread.summary.project).then_some(parent.summary.id)
        };
        // Threads in a cycle, which only a damaged log could contain, become roots.
        let has_root = |thread: &TreeThread| {
            let next = |id: &ThreadId| known.get(id).copied().and_then(above);
            std::iter::successors(Some(thread.summary.id), next).take(threads.len() + 1).count()
                <= threads.len()
        };
        let mut roots = Vec::new();
        for thread in threads {
            match above(thread).filter(|_| has_root(thread)) {
                Some(parent) => self.below.entry(parent).or_default().push(thread),
                None => roots.push(thread),
            }
        }
        roots
    }

    /// A thread with the threads below it.
    pub(super) fn draw(&self, thread: &TreeThread, depth: usize) -> Markup {
        let summary = &thread.summary;
        let here = self.here == Some(summary.id);
        let known = self.known.get(&summary.id).filter(|known| known.has_badge(summary.active.id));
        let below = self.below.get(&summary.id);
        html! {
            li class=(if here { "thread here" } else { "thread" }) data-thread=(summary.id.to_string()) {
                a id=(format!("t-{}", summary.id)) href=(self.to(thread, &[])) aria-current=[here.then_some("true")] {
                    span class="title" {
                        @if summary.pinned { span class="pin" title="Pinned" role="img" aria-label="Pinned" { "⚑" } " " }
                        (summary.title)
                    }
                    span class="facts" {
                        (moment(summary.updated))
                        @if summary.private { " · private" }
                        // In the open thread, the takes have their own badges.
                        @if let Some(known) = known.filter(|_| !here) { " · " (known.badge(summary.active.id)) }
                        @if let Some(model) = &summary.model { " · " span class="model" { (model) } }
                    }
                }
                @if !summary.tags.is_empty() {
                    p class="tags" {
                        @for tag in &summary.tags {
                            button type="button" class="tag" data-act="tag" value=(format!("#{tag}")) title="Show threads with this tag" { (tag) }
                        }
                    }
                }
                @if summary.deleted.is_some() {
                    button type="button" class="back" data-act="ask" data-method="POST" data-ask=(format!("/v1/threads/{}/restore", summary.id))
                        data-then="Restored." { "Restore" }
                }
                (self.draw_takes(thread))
                @if here { (self.draw_saved(thread)) }
                @if let Some(below) = below {
                    ul class=(if depth < MAX_INDENT { "below" } else { "" }) { @for thread in below { (self.draw(thread, depth + 1)) } }
                }
            }
        }
    }

    /// The address of a thread, with the current filter.
    fn to(&self, thread: &TreeThread, more: &[(&str, &str)]) -> String {
        filter::with_filter(&format!("/studio/threads/{}", thread.summary.id), self.query, more)
    }

    fn draw_takes(&self, thread: &TreeThread) -> Markup {
        let known = self.known.get(&thread.summary.id).filter(|_| self.here == Some(thread.summary.id));
        let known = known.map(|known| &**known);
        let runs = thread.all_takes.iter().any(|take| self.running.contains(&take.id));
        if known.is_none() && thread.all_takes.len() < 2 && !runs {
            return html! {};
        }
        let most = if known.is_some() { MAX_TAKES } else { MAX_TAKES_OF_OTHER.min(self.room.get()) };
        let shown = self.query.take.filter(|_| known.is_some());
        let mut lines = graph::lines(thread, shown, most);
        if known.is_none() {
            self.room.set(self.room.get() - lines.len());
        }
        for line in &mut lines {
            line.running = self.running.contains(&line.take.id);
            let parted = thread.parent_of(line.take).is_some();
            line.more = known.is_some_and(|known| parted || known.has_badge(line.take.id));
        }
        let left = thread.all_takes.len() - lines.len();
        html! {
            @if !lines.is_empty() {
                div class="takes" {
                    (graph::draw(&lines, thread.summary.active.id))
                    ul { @for line in &lines { (self.draw_take(thread, line, known)) } }
                }
            }
            @if left > 0 {
                p class="quiet more-takes" { (counted(left as u64, "take", "takes")) @if !lines.is_empty() { " more" } }
            }
        }
    }

    fn draw_take(&self, thread: &TreeThread, line: &TakeLine<'_>, known: Option<&ThreadBadges>) -> Markup {
        let take = line.take;
        let id = take.id.to_string();
        let active = take.id == thread.summary.active.id;
        let shown = known.is_some() && self.query.take == Some(take.id);
        html! {
            li {
                a id=(format!("k-{id}")) href=(self.to(thread, &[("take", &id)])) class=[active.then_some("active")]
                    aria-current=[shown.then_some("page")] title=(take.preview) {
                    span class="name" { (take.name) }
                    @if active { span class="hidden" { ", active" } }
                    span class="facts" {
                        @if line.running { span class="runs" { "running" } " · " }
                        @if known.is_none() { @if let Some(from) = from(thread, line) { (from) " · " } }
                        span title="Entries" { (count(take.entries)) } span class="hidden" { " entries" }
                    }
                }
                @if let (Some(known), true) = (known, line.more) {
                    p class="facts" {
                        @if let Some(from) = from(thread, line) {
                            @match (thread.parent_of(take), take.fork_point) {
                                (Some(parent), Some(entry)) => {
                                    @let (parent, place) = (parent.to_string(), take.shared.saturating_sub(1).to_string());
                                    a href=(format!("{}#e-{entry}", self.to(thread, &[("take", &parent), ("from", &place)])))
                                        title="The last shared entry" { (from) }
                                }
                                _ => (from),
                            }
                            @if let Some(commit) = &take.git_commit {
                                " " span title=(format!("Branched off at git commit {commit}")) { "@" (commit.chars().take(7).collect::<String>()) }
                            }
                            @if known.has_badge(take.id) { " · " }
                        }
                        (known.badge(take.id))
                    }
                }
            }
        }
    }

    /// Saved versions as labels.
    fn draw_saved(&self, thread: &TreeThread) -> Markup {
        html! {
            @if !self.saved.is_empty() {
                ul class="moments" aria-label="Saved versions" {
                    @for (version, name) in &self.saved {
                        li { a href=(self.to(thread, &[("at", &version.to_string())])) title="Saved version" { span class="name" { (name) } } }
                    }
                }
            }
        }
    }
}

/// Where a take branched off: the number of the last shared entry.
fn from(thread: &TreeThread, line: &TakeLine<'_>) -> Option<String> {
    thread.parent_of(line.take)?;
    Some(match line.take.shared {
        0 => "from the start".to_owned(),
        shared => format!("from #{}", count(shared)),
    })
}
