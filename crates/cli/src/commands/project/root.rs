//! `retake project root`: additional folders of a project.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use retake_timeline::AdditionalRoot;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Manage additional folders of a project.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  retake project root add lib ../lib
  retake project root list
  retake project root remove lib

Snapshots, undo, redo, jump and restore then cover both folders; paths in the other one are written lib:PATH. Run \
commands in the project's main folder. A worktree contains only the main folder.")]
pub(crate) enum Command {
    /// Add a folder to this project.
    Add(Add),
    /// Remove a folder from this project. Its files and their recorded history remain.
    Remove(Remove),
    /// List the additional folders.
    #[command(visible_alias = "ls")]
    List(List),
}

/// Add a folder to this project.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project root add lib ../lib
  retake project root add lib ../moved/lib     again, after the folder moved

The files in it are recorded by the next snapshot and attributed to nobody.")]
pub(crate) struct Add {
    /// Name of the folder: letters, digits, `-`, `_` and `.`.
    name: String,
    /// The folder. It must not overlap with this one or with any other recorded folder.
    path: PathBuf,
}

/// Remove a folder from this project. Its files are not changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project root remove lib")]
pub(crate) struct Remove {
    /// Name of the folder.
    name: String,
}

/// List the additional folders.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project root list
  retake project root list --json")]
pub(crate) struct List {}

#[derive(Serialize)]
struct Answer {
    roots: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    path: PathBuf,
    exists: bool,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let known = reader.project(context.project()?.id).additional_roots()?;
        drop(reader);
        let pair = |root: &AdditionalRoot| (root.name.clone(), root.path.clone());
        let mut roots: Vec<(String, PathBuf)> = known.iter().map(pair).collect();
        let mut added = None;
        match self {
            Self::List(List {}) => return answer(context, known, "No additional folders."),
            Self::Add(Add { name, path }) => {
                check_name(&name)?;
                // A moved root is added again under its name.
                let there = |path: &PathBuf| known.iter().any(|root| root.path == *path && root.exists());
                roots.retain(|(known, path)| *known != name || there(path));
                let path = context.directory().join(path);
                roots.push((name.clone(), path.canonicalize().unwrap_or(path)));
                added = Some(name);
            }
            Self::Remove(Remove { name }) => {
                let before = roots.len();
                roots.retain(|(known, _)| *known != name);
                if roots.len() == before {
                    let message =
                        format!("no folder named {name:?}; `retake project root list` lists the folders");
                    return Err(Failure::new(Code::NotFound, message));
                }
            }
        }
        if context.worktree()?.is_some() {
            return Err(retake_timeline::FileError::RootsInWorktree.into());
        }
        context.working_copy_with_roots(&roots)?.store_roots(added.as_deref())?;
        if context.general.quiet && !context.general.json {
            return Ok(());
        }
        let roots = context.timeline()?.read()?.project(context.project()?.id).additional_roots()?;
        answer(context, roots, "No additional folders left.")
    }
}

fn answer(context: &Context, roots: Vec<AdditionalRoot>, none: &str) -> Result<(), Failure> {
    let line = |root: AdditionalRoot| Line { exists: root.exists(), name: root.name, path: root.path };
    let answer = Answer { roots: roots.into_iter().map(line).collect() };
    context.answer(&answer, |out, _| {
        if answer.roots.is_empty() {
            return writeln!(out, "{none}");
        }
        for Line { name, path, exists } in &answer.roots {
            let path = path.display().to_string();
            let gone = if *exists { "" } else { "  (missing)" };
            writeln!(
                out,
                "{}  {}{gone}",
                sanitize(name, LineBreaks::Fold),
                sanitize(&path, LineBreaks::Fold)
            )?;
        }
        Ok(())
    })
}

fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if (1..=100).contains(&name.chars().count()) && name.chars().all(plain) {
        return Ok(());
    }
    let message = format!("{name:?} is not a valid name; use letters, digits, -, _ and .");
    Err(Failure::new(Code::Usage, message))
}
