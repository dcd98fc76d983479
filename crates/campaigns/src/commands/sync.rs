//! `campaigns sync`.

use clap::{Args, ValueEnum};
use retake_campaigns::sync::{RemoteKind, SyncPlan, controls, sync_model};
use retake_campaigns::violation::BoxError;

/// Let machines with one remote work, exchange, fail, be cloned and go back.
#[derive(Args, Debug)]
pub(crate) struct Sync {
    /// The remote: a folder, or a bucket behind a server that delays, cuts, halves and repeats.
    #[arg(value_enum, default_value_t = Remote::Folder)]
    remote: Remote,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of histories.
    #[arg(long, default_value_t = 1_000)]
    histories: u64,
    /// Run the controls: inject one fault after another; each must be caught.
    #[arg(long)]
    control: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Remote {
    Folder,
    Bucket,
}

impl Sync {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("sync: seed {}", self.seed);
        let remote = match self.remote {
            Remote::Folder => RemoteKind::Folder,
            Remote::Bucket => RemoteKind::Bucket,
        };
        println!(
            "sync: {}",
            if self.control { control(self.seed)? } else { campaign(self.seed, self.histories, remote)? }
        );
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, histories: u64, remote: RemoteKind) -> Result<String, BoxError> {
    let done = sync_model(SyncPlan { seed, histories, remote, mistake: None })?;
    Ok(format!(
        "{} histories, {} exchanges, {} more failed, {} merges: logs equal after two rounds, nothing lost, {} traces of \
         private threads not found",
        done.histories, done.exchanges, done.failures, done.merges, done.private
    ))
}

pub(super) fn control(seed: u64) -> Result<String, BoxError> {
    Ok(format!("{} faults, one at a time: each was caught", controls(seed)?))
}
