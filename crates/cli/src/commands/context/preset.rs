//! `retake context preset`: named lists of context files in a project.

use clap::{Args, Subcommand};
use retake_timeline::ContextPreset;
use serde::Serialize;

use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Save, load, list, delete and restore presets of context files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake context preset save login
  retake context preset load login
  retake context preset list
  retake context preset delete login
  retake context preset restore login

Presets belong to the project, and every thread of it can load them. Loading a preset is an operation that undo reverts; \
saving and deleting are not. `restore` brings back a deleted or replaced preset; the last 1,000 are stored.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the presets of the project.
    #[command(visible_alias = "ls")]
    #[command(after_help = "Examples:\n  retake context preset list\n  retake context preset list --deleted")]
    List {
        /// List deleted and replaced presets instead, latest first.
        #[arg(long)]
        deleted: bool,
        #[command(flatten)]
        target: TakeTarget,
    },
    /// Save the take's context files as a preset.
    #[command(after_help = "Examples:\n  retake context preset save login")]
    Save {
        /// Name of the preset. An existing preset is replaced; `restore` brings it back.
        name: String,
        #[command(flatten)]
        target: TakeTarget,
    },
    /// Replace the take's context files with those of a preset.
    #[command(after_help = "Examples:\n  retake context preset load login")]
    Load {
        /// The preset.
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Restore the latest deleted or replaced preset of this name, replacing the current one.
    #[command(after_help = "Examples:\n  retake context preset restore login")]
    Restore {
        /// The preset.
        name: String,
        #[command(flatten)]
        target: TakeTarget,
    },
    /// Delete a preset; `restore` brings it back. Takes that loaded it are not changed.
    #[command(visible_alias = "rm")]
    #[command(after_help = "Examples:\n  retake context preset delete login")]
    Delete {
        /// The preset.
        name: String,
        #[command(flatten)]
        target: TakeTarget,
    },
}

#[derive(Serialize)]
struct Answer {
    presets: Vec<ContextPreset>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        match self.command {
            Command::List { deleted, target } => {
                let reader = timeline.read()?;
                let resolved = context.resolve(&reader, &(&target).into())?;
                let thread = resolved.thread.summary.id;
                let presets = if deleted {
                    reader.settings(thread).former_presets()?
                } else {
                    reader.settings(thread).presets()?
                };
                let answer = Answer { presets };
                if answer.presets.is_empty() && deleted {
                    context.note_empty(
                        "No presets were deleted or replaced",
                        "`retake context preset list` shows those in use",
                    )?;
                } else if answer.presets.is_empty() {
                    context.note_empty("No presets", "`retake context preset save NAME` creates one")?;
                }
                context.answer(&answer, |out, _| {
                    for preset in &answer.presets {
                        let name = sanitize(&preset.name, LineBreaks::Fold);
                        writeln!(out, "{name} ({} files)", preset.items.len())?;
                    }
                    Ok(())
                })
            }
            Command::Save { name, target } => {
                let resolved = context.resolve(&timeline.read()?, &(&target).into())?;
                let items = resolved.take.context_files;
                let saved = timeline.save_context_preset(resolved.thread.summary.id, &name, items)?;
                show(context, &saved, "Saved")
            }
            Command::Load { name, target } => {
                let resolved = context.resolve(&timeline.read()?, &target)?;
                let thread = resolved.thread.summary.id;
                let caller = context.caller(thread, target.expect)?;
                context.report_done(&timeline.load_context_preset(thread, resolved.take.id, &name, caller)?)
            }
            Command::Restore { name, target } => {
                let resolved = context.resolve(&timeline.read()?, &(&target).into())?;
                show(
                    context,
                    &timeline.restore_context_preset(resolved.thread.summary.id, &name)?,
                    "Restored",
                )
            }
            Command::Delete { name, target } => {
                let resolved = context.resolve(&timeline.read()?, &(&target).into())?;
                show(context, &timeline.delete_context_preset(resolved.thread.summary.id, &name)?, "Deleted")
            }
        }
    }
}

fn show(context: &Context, preset: &ContextPreset, done: &str) -> Result<(), Failure> {
    context.answer(preset, |out, _| {
        let name = sanitize(&preset.name, LineBreaks::Fold);
        writeln!(out, "{done} context preset {name} ({} files).", preset.items.len())
    })
}
