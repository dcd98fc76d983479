//! Files: what each operation did to them, and who wrote each line.

use maud::{Markup, html};
use retake_model::id::ThreadId;
use retake_model::path::{RootPath, TreePath};
use retake_timeline::{Detail, Looking, Question, USUAL_CONTEXT};

use crate::diff;
use crate::draw::{exact, moment};
use crate::failed::Failed;
use crate::studio::{Asked, Studio};

/// How many operations are shown at once.
const SHOWN: usize = 10;

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
                        a href=(format!("#v-{}", at.version)) data-act="show-version" data-version=(at.version) {
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

/// Who wrote each line of a file.
pub(crate) fn blame(studio: &Studio, thread: ThreadId, asked: &Asked) -> Result<Markup, Failed> {
    let looking = studio.timeline.look()?;
    let text = asked.path.as_deref().unwrap_or_default();
    let path: TreePath =
        text.parse().map_err(|error| Failed::not_found(format!("{text:?} is no path: {error}.")))?;
    let path = RootPath { root: asked.root.clone().unwrap_or_default(), path };
    let row = looking.thread(thread)?;
    let snapshot = latest(&looking, thread)?;
    let blame = looking.blame(row.home, &path, snapshot, None)?;
    Ok(html! {
        div id="blame" {
            h3 { code { (text) } }
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

fn latest(looking: &Looking<'_>, thread: ThreadId) -> Result<retake_model::content::ContentId, Failed> {
    let active = looking.state(thread)?.active;
    looking
        .files_of_take(thread, active)?
        .ok_or_else(|| Failed::not_found("No files of this take are known yet."))
}
