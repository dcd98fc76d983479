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
use retake_timeline::store::ThreadRow;
use retake_timeline::{Detail, HistoryItem, LookError, Looking, Question as Asking};
use retake_words::number::counted;
use retake_words::story;

use self::lanes::{Lanes, Node, Strip};
use self::rows::{Row, Step, rows};
use crate::draw::moment;
use crate::failed::Failed;
use crate::studio::{Asked, Studio};
use crate::{diff, question};

/// Operations per read.
const LOOKED_AT: usize = 60;
/// Rows per page.
const SHOWN: usize = 12;
/// Maximum operations when an extended list is refreshed.
const MOST: u64 = 1_000;
/// Maximum files per row for which lines are counted.
const COUNTED: u64 = 50;

/// Operations, newest first. Undone ones stay visible and reachable.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let row = looking.thread(thread)?;
    let newest = row.summary.version;
    let known = asked.until.map_or(0, |until| (newest + 1).saturating_sub(until).min(MOST));
    let looked_at = LOOKED_AT.max(known as usize);
    let steps = steps(&looking, &row, asked, looked_at)?;
    let mut rows = rows(&steps);
    // The last row may be incomplete: leave it for the next page.
    let last = rows.last().map(|row| row.oldest().item.version);
    if steps.len() == looked_at && last != asked.until && rows.len() > 1 {
        rows.pop();
    }
    let drawn_before =
        rows.iter().take_while(|row| asked.until.is_some_and(|until| row.newest().item.version >= until));
    let shown = drawn_before.count().max(SHOWN);
    rows.truncate(shown);
    let last = rows.last().map(|last| last.oldest().item.version);
    let next = last.filter(|last| *last > 1);
    let mut lanes = Lanes::read(asked.lanes.as_deref().unwrap_or_default());
    let strips: Vec<Strip> = rows.iter().map(|row| strip(&mut lanes, row)).collect();
    let width = strips.iter().map(Strip::width).max().unwrap_or(0);
    let position = looking.standing_in(thread, asked.take)?.position;
    let redo = looking.redo_target(thread, asked.take)?;
    let route = jump_route(&looking, thread, asked.take)?;
    let of_take = asked.take.map(|take| format!("&take={take}")).unwrap_or_default();
    let mut drawn = Vec::with_capacity(rows.len());
    for (each, strip) in rows.iter().zip(&strips) {
        let told = tell(&looking, &row, each)?;
        let redo = redo.filter(|to| each.0.iter().any(|step| step.item.version == *to));
        let picture = strip.draw(class_of(&each.newest().item), position, width);
        drawn.push(draw_row(&looking, &row, each, &told, (redo.is_some(), &picture, &route))?);
    }
    Ok(html! {
        div id="history" data-live="history" data-until=[asked.drawn_until(last)] {
            ol class="history" { @for row in &drawn { (row) } }
            @if let Some(before) = next {
                button type="button" data-act="more"
                    data-src=(format!("/studio/threads/{thread}/history?before={before}&lanes={}{of_take}", lanes.write())) { "Older operations" }
            }
        }
    })
}

/// Operations before a version, each with its parent.
fn steps(looking: &Looking<'_>, row: &ThreadRow, asked: &Asked, count: usize) -> Result<Vec<Step>, Failed> {
    let queries = looking.queries();
    let items = looking.history_in(row.summary.id, asked.take, asked.before, count)?;
    let mut steps = Vec::with_capacity(items.len());
    for item in items {
        let Some(stored) = queries.operation(row.number, item.version)? else { continue };
        let files = stored.operation.files.filter(|files| files.before != files.after);
        steps.push(Step { item, parent: stored.operation.place.parent, files });
    }
    Ok(steps)
}

fn strip(lanes: &mut Lanes, row: &Row<'_>) -> Strip {
    let newest = &row.newest().item;
    if newest.kind.moves_only() {
        return lanes.next(None);
    }
    let versions: Vec<Version> = row.0.iter().map(|step| step.item.version).collect();
    let on_line = !newest.undone || newest.redoable;
    lanes.next(Some(&Node { versions: &versions, parent: row.oldest().parent, on_line }))
}

/// The text of a row.
struct Told {
    words: String,
    preview: Option<String>,
}

fn tell(looking: &Looking<'_>, thread: &ThreadRow, row: &Row<'_>) -> Result<Told, Failed> {
    let newest = &row.newest().item;
    if row.is_turn()
        && let Some(question) = question::of(looking, thread, newest.version)?
    {
        return Ok(Told { words: question.text, preview: None });
    }
    let told = story::tell(looking, &newest.kind, newest.state)?;
    let words = match row.0.len() {
        times if times > 1 && newest.kind.moves_only() => format!("{}, {times} times", told.words),
        _ => told.words,
    };
    Ok(Told { words, preview: told.preview })
}

fn draw_row(
    looking: &Looking<'_>,
    thread: &ThreadRow,
    row: &Row<'_>,
    told: &Told,
    (redo_leads_here, picture, route): (bool, &Markup, &str),
) -> Result<Markup, Failed> {
    let newest = &row.newest().item;
    let badge = badge(looking, row)?;
    let mut steps = Vec::new();
    if row.0.len() > 1 {
        for step in row.0 {
            let told = story::tell(looking, &step.item.kind, step.item.state)?;
            steps.push(draw_step(&step.item, &told, route));
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
                        _ => span class="words" { (told.words) @if let Some(preview) = &told.preview { " " span class="preview" { (preview) } } },
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

fn draw_step(item: &HistoryItem, told: &story::Told, route: &str) -> Markup {
    html! {
        li id=(format!("v-{}", item.version)) class=(class_of(item)) {
            (jump(item, route, &html! {
                span class="number" { (item.version) }
                span class="words" { (told.words) @if let Some(preview) = &told.preview { " " span class="preview" { (preview) } } }
            }))
        }
    }
}

/// The route that moves a take to a version. Past versions show deleted takes: a jump from there moves the active one.
pub(crate) fn jump_route(
    looking: &Looking<'_>,
    thread: ThreadId,
    take: Option<TakeId>,
) -> Result<String, Failed> {
    let Some(take) = take else { return Ok("jump?".to_owned()) };
    let is_there = looking.state(thread)?.take(&looking.queries(), take).map_err(LookError::from)?.is_some();
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
fn badge(looking: &Looking<'_>, row: &Row<'_>) -> Result<Markup, Failed> {
    let Some((first, last)) = row.files() else { return Ok(html! {}) };
    let ask = |detail| looking.changes(first.before, last.after, &Asking { paths: Vec::new(), detail });
    let paths = ask(Detail::Paths)?.stat;
    Ok(match paths.files {
        0 => html! {},
        1..=COUNTED => diff::stat(&ask(Detail::Counts)?.stat),
        more => html! { span class="stat" { (counted(more, "file", "files")) } },
    })
}

fn row_class(row: &Row<'_>) -> String {
    let kind = match &row.newest().item.kind {
        OperationKind::Saved { .. } => "quiet-row saved",
        kind if rows::drafts(kind).is_some() => "quiet-row typed",
        kind if kind.moves_only() => "quiet-row moves",
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
