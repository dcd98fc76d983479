//! Export and import: a thread as a file, and a file as a thread.

use std::io::{self, Write};

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::{Front, Imported, Importing, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{ThreadPath, take_of};
use crate::download;
use crate::endpoint::{Answer, Call, Endpoint, JSON, NoPath, OfKind, ReplyBody, raw_of_kinds, upload};
use crate::problem::Problem;
use crate::upload::Upload;

const GROUP: &str = "Export and import";

/// A thread, whole: lines of JSON.
const LINES: &str = "application/x-ndjson";
/// A take, to read.
const MARKDOWN: &str = "text/markdown; charset=utf-8";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        raw_of_kinds("/v1/threads/{thread}/export", (LINES, &[MARKDOWN, JSON]), export).about(
            GROUP,
            "Export a thread",
            "`retake` holds all takes, all history and the files, to the byte, and can be imported again; `markdown` and \
             `json` hold one take, to read.",
        ),
        upload("/v1/import", LINES, import).about(
            GROUP,
            "Import a thread",
            "What `export` wrote in the format `retake`. Everything in it is checked before any of it is kept. A thread \
             that is here already is brought forward if the file continues it; if the two went different ways, only \
             `copy` takes it in.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// How it is written.
    #[serde(default)]
    format: Format,
    /// The take, for a text to read; the active one by default.
    take: Option<TakeId>,
    /// Whether the files of the project that the thread holds, and their names, are left out.
    #[serde(default)]
    without_files: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// Everything, to be imported again.
    #[default]
    Retake,
    /// One take as a text to read.
    Markdown,
    /// One take as JSON, for programs.
    Json,
}

/// Texts as a server writes them: in universal time, with plain numbers.
struct Plain;

impl Front for Plain {
    fn time(&self, moment: Timestamp) -> String {
        moment.to_string()
    }

    fn count(&self, number: u64) -> String {
        number.to_string()
    }

    fn json(&self, out: &mut dyn Write, piece: &Piece<'_>) -> io::Result<()> {
        serde_json::to_writer(out, piece).map_err(io::Error::from)
    }
}

fn export(call: &Call<'_, ThreadPath, ExportQuery>) -> OfKind {
    let (thread, query) = (call.path.thread, &call.query);
    if query.format == Format::Retake && query.take.is_some() {
        return Err(Problem::refused("this format holds all takes; `take` is for `markdown` and `json`"));
    }
    if query.format != Format::Retake && query.without_files {
        return Err(Problem::refused("this format holds no files; `without_files` is for `retake`"));
    }
    let looking = call.service.timeline.look()?;
    let row = looking.thread(thread)?;
    let silent = &mut |_, _| ();
    let body = download::written(call.service, |out| {
        match query.format {
            Format::Retake if query.without_files => drop(looking.export_without_files(thread, out, silent)?),
            Format::Retake => drop(looking.export(thread, out, silent)?),
            text => {
                let take = take_of(&looking, &looking.state(thread)?, query.take)?;
                let _entries = match text {
                    Format::Markdown => looking.export_markdown(&row, &take, &Plain, out, silent)?,
                    _ => looking.export_json(&row, &take, &Plain, out, silent)?,
                };
            }
        }
        Ok(())
    })?;
    let kind = match query.format {
        Format::Retake => LINES,
        Format::Markdown => MARKDOWN,
        Format::Json => JSON,
    };
    Ok((kind, ReplyBody::Stream(body)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImportQuery {
    /// The project that it will be listed under; that of the server's folder if none is named.
    project: Option<ProjectId>,
    /// As a new thread with the same history, even if the thread is here already.
    #[serde(default)]
    copy: bool,
    /// Whether it becomes the current thread of the project.
    #[serde(default)]
    current: bool,
    /// Only say what would come in.
    #[serde(default)]
    dry_run: bool,
}

/// What was imported, or would be.
#[derive(Serialize, JsonSchema)]
struct ImportedThread {
    #[serde(flatten)]
    imported: Imported,
    /// Whether it is the current thread of its project now.
    current: bool,
    /// Whether an undo takes it back: deleting the thread does.
    undoable: bool,
    /// Whether nothing was kept, and this is only what would be. A copy gets another id then.
    dry_run: bool,
}

fn import(call: &Call<'_, NoPath, ImportQuery, Upload>) -> Result<Answer<ImportedThread>, Problem> {
    let (service, query) = (call.service, &call.query);
    let timeline = &service.timeline;
    let named = query.project.map(|project| service.known_project(project)).transpose()?;
    let importing = match (query.copy, call.made) {
        (false, _) => Importing::Same,
        (true, None) => Importing::Copy,
        (true, Some(made)) => Importing::CopyAs(ThreadId::from_bytes(*made.bytes())),
    };
    let from = call.body.read()?;
    let answer = |imported, current, dry_run| ImportedThread { imported, current, undoable: false, dry_run };
    if query.dry_run {
        let project = match named {
            Some(project) => project,
            None => timeline.project_if_known(&service.folder)?.id,
        };
        let imported = timeline.foresee_import(from, project, importing)?;
        return Ok(Answer::of(answer(imported, false, true)));
    }
    let imported = if let Some(project) = named {
        timeline.import(from, project, importing, |_, _| ())?
    } else {
        let here = timeline.project_if_known(&service.folder)?;
        timeline.import_into(from, &here, importing, |_, _| ())?
    };
    let (thread, version) = (imported.thread, imported.version);
    let project = timeline.look()?.thread(thread)?.home;
    // It has come in, whatever becomes of this: a thread that was put away, for one, is not worked on.
    let current = query.current && timeline.work_on(thread, call.caller_in(project)).is_ok();
    let location = format!("/v1/threads/{thread}");
    Ok(Answer::at(answer(imported, current, false), version).found_at(location))
}
