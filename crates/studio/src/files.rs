//! The files panel: total changes, changes per operation, excluded paths.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::operation::{OperationKind, TurnStep, Version};
use retake_model::path::{RootPath, TreePath};
use retake_model::time::Timestamp;
use retake_model::tree::{ExclusionReason, PathChangeKind};
use retake_render::number::{count, counted};
use retake_timeline::{
    Changes, DEFAULT_CONTEXT, Detail, DiffOptions, EntryView, ExcludedFile, FileDiff, FilePiece, FilesAt,
    Reader, Stat, ThreadFiles, WorkingCopy,
};
use retake_timeline::{ThreadRow, read_blob};

use crate::draw::{moment, with_visible_controls};
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};
use crate::{diff, entry, question};

/// Operations per page.
const PAGE: usize = 10;
/// Maximum operations when an extended list is refreshed.
const MAX_REDRAWN: usize = 200;
/// Operations per read when looking for the changes of calls.
const BATCH: usize = 200;
/// Maximum operations to scan for a call.
const MAX_SCANNED: usize = 2_000;
/// Maximum operations in the total.
const MAX_SUMMED: usize = 500;
/// Maximum files in the total.
const MAX_LISTED: usize = 50;
/// Maximum excluded paths.
const MAX_EXCLUDED: usize = 50;
/// Maximum bytes of a file.
const MAX_FILE_BYTES: u64 = 64 * 1024;
const TOO_LARGE: &str = "Too large to show here.";

/// Changes of files, newest first, between the total changes and the excluded paths.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let before = query.before.map(|before| i64::try_from(before).unwrap_or(i64::MAX));
    let found = reader.files(thread).of_lineage(before, query.until.map_or(PAGE, |_| MAX_REDRAWN) + 1)?;
    let sequence = |of: &ThreadFiles| of.sequence.unsigned_abs();
    let known = query.until.map_or(0, |until| found.iter().take_while(|of| sequence(of) >= until).count());
    let shown = known.clamp(PAGE, MAX_REDRAWN);
    let last = found.iter().take(shown).next_back().map(sequence);
    let more = last.filter(|_| found.len() > shown);
    let mut drawn = Vec::new();
    let changed = |of: &&ThreadFiles| of.at.files.before != of.at.files.after;
    for ThreadFiles { thread, at, .. } in found.iter().take(shown).filter(changed) {
        let question = DiffOptions::all(Detail::Hunks(DEFAULT_CONTEXT));
        let changes = reader.snapshot(at.files.before).changes(at.files.after, &question)?;
        drawn.push((thread, at, question::of(&reader, &reader.thread(*thread)?, at.version)?, changes));
    }
    let (all, captured) = match query.before {
        None => (total_changes(&reader, thread)?, excluded_paths(&reader, thread)?),
        Some(_) => (html! {}, html! {}),
    };
    Ok(html! {
        div id="files" data-live="files" data-until=[query.drawn_until(last)] {
            // Filled by the page, because the folder is read only by the API.
            @if query.before.is_none() { p id="folder-changes" class="facts" role="status" {} }
            @if drawn.is_empty() && more.is_none() && query.before.is_none() {
                p class="quiet" {
                    "No files have changed yet. Changes by turns, tools and yourself in the project's folder appear here line by \
                     line. Undo reverts those of turns."
                }
            }
            (all)
            @for (thread, at, question, changes) in &drawn {
                section class="change" {
                    h2 {
                        a href=(format!("/studio/threads/{thread}?at={}", at.version)) { (retake_render::operation(&at.kind)) }
                        " " span class="quiet" { (moment(at.time)) }
                    }
                    @if let Some(question) = question { p class="asked" title="Prompt" { (question.text) } }
                    (diff::draw(**thread, changes))
                }
            }
            @if let Some(before) = more {
                button type="button" data-act="more" data-src=(format!("/studio/threads/{thread}/files?before={before}")) { "Older changes" }
            }
            (captured)
        }
    })
}

/// The differences between the first recorded files and the current ones, limited in very long threads.
fn total_changes(reader: &Reader<'_>, thread: ThreadId) -> Result<Markup, PageError> {
    let known = reader.files(thread).list(None, MAX_SUMMED)?;
    let (Some(first), Some(now)) = (known.last(), latest(reader, thread, None)?) else {
        return Ok(html! {});
    };
    let ask = |detail| reader.snapshot(first.files.before).changes(now, &DiffOptions::all(detail));
    let mut changes = ask(Detail::Paths)?;
    if changes.files.is_empty() {
        return Ok(html! {});
    }
    // Count lines only if there are few files.
    if changes.files.len() <= MAX_LISTED {
        changes = ask(Detail::Counts)?;
    }
    let since = (known.len() == MAX_SUMMED).then_some(first.version);
    Ok(list(thread, since, &changes))
}

fn list(thread: ThreadId, since: Option<Version>, changes: &Changes) -> Markup {
    let left = changes.files.len().saturating_sub(MAX_LISTED);
    html! {
        section class="in-all" {
            h2 {
                @match since { None => "Total changes", Some(version) => { "Changes since version " (version) } }
                @if left == 0 { " " (diff::stat(&changes.stat)) }
            }
            ul {
                @for file in changes.files.iter().take(MAX_LISTED) { li { (blame_link(thread, file)) } }
            }
            @if left > 0 { p class="quiet" { "And " (count(left as u64)) " more." } }
        }
    }
}

/// A file with a link to its blame.
fn blame_link(thread: ThreadId, file: &FileDiff) -> Markup {
    html! {
        @if file.change == PathChangeKind::Removed {
            span { (diff::headline(file)) }
        } @else {
            @let to = diff::blame_of(thread, file);
            a href=(to) data-act="show" data-src=(to) title="Which turn wrote each line" { (diff::headline(file)) }
        }
    }
}

/// The paths that the last snapshot excludes. Ignored paths are collapsed, because they are excluded on purpose.
fn excluded_paths(reader: &Reader<'_>, thread: ThreadId) -> Result<Markup, PageError> {
    let Some(now) = latest(reader, thread, None)? else { return Ok(html! {}) };
    let Some(captured) = reader.snapshot(now).summary(MAX_EXCLUDED)? else { return Ok(html! {}) };
    let on_purpose =
        |left: &&ExcludedFile| matches!(left.reason, ExclusionReason::Ignored | ExclusionReason::Repository);
    let (ignored, others): (Vec<&ExcludedFile>, Vec<&ExcludedFile>) =
        captured.excluded.iter().partition(on_purpose);
    let unnamed = captured.excluded_count.saturating_sub(captured.excluded.len() as u64);
    let paths = |paths: &[&ExcludedFile]| {
        html! {
            ul {
                @for left in paths {
                    li {
                        code { @if !left.root.is_empty() { (with_visible_controls(&left.root)) ":" } (with_visible_controls(&left.path)) }
                        " " span class="quiet" { (left.reason.describe()) }
                    }
                }
            }
        }
    };
    Ok(html! {
        @if !others.is_empty() {
            section class="not-held" {
                h2 { (counted(others.len() as u64, "path", "paths")) " not captured" }
                p { "Undo cannot restore these: they are not in snapshots." }
                (paths(&others))
            }
        }
        @if !ignored.is_empty() {
            details class="ignored" data-path="ignored" {
                summary { (counted(ignored.len() as u64 + unnamed, "path", "paths")) " ignored" }
                (paths(&ignored))
                @if unnamed > 0 { p class="quiet" { "And " (count(unnamed)) " more." } }
            }
        }
    })
}

/// The result entry of a tool call, if the operation recorded one. Calls are identified by this entry, because models
/// choose call ids and may reuse that of an undone call.
fn answer_of(kind: &OperationKind) -> Option<EntryId> {
    match kind {
        OperationKind::TurnAdvanced { step: TurnStep::ToolEnded { .. }, added, .. } => {
            added.map(|added| added.entry)
        }
        _ => None,
    }
}

/// The file changes of a tool call, identified by its result entry.
pub(crate) fn changes_of_call(
    studio: &Studio,
    thread: ThreadId,
    query: &PageQuery,
) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let mut found = None;
    // The changes of a promoted take are in the log of its former thread.
    for (last, row) in reader.history(thread).lineage()? {
        let files = reader.files(row.summary.id).list(last.checked_add(1), MAX_SCANNED)?;
        found = files.into_iter().find(|at| query.entry.is_some() && answer_of(&at.kind) == query.entry);
        if found.is_some() {
            break;
        }
    }
    let found = found
        .ok_or_else(|| PageError::not_found("The file changes of this call are no longer available."))?;
    let question = DiffOptions::all(Detail::Hunks(DEFAULT_CONTEXT));
    let changes = reader.snapshot(found.files.before).changes(found.files.after, &question)?;
    Ok(html! { div class="of-call" { (diff::draw(thread, &changes)) } })
}

/// The last operations that changed files, back to one minute before `oldest`, because clocks differ.
fn files_since(
    reader: &Reader<'_>,
    (last, row): (Version, ThreadRow),
    oldest: Option<Timestamp>,
) -> Result<Vec<FilesAt>, PageError> {
    let enough = oldest.map_or(i64::MAX, |oldest| oldest.millis() - 60_000);
    let mut found: Vec<FilesAt> = Vec::new();
    loop {
        let before = found.last().map_or(last.checked_add(1), |last| Some(last.version));
        let page = reader.files(row.summary.id).list(before, BATCH)?;
        let over = page.len() < BATCH || page.last().is_some_and(|last| last.time.millis() < enough);
        found.extend(page);
        if over || found.len() >= MAX_SCANNED {
            return Ok(found);
        }
    }
}

/// The file changes of the tool calls whose results are among these entries, as far as they are recent.
pub(crate) fn changes_by_calls(
    reader: &Reader<'_>,
    thread: ThreadId,
    views: &[EntryView],
) -> Result<HashMap<EntryId, Stat>, PageError> {
    let answers = || views.iter().filter(|view| entry::answers(&view.entry));
    let wanted: HashSet<EntryId> = answers().map(|view| view.id).collect();
    let mut moved = HashMap::new();
    if wanted.is_empty() {
        return Ok(moved);
    }
    let question = DiffOptions::all(Detail::Counts);
    // Operations older than all of these results cannot contain their calls.
    let oldest = answers().map(|view| view.entry.created).min();
    for log in reader.history(thread).lineage()? {
        for at in files_since(reader, log, oldest)? {
            let Some(answer) = answer_of(&at.kind).filter(|answer| wanted.contains(answer)) else { continue };
            if at.files.before != at.files.after {
                moved.insert(
                    answer,
                    reader.snapshot(at.files.before).changes(at.files.after, &question)?.stat,
                );
            }
        }
        if moved.len() == wanted.len() {
            break;
        }
    }
    Ok(moved)
}

/// Both versions of a file in conflict: the current one and the one to be written. A preview stores nothing, so that the
/// current one may have to be read from the folder.
pub(crate) fn versions(studio: &Studio, thread: ThreadId, query: &PageQuery) -> Result<Markup, PageError> {
    let reader = studio.timeline.read()?;
    let path = path_of(query)?;
    let parse = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<ContentId>().ok());
    let ours = match parse(&query.ours) {
        Some(snapshot) if reader.files(thread).has_snapshot(snapshot)? => {
            reader.snapshot(snapshot).read(&path, 0, MAX_FILE_BYTES)?
        }
        _ => current(studio, thread, &path)?,
    };
    let most = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    let is_large = |piece: &FilePiece| piece.bytes.is_empty() && piece.size > 0;
    let ours = ours.map(|piece| if is_large(&piece) { TOO_LARGE.to_owned() } else { text(&piece.bytes) });
    let theirs = parse(&query.theirs)
        .map(|blob| read_blob(&reader, blob).map_or_else(|_| TOO_LARGE.to_owned(), |bytes| text(&bytes)));
    Ok(html! {
        div class="versions" {
            @for (name, text) in [("Current", ours), ("Old", theirs)] {
                section {
                    h3 { (name) }
                    @match text { Some(text) => pre class="plain" { (text) }, None => p class="quiet" { "Deleted." } }
                }
            }
        }
    })
}

/// A file in the project's folder.
fn current(studio: &Studio, thread: ThreadId, path: &RootPath) -> Result<Option<FilePiece>, PageError> {
    let Some(options) = &studio.setup.files else { return Ok(None) };
    let home = studio.timeline.read()?.thread(thread)?.home;
    WorkingCopy::of_project(&studio.timeline, home, options)
        .and_then(|working_copy| working_copy.current_file(path, MAX_FILE_BYTES))
        .map_err(|error| PageError::not_found(error.to_string()))
}

pub(crate) fn path_of(query: &PageQuery) -> Result<RootPath, PageError> {
    let text = query.path.as_deref().unwrap_or_default();
    let path: TreePath =
        text.parse().map_err(|error| PageError::not_found(format!("Invalid path {text:?}: {error}.")))?;
    Ok(RootPath { root: query.root.clone().unwrap_or_default(), path })
}

/// The last recorded files of a take; of the active one by default.
pub(crate) fn latest(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: Option<TakeId>,
) -> Result<Option<ContentId>, PageError> {
    let active = reader.state(thread)?.active;
    let take = take.unwrap_or(active);
    // The user's later edits belong to the folder, and so to the active take only.
    let seen = reader.files(thread).list(None, 1)?.into_iter().next();
    let seen = seen.filter(|at| take == active && at.files.take == take);
    match seen {
        Some(at) => Ok(Some(at.files.after)),
        None => Ok(reader.files(thread).of_take(take)?),
    }
}
