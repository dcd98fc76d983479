//! `retake context`: what a take gives to the model.

mod add;
mod list;
mod parts;
mod preset;
mod remove;
mod show;

use std::path::{Component, Path, PathBuf};

use clap::{Args, Subcommand};
use retake_workspace::folder::path_to_text;

use super::defaulted::WithDefault;
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;

/// Manage what a take gives to the model: files, tool outputs, pictures.
#[derive(Args)]
// Without this, clap reports two groups of the same name.
#[group(skip)]
#[command(after_help = "\
Examples:
  retake context
  retake context add src/login.rs
  retake context remove src/login.rs
  retake context add --list screenshots error.png
  retake context preset save login
  retake context show                     what the next request holds, with tokens
  retake context remove 5 --output        leave out the output of entry 5

Paths inside the project are stored relative to its folder, so that they stay valid when it moves.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: WithDefault<Command, list::Arguments>,
}

#[derive(Subcommand)]
enum Command {
    /// List the files (the default command).
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show what the next request holds, with tokens.
    Show(show::Arguments),
    /// Add files, or add removed outputs and pictures of entries again.
    Add(add::Arguments),
    /// Remove files from the list, or outputs and pictures of entries from the context. Nothing is deleted.
    #[command(visible_alias = "rm")]
    Remove(remove::Arguments),
    /// Save, load, list and delete presets of context files.
    Preset(preset::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.choice.or(Command::List) {
            Command::List(arguments) => arguments.run(context),
            Command::Show(arguments) => arguments.run(context),
            Command::Add(arguments) => arguments.run(context),
            Command::Remove(arguments) => arguments.run(context),
            Command::Preset(arguments) => arguments.run(context),
        }
    }
}

/// The folder of the thread's files, and the paths as stored: relative to that folder if they are inside it, otherwise
/// absolute.
fn stored_paths(
    context: &Context,
    target: &Target,
    paths: &[PathBuf],
) -> Result<(PathBuf, Vec<String>), Failure> {
    let thread = context.view(&context.timeline()?.read()?, target)?.0.summary.id;
    let roots = context.file_roots(Some(thread))?;
    let base = context.path_base(&roots);
    let root = roots.into_iter().next().map(|(_, main)| main).unwrap_or_default();
    let kept = paths.iter().map(|path| path_to_text(&stored_path(&root, &base, path))).collect();
    Ok((root, kept))
}

fn stored_path(root: &Path, directory: &Path, path: &Path) -> PathBuf {
    let whole = plain(&directory.join(path));
    match whole.strip_prefix(root) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.to_owned(),
        _ => whole,
    }
}

/// Removes `.` and `..` from the path's text; the file need not exist.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // The root has no parent.
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_the_project_are_stored_relative_to_it() {
        for (path, wanted) in [
            ("main.rs", "src/main.rs"),
            ("./a/../main.rs", "src/main.rs"),
            ("../README.md", "README.md"),
            ("/p/x/src/main.rs", "src/main.rs"),
            ("/p/xy/main.rs", "/p/xy/main.rs"),
            ("../../other", "/p/other"),
            ("../../../../..", "/"),
            ("..", "/p/x"),
        ] {
            let found = stored_path(Path::new("/p/x"), Path::new("/p/x/src"), Path::new(path));
            assert_eq!(found, Path::new(wanted), "{path}");
        }
    }
}
