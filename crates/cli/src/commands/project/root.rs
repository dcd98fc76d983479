//! `retake project root`: further folders whose files belong to a project.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use retake_timeline::FurtherRoot;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{Lines, sanitize};

/// Commands on the further folders of a project.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  retake project root add lib ../lib
  retake project root list
  retake project root remove lib

Snapshots, undo, redo, jump and restore then look after both folders; paths in the other one are called lib:PATH.
Start commands in the project's own folder. A take that is opened apart gets the project's own folder alone.")]
pub(crate) enum Command {
    /// Let the files of another folder belong to this project.
    Add(Add),
    /// Let them belong to it no more. They stay as they are, and what was recorded of them is kept.
    Remove(Remove),
    /// List the further folders.
    #[command(visible_alias = "ls")]
    List(List),
}

/// Let the files of another folder belong to this project.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project root add lib ../lib
  retake project root add lib ../moved/lib     the same again, where the folder has moved

What is in it now is no change of anybody's: it is simply held from the next snapshot on.")]
pub(crate) struct Add {
    /// What to call it: letters, digits, `-`, `_` and `.`.
    name: String,
    /// The folder. It must not share files with this one, nor with any other that Retake keeps files of.
    path: PathBuf,
}

/// Let the files of a folder belong to this project no more. They stay as they are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project root remove lib")]
pub(crate) struct Remove {
    /// What it is called.
    name: String,
}

/// List the further folders.
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
    /// Whether the folder is there.
    exists: bool,
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let known = looking.other_roots(context.project()?.id)?;
        drop(looking);
        let pair = |root: &FurtherRoot| (root.name.clone(), root.path.clone());
        let mut roots: Vec<(String, PathBuf)> = known.iter().map(pair).collect();
        let mut added = None;
        match self {
            Self::List(List {}) => return answer(context, known, "No further folders."),
            Self::Add(Add { name, path }) => {
                check_name(&name)?;
                // A root that was moved is named again.
                let there = |path: &PathBuf| known.iter().any(|root| root.path == *path && root.is_there());
                roots.retain(|(known, path)| *known != name || there(path));
                let path = context.directory().join(path);
                roots.push((name.clone(), path.canonicalize().unwrap_or(path)));
                added = Some(name);
            }
            Self::Remove(Remove { name }) => {
                let before = roots.len();
                roots.retain(|(known, _)| *known != name);
                if roots.len() == before {
                    let message = format!("there is no root {name:?}; `retake project root list` shows them");
                    return Err(Failure::new(Code::NotFound, message));
                }
            }
        }
        if context.apart()?.is_some() {
            return Err(retake_timeline::FileError::RootsApart.into());
        }
        context.desk_with_roots(&roots)?.keep_roots(added.as_deref())?;
        if context.general.quiet && !context.general.json {
            return Ok(());
        }
        let roots = context.timeline()?.look()?.other_roots(context.project()?.id)?;
        answer(context, roots, "No further folders any more.")
    }
}

fn answer(context: &Context, roots: Vec<FurtherRoot>, none: &str) -> Result<(), Failure> {
    let line = |root: FurtherRoot| Line { exists: root.is_there(), name: root.name, path: root.path };
    let answer = Answer { roots: roots.into_iter().map(line).collect() };
    context.answer(&answer, |out, _| {
        if answer.roots.is_empty() {
            return writeln!(out, "{none}");
        }
        for Line { name, path, exists } in &answer.roots {
            let path = path.display().to_string();
            let gone = if *exists { "" } else { "  (gone)" };
            writeln!(out, "{}  {}{gone}", sanitize(name, Lines::Fold), sanitize(&path, Lines::Fold))?;
        }
        Ok(())
    })
}

fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if (1..=100).contains(&name.chars().count()) && name.chars().all(plain) {
        return Ok(());
    }
    let message = format!("{name:?} cannot be the name of a root: letters, digits, -, _ and . only");
    Err(Failure::new(Code::Usage, message))
}
