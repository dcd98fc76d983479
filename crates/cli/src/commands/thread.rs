//! `retake thread`: conversations with their own history.

mod delete;
mod entry;
mod info;
pub(crate) mod list;
pub(crate) mod new;
mod pin;
pub(crate) mod pull;
mod remote_list;
mod rename;
mod share;
pub(crate) mod show;
pub(super) mod switch;
mod tag;

use clap::Subcommand;

pub(crate) use entry::{EntryFormat, entry_lines, role_style, write_entry};
pub(crate) use list::Facets;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a thread and make it current.
    New(new::Arguments),
    /// List threads: pinned ones first, then by last change.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show the entries of a thread.
    Show(show::Arguments),
    /// Show all metadata of a thread.
    Info(info::Arguments),
    /// Switch to another thread, or to a take of it (THREAD/TAKE).
    Switch(switch::Arguments),
    /// Bring a thread from a remote, and make it current.
    Pull(pull::Arguments),
    /// Rename a thread.
    Rename(rename::Arguments),
    /// Add or remove tags of a thread.
    Tag(tag::Arguments),
    /// Pin a thread to the top of lists.
    Pin(pin::PinArguments),
    /// Unpin a thread.
    Unpin(pin::UnpinArguments),
    /// Set who may see a thread on a hub.
    Share(share::Arguments),
    /// Delete a thread. `retake undo` or `retake thread restore` restores it.
    Delete(delete::DeleteArguments),
    /// Restore a deleted thread.
    Restore(delete::RestoreArguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::New(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
        Command::Show(arguments) => arguments.run(context),
        Command::Info(arguments) => arguments.run(context),
        Command::Switch(arguments) => arguments.run(context),
        Command::Pull(arguments) => arguments.run(context),
        Command::Rename(arguments) => arguments.run(context),
        Command::Tag(arguments) => arguments.run(context),
        Command::Pin(arguments) => arguments.run(context),
        Command::Unpin(arguments) => arguments.run(context),
        Command::Share(arguments) => arguments.run(context),
        Command::Delete(arguments) => arguments.run(context),
        Command::Restore(arguments) => arguments.run(context),
    }
}
