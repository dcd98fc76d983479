//! `campaigns wrong-order`: the control that moves files before their intent is durable.

use clap::Args;
use retake_campaigns::files::{mistaken_remove, mistaken_undo};
use retake_campaigns::violation::BoxError;

/// Executes an undo or a removal in the wrong order.
#[derive(Args, Debug)]
pub(crate) struct WrongOrder {
    /// The command: `undo`, or `worktree remove TAKE --delete-files`.
    what: String,
    /// The rest of the command.
    rest: Vec<String>,
    /// As for `retake worktree remove`.
    #[arg(long)]
    delete_files: bool,
    /// Accepted because callers use the options of `retake`.
    #[arg(long)]
    json: bool,
}

impl WrongOrder {
    pub(super) fn run(self) -> Result<(), BoxError> {
        let store = std::env::var_os("RETAKE_HOME").ok_or("RETAKE_HOME is not set")?;
        match self.what.as_str() {
            "undo" => mistaken_undo(store.as_ref(), &std::env::current_dir()?),
            "worktree" if self.delete_files && self.rest.first().is_some_and(|word| word == "remove") => {
                mistaken_remove(store.as_ref())
            }
            other => Err(format!("{other} has no variant in the wrong order").into()),
        }
    }
}
