//! `retake thread`: conversations.

mod delete;
mod entry;
mod info;
mod list;
mod new;
mod pin;
mod rename;
mod share;
mod show;
mod switch;
mod tag;

use clap::Subcommand;

pub(crate) use entry::{Manner, role_style, write_entry};
pub(crate) use list::Facets;

use crate::context::Context;
use crate::failure::Failure;

/// Commands on threads.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a thread and work on it.
    New(new::Arguments),
    /// List threads, pinned ones first, then the most lately changed.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show the entries of a thread.
    Show(show::Arguments),
    /// Show everything that is known about a thread.
    Info(info::Arguments),
    /// Work on another thread (or on another take of it, as THREAD/TAKE).
    Switch(switch::Arguments),
    /// Give a thread another title.
    Rename(rename::Arguments),
    /// Add tags to a thread, or remove them.
    Tag(tag::Arguments),
    /// Keep a thread on top of lists.
    Pin(pin::PinArguments),
    /// No longer keep a thread on top of lists.
    Unpin(pin::UnpinArguments),
    /// Set who may see a thread on a hub.
    Share(share::Arguments),
    /// Delete a thread. Nothing is destroyed: `undo` or `thread restore` brings it back.
    Delete(delete::DeleteArguments),
    /// Take a thread that was put away back into use.
    Restore(delete::RestoreArguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::New(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
        Command::Show(arguments) => arguments.run(context),
        Command::Info(arguments) => arguments.run(context),
        Command::Switch(arguments) => arguments.run(context),
        Command::Rename(arguments) => arguments.run(context),
        Command::Tag(arguments) => arguments.run(context),
        Command::Pin(arguments) => arguments.run(context),
        Command::Unpin(arguments) => arguments.run(context),
        Command::Share(arguments) => arguments.run(context),
        Command::Delete(arguments) => arguments.run(context),
        Command::Restore(arguments) => arguments.run(context),
    }
}
