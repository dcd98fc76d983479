//! `proof hostile`.

use clap::Args;
use retake_campaigns::hostile::{HostilePlan, MEMORY, Mistake, all, hostile, share};
use retake_campaigns::violation::{BoxError, caught};

/// The real program against a model server that attacks it, over all wires.
#[derive(Args, Debug)]
pub(crate) struct Hostile {
    /// Do it wrong on purpose instead; this must be caught.
    #[arg(long)]
    control: bool,
}

impl Hostile {
    pub(super) fn run(self) -> Result<(), BoxError> {
        let line = if self.control { control()? } else { campaign()? };
        println!("hostile: {line}");
        Ok(())
    }
}

pub(super) fn campaign() -> Result<String, BoxError> {
    let survived = hostile(&HostilePlan { attacks: all(), memory: MEMORY, mistake: None })?;
    Ok(format!(
        "{} attacks with {} MiB: at most {} MiB more memory than an ordinary answer and {:.1} s ({}); no key left for \
         another host",
        survived.attacks,
        survived.sent >> 20,
        survived.growth >> 20,
        survived.longest.as_secs_f64(),
        survived.slowest,
    ))
}

pub(super) fn control() -> Result<String, BoxError> {
    let redirected =
        HostilePlan { attacks: share(), memory: MEMORY, mistake: Some(Mistake::FollowedRedirect) };
    let redirected = caught("a redirect that is followed", hostile(&redirected))?;
    let small = HostilePlan { attacks: share(), memory: 1 << 20, mistake: None };
    let small = caught("memory that is not bounded", hostile(&small))?;
    Ok(format!("both controls were caught: {}; {}", redirected.what, small.what))
}
