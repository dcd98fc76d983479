//! `retake ls-files`

use std::path::PathBuf;

use clap::Args;
use retake_model::path::TreePath;
use retake_timeline::{CapturedFile, Depth, FOLDER, FileFacts, ListOptions, NamedFiles};
use serde::Serialize;

use crate::arguments::TakeTarget;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::revisions::{revisions_of, suggest_paths};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Files to read at a time.
const PAGE: usize = 1000;

/// List the captured files at a revision, without changing anything.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake ls-files --at turn:3             after turn 3
  retake ls-files src --at take:retry     below src, in another take
  retake ls-files --at 12 -n 20

Ignored and otherwise excluded files are not captured; `retake status` lists those of the folder. `retake cat` prints one file.")]
pub(crate) struct Arguments {
    /// Only files below this folder.
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Version, saved name, turn:NUMBER, take:NAME, folder or snapshot id.
    #[arg(long, value_name = "REVISION", default_value = FOLDER)]
    at: String,
    /// Maximum number of files and folders [default: all].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    target: TakeTarget,
}

#[derive(Serialize)]
struct Answer {
    /// The revision.
    at: NamedFiles,
    /// Sorted by path; folders before their content.
    files: Vec<CapturedFile>,
    /// Whether there are more than the limit.
    more: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let revisions = revisions_of(context, &self.target)?;
        let thread = revisions.thread.summary.id;
        let folder = self.path.as_ref().map(|path| context.root_path_of(thread, path)).transpose()?;
        let at = revisions.find(&self.at).map_err(suggest_paths)?;
        let reader = context.timeline()?.read()?;
        let limit = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (mut files, mut more): (Vec<CapturedFile>, _) = (Vec::new(), true);
        while more && files.len() < limit {
            let after: Option<TreePath> = files.last().map(|last| last.path.path.clone());
            let options = ListOptions {
                root: folder.as_ref().map_or("", |folder| folder.root.as_str()),
                folder: folder.as_ref().map(|folder| &folder.path),
                depth: Depth::All,
                after: after.as_ref(),
                limit: PAGE.min(limit - files.len()),
            };
            let page = reader.snapshot(at.snapshot).list(options)?.ok_or_else(|| {
                let path = folder.as_ref().map_or_else(|| ".".to_owned(), ToString::to_string);
                Failure::new(Code::NotFound, format!("there is no folder {path} at {}", at.name))
            })?;
            more = page.more;
            files.extend(page.items);
        }
        let answer = Answer { at, files, more };
        context.answer(&answer, |out, styles| {
            for file in &answer.files {
                if !matches!(file.facts, FileFacts::Folder { .. }) {
                    writeln!(out, "{}", sanitize(&file.path.to_string(), LineBreaks::Fold))?;
                }
            }
            if answer.more {
                let muted = styles.muted;
                writeln!(out, "{muted}… more files exist; raise --limit{muted:#}")?;
            }
            Ok(())
        })
    }
}
