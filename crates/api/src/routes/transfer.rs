//! Export and import of threads.

use retake_surface::ExportFormat;
use std::io::{self, Write};

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::{ExportFormatter, ExportItem, Exporter, ImportMode, ImportSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{ThreadPath, take_of};
use crate::download;
use crate::endpoint::{Answer, Call, Endpoint, JSON, NoPath, ReplyBody, TypedReply, raw_of_kinds, upload};
use crate::problem::Problem;
use crate::upload::Upload;

const GROUP: &str = "Export and import";

/// A complete thread, as lines of JSON.
const NDJSON: &str = "application/x-ndjson";
/// A take for reading.
const MARKDOWN: &str = "text/markdown; charset=utf-8";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        raw_of_kinds("/v1/threads/{thread}/export", (NDJSON, &[MARKDOWN, JSON]), export).about(
            GROUP,
            "Export a thread",
            "The format `retake` contains all takes, history and files, and can be imported; `markdown` and `json` contain \
             one take.",
        ),
        upload("/v1/import", NDJSON, import).about(
            GROUP,
            "Import a thread",
            "From an export in the format `retake`, which is verified completely before anything is stored. An existing \
             thread is updated if the file continues it; if the two diverged, import it with `copy`.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// Format of the export.
    #[serde(default)]
    format: ExportFormat,
    /// The take, for `markdown` and `json`; the active one by default.
    take: Option<TakeId>,
    /// Leave out the captured files and their names.
    #[serde(default)]
    without_files: bool,
}

/// Formats times in UTC and numbers without separators.
struct ServerFormat;

impl ExportFormatter for ServerFormat {
    fn time(&self, moment: Timestamp) -> String {
        moment.to_string()
    }

    fn count(&self, number: u64) -> String {
        number.to_string()
    }

    fn json(&self, out: &mut dyn Write, piece: &ExportItem<'_>) -> io::Result<()> {
        serde_json::to_writer(out, piece).map_err(io::Error::from)
    }
}

fn export(call: &Call<'_, ThreadPath, ExportQuery>) -> TypedReply {
    let (thread, query) = (call.path.thread, &call.query);
    if query.format == ExportFormat::Retake && query.take.is_some() {
        return Err(Problem::refused(
            "the format `retake` contains all takes; `take` needs `markdown` or `json`",
        ));
    }
    if query.format != ExportFormat::Retake && query.without_files {
        return Err(Problem::refused("only the format `retake` contains files; leave `without_files` out"));
    }
    let reader = call.service.timeline.read()?;
    let row = reader.thread(thread)?;
    let silent = &mut |_, _| ();
    let body = download::stream_file(call.service, |out| {
        let exporter = Exporter::new(&reader);
        match query.format {
            ExportFormat::Retake if query.without_files => {
                exporter.thread_without_files(thread, out, silent)?;
            }
            ExportFormat::Retake => {
                exporter.thread(thread, out, silent)?;
            }
            text => {
                let take = take_of(&reader, &reader.state(thread)?, query.take)?;
                let _entries = match text {
                    ExportFormat::Markdown => exporter.markdown(&row, &take, &ServerFormat, out, silent)?,
                    _ => exporter.json(&row, &take, &ServerFormat, out, silent)?,
                };
            }
        }
        Ok(())
    })?;
    let kind = match query.format {
        ExportFormat::Retake => NDJSON,
        ExportFormat::Markdown => MARKDOWN,
        ExportFormat::Json => JSON,
    };
    Ok((kind, ReplyBody::Stream(body)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImportQuery {
    /// The project to list it under; by default that of the server's folder.
    project: Option<ProjectId>,
    /// Import as a new thread with the same history, even if the thread exists.
    #[serde(default)]
    copy: bool,
    /// Make it the current thread of the project.
    #[serde(default)]
    current: bool,
    /// Preview the import without storing anything.
    #[serde(default)]
    dry_run: bool,
}

/// An imported thread, or the preview of one.
#[derive(Serialize, JsonSchema)]
struct ImportedThread {
    #[serde(flatten)]
    imported: ImportSummary,
    /// Whether it is now the current thread of its project.
    current: bool,
    /// Always false: delete the thread instead of undoing the import.
    undoable: bool,
    /// Whether this is a preview: nothing was stored. The id of a copy differs in the import itself.
    dry_run: bool,
}

fn import(call: &Call<'_, NoPath, ImportQuery, Upload>) -> Result<Answer<ImportedThread>, Problem> {
    let (service, query) = (call.service, &call.query);
    let timeline = &service.timeline;
    let named = query.project.map(|project| service.projects.known(project)).transpose()?;
    let importing = match (query.copy, call.made) {
        (false, _) => ImportMode::Same,
        (true, None) => ImportMode::Copy,
        (true, Some(made)) => ImportMode::CopyAs(ThreadId::from_bytes(*made.bytes())),
    };
    let from = call.body.read()?;
    let answer = |imported, current, dry_run| ImportedThread { imported, current, undoable: false, dry_run };
    if query.dry_run {
        let project = match named {
            Some(project) => project,
            None => timeline.project_if_known(&service.projects.folder)?.id,
        };
        let imported = timeline.preview_import(from, project, importing)?;
        return Ok(Answer::of(answer(imported, false, true)));
    }
    let imported = if let Some(project) = named {
        timeline.import(from, project, importing, |_, _| ())?
    } else {
        let here = timeline.project_if_known(&service.projects.folder)?;
        timeline.import_into(from, &here, importing, |_, _| ())?
    };
    let (thread, version) = (imported.thread, imported.version);
    let project = timeline.read()?.thread(thread)?.home;
    // The import succeeded even if this fails, for example because the thread is deleted.
    let current = query.current && timeline.work_on(thread, call.caller_in(project)).is_ok();
    let location = format!("/v1/threads/{thread}");
    Ok(Answer::at(answer(imported, current, false), version).with_location(location))
}
