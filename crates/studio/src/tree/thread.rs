//! A thread in the tree: what it is called, its labels, its takes, and the threads that were once takes of it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use maud::{Markup, html};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Version;
use retake_timeline::TreeThread;
use retake_words::number::{count, counted};

use super::badges::Known;
use super::filter;
use super::graph::{self, Line};
use crate::draw::moment;
use crate::studio::Asked;

/// So many takes of the thread that is looked at are drawn.
const TAKES_HERE: usize = 60;
/// So many takes of each other thread.
const TAKES_OF_OTHER: usize = 8;
/// And so many of all others together, so that a page stays small.
const TAKES_OF_OTHERS: usize = 60;
/// Threads below threads are set in so far, and no further.
const DEEPEST: usize = 4;

/// What threads are drawn with.
pub(super) struct View<'a> {
    asked: &'a Asked,
    running: HashSet<TakeId>,
    /// The thread that is looked at.
    here: Option<ThreadId>,
    /// What threads did to files, as far as it is known.
    known: HashMap<ThreadId, Arc<Known>>,
    /// The moments of the thread that is looked at.
    saved: Vec<(Version, String)>,
    /// The threads that stand below another.
    below: HashMap<ThreadId, Vec<&'a TreeThread>>,
    /// How many takes may still be drawn.
    room: Cell<usize>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        asked: &'a Asked,
        running: HashSet<TakeId>,
        here: Option<ThreadId>,
        known: HashMap<ThreadId, Arc<Known>>,
        saved: Vec<(Version, String)>,
    ) -> Self {
        let (below, room) = (HashMap::new(), Cell::new(TAKES_OF_OTHERS));
        Self { asked, running, here, known, saved, below, room }
    }

    /// Puts threads below those that they were once takes of; gives the others.
    pub(super) fn arrange(&mut self, threads: &'a [TreeThread]) -> Vec<&'a TreeThread> {
        let known: HashMap<ThreadId, &TreeThread> =
            threads.iter().map(|thread| (thread.summary.id, thread)).collect();
        let above = |thread: &TreeThread| {
            let parent = known.get(&thread.below?)?;
            (parent.summary.project == thread.summary.project).then_some(parent.summary.id)
        };
        // A circle, which only a damaged log could hold, has no root: its threads stand for themselves.
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

    /// A thread with all that stands below it.
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
                        // The takes of this one say it themselves.
                        @if let Some(known) = known.filter(|_| !here) { " · " (known.badge(summary.active.id)) }
                        @if let Some(model) = &summary.model { " · " span class="model" { (model) } }
                    }
                }
                @if !summary.tags.is_empty() {
                    p class="tags" {
                        @for tag in &summary.tags {
                            button type="button" class="tag" data-act="tag" value=(format!("#{tag}")) title="Threads with this tag" { (tag) }
                        }
                    }
                }
                @if summary.deleted.is_some() {
                    button type="button" class="back" data-act="ask" data-method="POST" data-ask=(format!("/v1/threads/{}/restore", summary.id))
                        data-then="It is back." { "Bring back" }
                }
                (self.draw_takes(thread))
                @if here { (self.draw_moments(thread)) }
                @if let Some(below) = below {
                    ul class=(if depth < DEEPEST { "below" } else { "" }) { @for thread in below { (self.draw(thread, depth + 1)) } }
                }
            }
        }
    }

    /// An address of a thread's page, with the filter that is chosen.
    fn to(&self, thread: &TreeThread, more: &[(&str, &str)]) -> String {
        filter::kept(&format!("/studio/threads/{}", thread.summary.id), self.asked, more)
    }

    fn draw_takes(&self, thread: &TreeThread) -> Markup {
        let known = self.known.get(&thread.summary.id).filter(|_| self.here == Some(thread.summary.id));
        let known = known.map(|known| &**known);
        let runs = thread.all_takes.iter().any(|take| self.running.contains(&take.id));
        if known.is_none() && thread.all_takes.len() < 2 && !runs {
            return html! {};
        }
        let most = if known.is_some() { TAKES_HERE } else { TAKES_OF_OTHER.min(self.room.get()) };
        let shown = self.asked.take.filter(|_| known.is_some());
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

    fn draw_take(&self, thread: &TreeThread, line: &Line<'_>, known: Option<&Known>) -> Markup {
        let take = line.take;
        let id = take.id.to_string();
        let active = take.id == thread.summary.active.id;
        let shown = known.is_some() && self.asked.take == Some(take.id);
        html! {
            li {
                a id=(format!("k-{id}")) href=(self.to(thread, &[("take", &id)])) class=[active.then_some("active")]
                    aria-current=[shown.then_some("page")] title=(take.preview) {
                    span class="name" { (take.name) }
                    @if active { span class="hidden" { ", worked on" } }
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
                                        title="The last entry that both have" { (from) }
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

    /// The moments that were saved, as labels.
    fn draw_moments(&self, thread: &TreeThread) -> Markup {
        html! {
            @if !self.saved.is_empty() {
                ul class="moments" aria-label="Saved moments" {
                    @for (version, name) in &self.saved {
                        li { a href=(self.to(thread, &[("at", &version.to_string())])) title="A moment that was saved" { span class="name" { (name) } } }
                    }
                }
            }
        }
    }
}

/// Where a take left its parent: the number of the last entry that both have.
fn from(thread: &TreeThread, line: &Line<'_>) -> Option<String> {
    thread.parent_of(line.take)?;
    Some(match line.take.shared {
        0 => "from the start".to_owned(),
        shared => format!("from #{}", count(shared)),
    })
}
