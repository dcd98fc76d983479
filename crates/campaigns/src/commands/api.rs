//! `campaigns api`.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use retake_campaigns::api::{ApiKillPlan, FuzzPlan, UnansweredRequest, api_kill, fuzz, fuzz_controls};
use retake_campaigns::violation::{BoxError, caught};

/// Maximum duration of a request.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(1);

/// Send random requests to the API, or kill the server under load.
#[derive(Args, Debug)]
pub(crate) struct Api {
    #[command(subcommand)]
    campaign: Campaign,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Run the controls, which must be caught.
    #[arg(long, global = true)]
    control: bool,
}

#[derive(Debug, Subcommand)]
enum Campaign {
    /// Send requests generated from the `OpenAPI` document: valid, faulty and hostile ones.
    Fuzz {
        /// Number of requests.
        #[arg(default_value_t = 1_000_000)]
        requests: u64,
        /// Number of servers that run in parallel.
        #[arg(long, default_value_t = 2)]
        lanes: u64,
    },
    /// Kill the real server while several clients write.
    Kill {
        /// Number of kills.
        #[arg(default_value_t = 100)]
        kills: u64,
        /// Number of concurrent clients.
        #[arg(long, default_value_t = 4)]
        clients: usize,
    },
}

impl Api {
    pub(super) fn run(self) -> Result<(), BoxError> {
        println!("api: seed {}", self.seed);
        let result = match (self.campaign, self.control) {
            (Campaign::Fuzz { requests, lanes }, false) => fuzzed(self.seed, requests, lanes),
            (Campaign::Fuzz { .. }, true) => fuzz_control(self.seed),
            (Campaign::Kill { kills, clients }, false) => killed(self.seed, kills, clients),
            (Campaign::Kill { clients, .. }, true) => kill_control(self.seed, clients),
        };
        println!("api: {}", result?);
        Ok(())
    }
}

pub(super) fn fuzzed(seed: u64, requests: u64, lanes: u64) -> Result<String, BoxError> {
    let started = Instant::now();
    let fuzzed = fuzz(FuzzPlan { seed, requests, lanes, longest: MAX_RESPONSE_TIME, mistake: None })?;
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
        fuzzed.slowest_request,
    ))
}

pub(super) fn fuzz_control(seed: u64) -> Result<String, BoxError> {
    let caught = fuzz_controls(seed)?;
    let whats = caught.iter().map(|violation| violation.what.lines().next().unwrap_or_default());
    Ok(format!("all {} controls were caught: {}", caught.len(), whats.collect::<Vec<_>>().join("; ")))
}

pub(super) fn killed(seed: u64, kills: u64, clients: usize) -> Result<String, BoxError> {
    let seen = api_kill(ApiKillPlan { seed, kills, clients, cut_off: UnansweredRequest::Unknown })?;
    Ok(format!(
        "{} kills while {clients} clients wrote: {} acknowledged changes were there and answered the same again, {} \
         requests were cut off, {} of which had been done and were done once; {} turns ended, {} were resumed and {} \
         closed; conversation and files were always together, and nothing was left",
        seen.kills, seen.acknowledged, seen.cut_off, seen.recovered, seen.turns, seen.resumed, seen.closed
    ))
}

pub(super) fn kill_control(seed: u64, clients: usize) -> Result<String, BoxError> {
    let plan = ApiKillPlan { seed, kills: 40, clients, cut_off: UnansweredRequest::Done };
    let violation = caught("requests without an answer taken for done", api_kill(plan))?;
    Ok(format!("the control was caught: {}", violation.what))
}
