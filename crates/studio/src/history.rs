//! The history panel: all operations, their changes, and jumps to them.
//!
//! ```text
//!   ●   make it faster            12     one row per turn, with its steps collapsed,
//!   │   you · 2 files +3 −1              and one per other operation
//!   ├─○ make it faster            7
//!   │   you · undone                     undone operations stay, next to the current line
//! ```

mod lanes;
mod rows;

use maud::{Markup, html};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_render::describe;
use retake_render::number::counted;
use retake_timeline::ThreadRow;
use retake_timeline::{Detail, DiffOptions as Asking, HistoryItem, ReadError, Reader};

use self::lanes::{Lanes, Node, RowGraph};
use self::rows::{HistoryStep, Row, rows};
use crate::draw::moment;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};
use crate::{diff, question};

/// Operations per read.
const BATCH: usize = 60;
/// Rows per page.
const PAGE_ROWS: usize = 12;
/// Maximum operations when an extended list is refreshed.
const MAX_REDRAWN: u64 = 1_000;
/// Maximum files per row for which lines are counted.
const MAX_COUNTED_FILES: u64 = 50;

/// Operations, newest first. Undone ones stay visible and reachable.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let row = reader.thread(thread)?;
    let newest = row.summary.version;
    let known = query.until.map_or(0, |until| (newest + 1).saturating_sub(until).min(MAX_REDRAWN));
    let looked_at = BATCH.max(known as usize);
    let steps = steps(&reader, &row, query, looked_at)?;
    let mut rows = rows(&steps);
    // The last row may be incomplete: leave it for the next page.
    let last = rows.last().map(|row| row.oldest().item.version);
    if steps.len() == looked_at && last != query.until && rows.len() > 1 {
        rows.pop();
    }
    let drawn_before =
        rows.iter().take_while(|row| query.until.is_some_and(|until| row.newest().item.version >= until));
    let shown = drawn_before.count().max(PAGE_ROWS);
    rows.truncate(shown);
    let last = rows.last().map(|last| last.oldest().item.version);
    let next = last.filter(|last| *last > 1);
    let mut lanes = Lanes::read(query.lanes.as_deref().unwrap_or_default());
    let strips: Vec<RowGraph> = rows.iter().map(|row| strip(&mut lanes, row)).collect();
    let width = strips.iter().map(RowGraph::width).max().unwrap_or(0);
    let position = reader.history(thread).in_take(query.take).undo_status()?.position;
    let redo = reader.history(thread).in_take(query.take).redo_target()?;
    let route = jump_route(&reader, thread, query.take)?;
    let of_take = query.take.map(|take| format!("&take={take}")).unwrap_or_default();
    let mut drawn = Vec::with_capacity(rows.len());
    for (each, strip) in rows.iter().zip(&strips) {
        let text = describe_row(&reader, &row, each)?;
        let redo = redo.filter(|to| each.0.iter().any(|step| step.item.version == *to));
        let picture = strip.draw(class_of(&each.newest().item), position, width);
        drawn.push(draw_row(&reader, &row, each, &text, (redo.is_some(), &picture, &route))?);
    }
    Ok(html! {
        div id="history" data-live="history" data-until=[query.drawn_until(last)] {
            ol class="history" { @for row in &drawn { (row) } }
            @if let Some(before) = next {
                button type="button" data-act="more"
                    data-src=(format!("/studio/threads/{thread}/history?before={before}&lanes={}{of_take}", lanes.write())) { "Older operations" }
            }
        }
    })
}

/// Operations before a version, each with its parent.
fn steps(
    reader: &Reader<'_>,
    row: &ThreadRow,
    query: &PageQuery,
    count: usize,
) -> Result<Vec<HistoryStep>, PageError> {
    let queries = reader.queries();
    let items = reader.history(row.summary.id).in_take(query.take).list(query.before, count)?;
    let mut steps = Vec::with_capacity(items.len());
    for item in items {
        let Some(stored) = queries.operation(row.number, item.version)? else { continue };
        let files = stored.operation.files.filter(|files| files.before != files.after);
        steps.push(HistoryStep { item, parent: stored.operation.place.parent, files });
    }
    Ok(steps)
}

fn strip(lanes: &mut Lanes, row: &Row<'_>) -> RowGraph {
    let newest = &row.newest().item;
    if newest.kind.is_not_undoable() {
        return lanes.next(None);
    }
    let versions: Vec<Version> = row.0.iter().map(|step| step.item.version).collect();
    let on_line = !newest.undone || newest.redoable;
    lanes.next(Some(&Node { versions: &versions, parent: row.oldest().parent, on_line }))
}

/// The text of a row.
struct RowText {
    words: String,
    preview: Option<String>,
}

fn describe_row(reader: &Reader<'_>, thread: &ThreadRow, row: &Row<'_>) -> Result<RowText, PageError> {
    let newest = &row.newest().item;
    if row.is_turn()
        && let Some(question) = question::of(reader, thread, newest.version)?
    {
        return Ok(RowText { words: question.text, preview: None });
    }
    let text = describe::describe(reader, &newest.kind, newest.state)?;
    let words = match row.0.len() {
        times if times > 1 && newest.kind.is_not_undoable() => format!("{}, {times} times", text.summary),
        _ => text.summary,
    };
    Ok(RowText { words, preview: text.preview })
}

fn draw_row(
    reader: &Reader<'_>,
    thread: &ThreadRow,
    row: &Row<'_>,
    text: &RowText,
    (redo_leads_here, picture, route): (bool, &Markup, &str),
) -> Result<Markup, PageError> {
    let newest = &row.newest().item;
    let badge = badge(reader, row)?;
    let mut steps = Vec::new();
    if row.0.len() > 1 {
        for step in row.0 {
            let text = describe::describe(reader, &step.item.kind, step.item.state)?;
            steps.push(draw_step(&step.item, &text, route));
        }
    }
    let first = row.oldest().item.version;
    let between = format!(
        "/studio/threads/{}/compare-versions?before={}&at={}",
        thread.summary.id,
        first - 1,
        newest.version
    );
    let saved = matches!(newest.kind, OperationKind::Saved { .. });
    let changed = html! {
        @if first > 1 && !saved {
            details class="changed" data-path=(format!("changed-{first}")) data-src=(between) { summary { "Changes" } }
        }
    };
    let id = steps.is_empty().then(|| format!("v-{}", newest.version));
    Ok(html! {
        li id=[id] class=(row_class(row)) aria-current=[newest.current.then_some("step")] {
            (picture)
            div class="what" {
                (jump(newest, route, &html! {
                    span class="number" { (newest.version) }
                    @match &newest.kind {
                        OperationKind::Saved { name } => span class="words" { "saved as " span class="label" { (name) } },
                        _ => span class="words" { (text.words) @if let Some(preview) = &text.preview { " " span class="preview" { (preview) } } },
                    }
                }))
                div class="foot" {
                    span class="facts" {
                        span { (row.who()) } (moment(newest.time))
                        (badge)
                        @if let Some(trouble) = row.trouble() { span class="trouble" { (trouble) } }
                        @if redo_leads_here { span class="next" { "next redo" } }
                        @else if newest.undone { span { "undone" } }
                    }
                    @if steps.is_empty() {
                        (changed)
                    } @else {
                        details class="of-turn" data-path=(format!("steps-{first}")) {
                            summary { (counted(steps.len() as u64, "step", "steps")) }
                            (changed)
                            ol { @for step in &steps { (step) } }
                        }
                    }
                }
            }
        }
    })
}

fn draw_step(item: &HistoryItem, text: &describe::Description, route: &str) -> Markup {
    html! {
        li id=(format!("v-{}", item.version)) class=(class_of(item)) {
            (jump(item, route, &html! {
                span class="number" { (item.version) }
                span class="words" { (text.summary) @if let Some(preview) = &text.preview { " " span class="preview" { (preview) } } }
            }))
        }
    }
}

/// The route that moves a take to a version. Past versions show deleted takes: a jump from there moves the active one.
pub(crate) fn jump_route(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: Option<TakeId>,
) -> Result<String, PageError> {
    let Some(take) = take else { return Ok("jump?".to_owned()) };
    let is_there = reader.state(thread)?.take(&reader.queries(), take).map_err(ReadError::from)?.is_some();
    Ok(if is_there { format!("jump?take={take}") } else { "jump?".to_owned() })
}

/// A button that jumps to a version.
fn jump(item: &HistoryItem, route: &str, body: &Markup) -> Markup {
    html! {
        button type="button" data-act="jump" data-ask=(route) data-version=(item.version) disabled[item.current]
            title=(if item.current { "Current version" } else { "Jump to this version" }) { (body) }
    }
}

/// The file changes of a row.
fn badge(reader: &Reader<'_>, row: &Row<'_>) -> Result<Markup, PageError> {
    let Some((first, last)) = row.files() else { return Ok(html! {}) };
    let ask = |detail| reader.snapshot(first.before).changes(last.after, &Asking::all(detail));
    let paths = ask(Detail::Paths)?.stat;
    Ok(match paths.files {
        0 => html! {},
        1..=MAX_COUNTED_FILES => diff::stat(&ask(Detail::Counts)?.stat),
        more => html! { span class="stat" { (counted(more, "file", "files")) } },
    })
}

fn row_class(row: &Row<'_>) -> String {
    let kind = match &row.newest().item.kind {
        OperationKind::Saved { .. } => "quiet-row saved",
        kind if rows::draft_take(kind).is_some() => "quiet-row typed",
        kind if kind.is_not_undoable() => "quiet-row moves",
        _ if row.is_turn() => "turn",
        _ => "single",
    };
    format!("{kind} {}", class_of(&row.newest().item))
}

fn class_of(item: &HistoryItem) -> &'static str {
    match (item.current, item.undone, item.redoable) {
        (true, ..) => "current",
        (_, _, true) => "redoable",
        (_, true, _) => "undone",
        _ => "past",
    }
}
