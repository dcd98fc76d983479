//! `proof api`.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use retake_proof::api::{ApiKillPlan, CutOff, FuzzPlan, api_kill, fuzz, fuzz_controls};
use retake_proof::violation::{Trouble, caught};

/// No request may take longer.
const LONGEST: Duration = Duration::from_secs(1);

/// The API: asked whatever can be asked, or killed while it is asked.
#[derive(Args, Debug)]
pub(crate) struct Api {
    #[command(subcommand)]
    campaign: Campaign,
    /// What the dice start from.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Do it wrong on purpose instead; this must be caught.
    #[arg(long, global = true)]
    control: bool,
}

#[derive(Debug, Subcommand)]
enum Campaign {
    /// Requests made from the document: right ones, mistaken ones, hostile ones.
    Fuzz {
        /// How many requests.
        #[arg(default_value_t = 1_000_000)]
        requests: u64,
        /// How many servers are asked side by side.
        #[arg(long, default_value_t = 2)]
        lanes: u64,
    },
    /// The real server, killed while several clients write.
    Kill {
        /// How many kills.
        #[arg(default_value_t = 100)]
        kills: u64,
        /// How many clients write at once.
        #[arg(long, default_value_t = 4)]
        clients: usize,
    },
}

impl Api {
    pub(super) fn run(self) -> Result<(), Trouble> {
        println!("api: seed {}", self.seed);
        let said = match (self.campaign, self.control) {
            (Campaign::Fuzz { requests, lanes }, false) => fuzzed(self.seed, requests, lanes),
            (Campaign::Fuzz { .. }, true) => fuzz_control(self.seed),
            (Campaign::Kill { kills, clients }, false) => killed(self.seed, kills, clients),
            (Campaign::Kill { clients, .. }, true) => kill_control(self.seed, clients),
        };
        println!("api: {}", said?);
        Ok(())
    }
}

pub(super) fn fuzzed(seed: u64, requests: u64, lanes: u64) -> Result<String, Trouble> {
    let started = Instant::now();
    let fuzzed = fuzz(FuzzPlan { seed, requests, lanes, longest: LONGEST, mistake: None })?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(format!(
        "{} requests answered ({:.0} a second), {} carried out and {} refused, {} that no connection would carry, over \
         {} stores; {} of {} routes carried out; {} took over 100 ms, {} over a second but not again, the slowest {} ms ({}): no 5xx, \
         no panic",
        fuzzed.answered,
        fuzzed.answered as f64 / seconds,
        fuzzed.done,
        fuzzed.refused,
        fuzzed.not_http,
        fuzzed.stores,
        fuzzed.routes_done,
        fuzzed.routes,
        fuzzed.slow,
        fuzzed.late,
        fuzzed.slowest.as_millis(),
        fuzzed.slowest_asked,
    ))
}

pub(super) fn fuzz_control(seed: u64) -> Result<String, Trouble> {
    let caught = fuzz_controls(seed)?;
    let whats = caught.iter().map(|violation| violation.what.lines().next().unwrap_or_default());
    Ok(format!("all {} controls were caught: {}", caught.len(), whats.collect::<Vec<_>>().join("; ")))
}

pub(super) fn killed(seed: u64, kills: u64, clients: usize) -> Result<String, Trouble> {
    let seen = api_kill(ApiKillPlan { seed, kills, clients, cut_off: CutOff::Unknown })?;
    Ok(format!(
        "{} kills while {clients} clients wrote: {} acknowledged changes were there and answered the same again, {} \
         requests were cut off, {} of which had been done and were done once; {} turns ended, {} were resumed and {} \
         closed; conversation and files were always together, and nothing was left",
        seen.kills, seen.acknowledged, seen.cut_off, seen.recovered, seen.turns, seen.resumed, seen.closed
    ))
}

pub(super) fn kill_control(seed: u64, clients: usize) -> Result<String, Trouble> {
    let plan = ApiKillPlan { seed, kills: 40, clients, cut_off: CutOff::Done };
    let violation = caught("requests without an answer taken for done", api_kill(plan))?;
    Ok(format!("the control was caught: {}", violation.what))
}
