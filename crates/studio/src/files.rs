//! Files: what each operation did to them, and who wrote each line.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::operation::{OperationKind, TurnStep};
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{Detail, EntryView, Looking, Question, Stat, USUAL_CONTEXT};

use crate::draw::{exact, moment};
use crate::failed::Failed;
use crate::studio::{Asked, Studio};
use crate::{diff, entry};

/// How many operations are shown at once.
const SHOWN: usize = 10;
/// What so many of the last operations on files did is shown with their calls.
const LOOKED_BACK: usize = 200;
/// So many operations are looked through for the one that a call made.
const LOOKED_THROUGH: usize = 2_000;
/// So many bytes of a version are shown.
const SHOWN_OF_FILE: u64 = 64 * 1024;

/// What was done to files, newest first.
pub(crate) fn draw(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let found = looking.files(thread, asked.before, SHOWN + 1)?;
    let more = (found.len() > SHOWN).then(|| found[SHOWN - 1].version);
    let mut drawn = Vec::new();
    for at in found.iter().take(SHOWN) {
        let question = Question { paths: Vec::new(), detail: Detail::Hunks(USUAL_CONTEXT) };
        drawn.push((at, looking.changes(at.files.before, at.files.after, &question)?));
    }
    Ok(html! {
        div id="files" data-live="files" {
            @if drawn.is_empty() {
                p class="quiet" {
                    "No files have changed here yet. What a turn, a tool or your own hand does to the project's folder is \
                     shown here, line by line, and goes along with every undo."
                }
            }
            @for (at, changes) in &drawn {
                section class="change" {
                    h3 {
                        a href=(format!("/studio/threads/{thread}?at={}", at.version)) {
                            (retake_words::operation(&at.kind))
                        }
                        " " (moment(at.time))
                    }
                    (diff::draw(changes))
                }
            }
            @if let Some(before) = more {
                button type="button" data-act="more" data-src=(format!("/studio/threads/{thread}/files?before={before}")) { "Older changes" }
            }
        }
    })
}

/// What the call of a tool did to files.
pub(crate) fn of_call(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let wanted = asked.q.as_deref().unwrap_or_default();
    let found = looking.files(thread, None, LOOKED_THROUGH)?.into_iter().find(|at| {
        matches!(&at.kind, OperationKind::TurnAdvanced { step: TurnStep::ToolEnded { call, .. }, .. } if call == wanted)
    });
    let found =
        found.ok_or_else(|| Failed::not_found("What this call did to files is not known any more."))?;
    let question = Question { paths: Vec::new(), detail: Detail::Hunks(USUAL_CONTEXT) };
    let changes = looking.changes(found.files.before, found.files.after, &question)?;
    Ok(html! { div class="of-call" { (diff::draw(&changes)) } })
}

/// What the calls that these entries answer did to files, as far as they are among the last operations.
pub(crate) fn moved_by_calls(
    looking: &Looking<'_>,
    thread: ThreadId,
    views: &[EntryView],
) -> Result<HashMap<String, Stat>, Failed> {
    let calls: HashSet<&str> = views.iter().filter_map(|view| entry::answered(&view.entry)).collect();
    let mut moved = HashMap::new();
    if calls.is_empty() {
        return Ok(moved);
    }
    let question = Question { paths: Vec::new(), detail: Detail::Counts };
    for at in looking.files(thread, None, LOOKED_BACK)? {
        let OperationKind::TurnAdvanced { step: TurnStep::ToolEnded { call, .. }, .. } = at.kind else {
            continue;
        };
        if calls.contains(call.as_str()) && at.files.before != at.files.after {
            moved.insert(call, looking.changes(at.files.before, at.files.after, &question)?.stat);
        }
    }
    Ok(moved)
}

/// Both versions of a file that two have changed: what is in the folder, and what would be written.
pub(crate) fn versions(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let path = path_of(asked)?;
    let parse = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<ContentId>().ok());
    let ours = match parse(&asked.ours) {
        Some(snapshot) if looking.has_snapshot(thread, snapshot)? => {
            looking.file_in(snapshot, &path, 0, SHOWN_OF_FILE)?.map(|piece| piece.bytes)
        }
        _ => None,
    };
    let theirs = match parse(&asked.theirs) {
        Some(blob) => looking.blob(blob).ok(),
        None => None,
    };
    let draw = |bytes: Option<Vec<u8>>| {
        let most = usize::try_from(SHOWN_OF_FILE).unwrap_or(usize::MAX);
        bytes.map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned())
    };
    Ok(html! {
        div class="versions" {
            @for (name, text) in [("In the folder", draw(ours)), ("The other", draw(theirs))] {
                section {
                    h3 { (name) }
                    @match text { Some(text) => pre class="plain" { (text) }, None => p class="quiet" { "Nothing: it is gone." } }
                }
            }
        }
    })
}

/// Who wrote each line of a file.
pub(crate) fn blame(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let path = path_of(asked)?;
    let row = looking.thread(thread)?;
    let snapshot = latest(&looking, thread)?;
    let blame = looking.blame(row.home, &path, snapshot, None)?;
    Ok(html! {
        div id="blame" {
            h3 { button type="button" data-act="tab" data-tab="files" { "←" } " " code { (path.path.to_string()) } }
            table class="blame" {
                @for line in &blame.lines {
                    @let origin = line.origin.and_then(|index| blame.origins.get(index));
                    tr {
                        td class="who" {
                            @if let Some(origin) = origin {
                                a href=(format!("/studio/threads/{}?at={}", origin.by.thread, origin.by.version))
                                    title=(format!("{}: {}", origin.by.title, retake_words::operation(&origin.by.kind))) {
                                    (retake_words::actor(&origin.by.actor)) " · " (origin.by.version)
                                }
                            }
                        }
                        td class="number" { (line.number) }
                        td { code { (exact(&line.text)) } }
                    }
                }
            }
        }
    })
}

fn path_of(asked: &Asked) -> Result<RootPath, Failed> {
    let text = asked.path.as_deref().unwrap_or_default();
    let path: TreePath =
        text.parse().map_err(|error| Failed::not_found(format!("{text:?} is no path: {error}.")))?;
    Ok(RootPath { root: asked.root.clone().unwrap_or_default(), path })
}

fn latest(looking: &Looking<'_>, thread: ThreadId) -> Result<ContentId, Failed> {
    let active = looking.state(thread)?.active;
    looking
        .files_of_take(thread, active)?
        .ok_or_else(|| Failed::not_found("No files of this take are known yet."))
}
