//! `proof mistaken`: the control that moves files before anybody has written it down.

use clap::Args;
use retake_proof::files::{mistaken_remove, mistaken_undo};
use retake_proof::violation::Trouble;

/// Undoes in the wrong order.
#[derive(Args, Debug)]
pub(crate) struct Mistaken {
    /// What is asked for: `undo`, or `take close TAKE --remove`.
    what: String,
    /// The rest of the command.
    rest: Vec<String>,
    /// As of `retake take close`.
    #[arg(long)]
    remove: bool,
    /// For the sake of whoever calls it like `retake`.
    #[arg(long)]
    json: bool,
}

impl Mistaken {
    pub(super) fn run(self) -> Result<(), Trouble> {
        let store = std::env::var_os("RETAKE_HOME").ok_or("RETAKE_HOME is not set")?;
        match self.what.as_str() {
            "undo" => mistaken_undo(store.as_ref(), &std::env::current_dir()?),
            "take" if self.remove && self.rest.first().is_some_and(|word| word == "close") => {
                mistaken_remove(store.as_ref())
            }
            other => Err(format!("{other} cannot be done wrong").into()),
        }
    }
}
