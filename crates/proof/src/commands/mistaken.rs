//! `proof mistaken`: the control that moves files before anybody has written it down.

use clap::Args;
use retake_proof::files::mistaken_undo;
use retake_proof::violation::Trouble;

/// Undoes in the wrong order.
#[derive(Args, Debug)]
pub(crate) struct Mistaken {
    /// What is asked for; only `undo` is.
    what: String,
    /// For the sake of whoever calls it like `retake`.
    #[arg(long)]
    json: bool,
}

impl Mistaken {
    pub(super) fn run(self) -> Result<(), Trouble> {
        let store = std::env::var_os("RETAKE_HOME").ok_or("RETAKE_HOME is not set")?;
        match self.what.as_str() {
            "undo" => mistaken_undo(store.as_ref(), &std::env::current_dir()?),
            other => Err(format!("{other} cannot be done wrong").into()),
        }
    }
}
