//! The tree of projects, threads and takes, with a search field and filters.
//!
//! ```text
//!   tree       the left side, rendered with the page
//!   └ filter   search field and filters                   stays when the list is refreshed
//!   └ threads  the list, in pages                         refreshed on events and while typing
//!      └ graph    the takes of a thread
//!      └ badges   their file changes
//! ```

mod badges;
mod filter;
mod graph;
mod thread;

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_timeline::{DeletedFilter, ThreadFilter, TreeThread};

pub(crate) use self::badges::BadgeCache;
use self::thread::TreeView;
use crate::draw::address;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// Threads per page.
const PAGE: usize = 60;
/// Maximum threads in the list.
const MAX_THREADS: usize = 1000;

pub(crate) fn draw(studio: &Studio, query: &PageQuery) -> Result<Markup, PageError> {
    let list = threads(studio, query)?;
    let any = studio.timeline.threads_page(
        &ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() },
        None,
        1,
    )?;
    Ok(html! {
        div id="tree" {
            div class="brand" {
                a href="/studio" { img src="/studio/icon.svg" alt="" width="20" height="20"; "Retake" }
                button type="button" data-act="ask" data-about="new-thread" data-method="POST" data-ask="/v1/threads" data-body=r#"{"current":true}"# data-then="/studio/threads/{thread}" title="New thread (N)" { "New" }
            }
            // Hidden if there are no threads.
            div hidden[any.items.is_empty()] { (filter::draw(query)) }
            (list)
            footer { a href="/docs" { "API" } " · " a href="/studio/glossary" { "Glossary" } }
        }
    })
}

/// The list, or the next page of it.
pub(crate) fn threads(studio: &Studio, query: &PageQuery) -> Result<Markup, PageError> {
    let running: Vec<_> = studio.timeline.store().running_turns(&studio.runtime_database)?;
    let running: Vec<_> = running.into_iter().filter(|(_, alive)| *alive).map(|(turn, _)| turn).collect();
    let filter = filter::of(query, running.iter().map(|turn| turn.thread));
    let after = query.after.as_deref().map(str::parse).transpose();
    let after = after.map_err(|error| PageError::not_found(format!("{error}.")))?;
    let before = query.most.filter(|_| after.is_some()).unwrap_or(0).min(MAX_THREADS);
    let limit = if after.is_some() { PAGE } else { query.most.unwrap_or(PAGE).clamp(PAGE, MAX_THREADS) };
    let page = studio.timeline.tree_page(&filter, after, limit)?;
    let shown = before + page.items.len();

    let reader = studio.timeline.read()?;
    let here: Option<ThreadId> = query.path.as_deref().and_then(|path| path.parse().ok());
    let here = here.filter(|here| page.items.iter().any(|thread| thread.summary.id == *here));
    let known = studio.badges.of(&reader, &page.items, here)?;
    let saved = match here.and_then(|here| known.get(&here)) {
        Some(known) => known.saved(&reader)?.to_vec(),
        None => Vec::new(),
    };
    let running: HashSet<TakeId> = running.into_iter().map(|turn| turn.take).collect();
    let mut view = TreeView::new(query, running, here, known, saved);
    let projects = by_project(view.arrange(&page.items));
    let paths: HashMap<ProjectId, String> =
        reader.queries().projects()?.into_iter().map(|row| (row.id, row.path)).collect();
    Ok(html! {
        div id="threads" data-live="tree" {
            @if projects.is_empty() {
                p class="quiet" role="status" { (filter::nothing(query)) }
            }
            @for (project, threads) in &projects {
                section {
                    h2 title=(paths.get(project).map_or("", String::as_str)) {
                        (name_of(paths.get(project))) @if before > 0 { ", older" }
                    }
                    ul { @for thread in threads { (view.draw(thread, 0)) } }
                }
            }
            @match page.next {
                Some(next) if shown < MAX_THREADS => {
                    button type="button" data-act="more" data-src=(further(query, &next.to_string(), shown)) {
                        "Older threads" (drawn_so_far(shown))
                    }
                }
                next => {
                    @if shown > PAGE { (drawn_so_far(shown)) }
                    @if next.is_some() { p class="quiet" { "Search by name to find older threads." } }
                }
            }
        }
    })
}

/// The number of rendered threads, sent with the filter so that a refresh renders as many.
fn drawn_so_far(shown: usize) -> Markup {
    html! { input type="hidden" name="most" form="filters" value=(shown); }
}

/// The address of the next page.
fn further(query: &PageQuery, after: &str, shown: usize) -> String {
    let shown = shown.to_string();
    let mut fields = vec![("after", after), ("most", &shown)];
    for (name, value) in [("path", &query.path), ("q", &query.q), ("only", &query.only)] {
        fields.extend(value.as_deref().map(|value| (name, value)));
    }
    address("/studio/tree", &fields)
}

/// Groups threads by project, in order of first appearance.
fn by_project(threads: Vec<&TreeThread>) -> Vec<(ProjectId, Vec<&TreeThread>)> {
    let mut projects: Vec<(ProjectId, Vec<&TreeThread>)> = Vec::new();
    for thread in threads {
        let project = thread.summary.project;
        match projects.iter_mut().find(|(known, _)| *known == project) {
            Some((_, threads)) => threads.push(thread),
            None => projects.push((project, vec![thread])),
        }
    }
    projects
}

fn name_of(path: Option<&String>) -> String {
    let name = path.and_then(|path| path.rsplit('/').find(|part| !part.is_empty()));
    name.map_or_else(|| "Unknown project".to_owned(), str::to_owned)
}
