//! `campaigns kill`.

use clap::Args;
use retake_campaigns::faults::{
    KillPlan, control, kill, kill_migration, kill_redaction, migration_control, redaction_control,
};
use retake_campaigns::violation::{BoxError, caught};

/// Kill the real program at every write-class system call of every command.
#[derive(Args, Debug)]
pub(crate) struct Kill {
    /// Seed for selecting the points, if not all are tested.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Approximate number of points [default: all].
    #[arg(long)]
    points: Option<u64>,
    /// Run the control: syncs do nothing; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Kill {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("kill: seed {}", self.seed);
        println!("kill: {}", if self.control { controlled()? } else { campaign(self.seed, self.points)? });
        Ok(())
    }
}

pub(super) fn campaign(seed: u64, points: Option<u64>) -> Result<String, BoxError> {
    let kills = kill(KillPlan { seed, points })?;
    let redactions = kill_redaction(KillPlan { seed, points })?;
    let migrations = kill_migration(KillPlan { seed, points })?;
    Ok(format!(
        "{} kills in {} commands, {} of them with unsynced writes lost: nothing acknowledged was lost; {} redactions \
         struck and run again: no byte of the secret was left; {} migrations killed, {} with unsynced writes lost: \
         nothing was lost",
        kills.kills, kills.commands, kills.lossy, redactions.kills, migrations.kills, migrations.lossy
    ))
}

pub(super) fn controlled() -> Result<String, BoxError> {
    let violation = caught("lying syncs", control())?;
    let migration = caught("lying syncs in a migration", migration_control())?;
    let words = caught("a search index that was not scrubbed", redaction_control())?;
    Ok(format!("the controls were caught: {}; {}; {}", violation.what, migration.what, words.what))
}
