//! Projects, threads and takes, as a tree that is a picture.
//!
//! ```text
//!   ● main            a line for each take: where it parted from its parent, which is worked on,
//!   ├─● main_take_1   and where a turn runs
//!   └─○ retry
//! ```

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::summary::TakeSummary;
use retake_timeline::TreeThread;
use retake_timeline::store::Deleted;
use retake_words::number::count;

use crate::draw::moment;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};

/// How many threads are drawn.
const SHOWN: usize = 100;
/// The height of a take's line, in the picture's units.
const LINE: usize = 26;
/// How far a branch is set in.
const STEP: usize = 14;

/// The tree.
pub(crate) fn draw(studio: &Studio, asked: &Asked) -> Result<Markup, Failed> {
    let page = studio.timeline.tree_page(None, Deleted::Hidden, None, SHOWN)?;
    let running: HashSet<TakeId> = studio
        .timeline
        .store()
        .running(&studio.ledger)?
        .into_iter()
        .filter(|(_, alive)| *alive)
        .map(|(turn, _)| turn.take)
        .collect();
    let wanted = asked.q.as_deref().unwrap_or_default().to_lowercase();
    let fits = |thread: &&TreeThread| {
        let summary = &thread.summary;
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        wanted.is_empty() || has(&summary.title) || summary.tags.iter().any(|tag| has(tag))
    };
    let shown: Vec<&TreeThread> = page.items.iter().filter(fits).collect();
    let paths = paths(studio)?;
    let mut projects: Vec<(ProjectId, Vec<&TreeThread>)> = Vec::new();
    for thread in shown {
        let project = thread.summary.project;
        match projects.iter_mut().find(|(known, _)| *known == project) {
            Some((_, threads)) => threads.push(thread),
            None => projects.push((project, vec![thread])),
        }
    }
    Ok(html! {
        div id="tree" data-live="tree" {
            div class="brand" {
                a href="/studio" { img src="/studio/icon.svg" alt="" width="20" height="20"; "Retake" }
                button type="button" data-act="new-thread" title="Make a thread (N)" { "New" }
            }
            input type="search" id="find" placeholder="Find a thread" aria-label="Find a thread" value=(wanted);
            @if projects.is_empty() {
                p class="quiet" { @if wanted.is_empty() { "No threads yet." } @else { "No thread is called that." } }
            }
            @for (project, threads) in &projects {
                section {
                    h2 title=(paths.get(project).map_or("", String::as_str)) { (name_of(paths.get(project))) }
                    ul { @for thread in threads { (draw_thread(thread, asked, &running)) } }
                }
            }
            @if page.next.is_some() { p class="quiet" { "Older threads are not shown; look for them by name." } }
            footer { a href="/docs" { "API" } }
        }
    })
}

fn draw_thread(thread: &TreeThread, asked: &Asked, running: &HashSet<TakeId>) -> Markup {
    let summary = &thread.summary;
    let lines = lines(thread);
    let here = |thread: ThreadId| asked.path.as_deref() == Some(thread.to_string().as_str());
    html! {
        li class=(if here(summary.id) { "thread here" } else { "thread" }) data-thread=(summary.id.to_string()) {
            a href=(format!("/studio/threads/{}", summary.id)) {
                span class="title" { @if summary.pinned { span title="Pinned" { "📌 " } } (summary.title) }
                span class="facts" {
                    (moment(summary.updated))
                    @if summary.private { " · private" }
                    @for tag in &summary.tags { " " span class="tag" { (tag) } }
                }
            }
            @if lines.len() > 1 || running.contains(&summary.active.id) {
                div class="takes" {
                    (picture(&lines, summary.active.id, running))
                    ul {
                        @for line in &lines {
                            li {
                                a href=(format!("/studio/threads/{}?take={}", summary.id, line.take.id))
                                    class=(if line.take.id == summary.active.id { "active" } else { "" }) {
                                    span class="name" { (line.take.name) }
                                    span class="facts" { (count(line.take.entries)) @if running.contains(&line.take.id) { " · running" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A take where it stands in the picture.
struct Line<'a> {
    take: &'a TakeSummary,
    depth: usize,
    /// The line of the take that it parted from.
    parent: Option<usize>,
}

/// The takes of a thread, each behind the one that it parted from.
fn lines(thread: &TreeThread) -> Vec<Line<'_>> {
    let mut children: HashMap<Option<TakeId>, Vec<&TakeSummary>> = HashMap::new();
    for take in &thread.all_takes {
        children.entry(thread.parent_of(take)).or_default().push(take);
    }
    let mut lines = Vec::new();
    let mut waiting: Vec<(&TakeSummary, usize, Option<usize>)> = Vec::new();
    let roots = children.get(&None).into_iter().flatten().rev();
    waiting.extend(roots.map(|take| (*take, 0, None)));
    while let Some((take, depth, parent)) = waiting.pop() {
        let own = lines.len();
        lines.push(Line { take, depth, parent });
        let below = children.get(&Some(take.id)).into_iter().flatten().rev();
        waiting.extend(below.map(|child| (*child, depth + 1, Some(own))));
    }
    lines
}

fn picture(lines: &[Line<'_>], active: TakeId, running: &HashSet<TakeId>) -> Markup {
    let deepest = lines.iter().map(|line| line.depth).max().unwrap_or(0).min(8);
    let (width, height) = (deepest * STEP + 16, lines.len() * LINE);
    let across = |depth: usize| depth.min(8) * STEP + 8;
    let down = |index: usize| index * LINE + LINE / 2;
    html! {
        svg class="graph" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            @for (index, line) in lines.iter().enumerate() {
                @if let Some(parent) = line.parent {
                    @let (x, y) = (across(lines[parent].depth), down(parent));
                    @let (to_x, to_y) = (across(line.depth), down(index));
                    path d=(format!("M{x} {y}V{}Q{x} {to_y} {} {to_y}H{to_x}", to_y.saturating_sub(8), x + 8)) {}
                }
            }
            @for (index, line) in lines.iter().enumerate() {
                @let class = match (line.take.id == active, running.contains(&line.take.id)) {
                    (_, true) => "running",
                    (true, _) => "active",
                    _ => "",
                };
                circle cx=(across(line.depth)) cy=(down(index)) r="4.5" class=(class) {}
            }
        }
    }
}

/// Where projects are.
fn paths(studio: &Studio) -> Result<HashMap<ProjectId, String>, Failed> {
    let looking = studio.timeline.look()?;
    Ok(looking.queries().projects()?.into_iter().map(|row| (row.id, row.path)).collect())
}

fn name_of(path: Option<&String>) -> String {
    let name = path.and_then(|path| path.rsplit('/').find(|part| !part.is_empty()));
    name.map_or_else(|| "Elsewhere".to_owned(), str::to_owned)
}
