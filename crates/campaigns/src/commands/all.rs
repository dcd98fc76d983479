//! `campaigns all`: every campaign and every control at the documented sizes, as a table.

use std::time::Instant;

use clap::Args;
use retake_campaigns::files::StoreLocation;
use retake_campaigns::flips::Options as FlipOptions;
use retake_campaigns::processes::Options;
use retake_campaigns::sync::RemoteKind;
use retake_campaigns::violation::BoxError;

use super::{
    api, command_lines, edits, errors, exchange, files, flips, hostile, kill, model, power_cuts, processes,
    projection, sync, turns, worktrees,
};

const STEPS: u64 = 1_000_000;
const PROCESSES: usize = 8;
const OPERATIONS: u64 = 2_000;
const KILLS: u64 = 200;
const POINTS: u64 = 5_000;
const CUTS: u64 = 300;
const EDITS: u64 = 100_000;
const EXCHANGES: u64 = 20_000;
const HISTORIES: u64 = 100_000;
const SYNC: u64 = 5_000;
const COMMANDS: u64 = 300;
const COMMAND_LINES: u64 = 5_000;
const TURNS: u64 = 1_000;
const CHAOS: u64 = 30;
const REQUESTS: u64 = 1_000_000;
const LANES: u64 = 2;
const SERVER_KILLS: u64 = 100;
const CLIENTS: usize = 4;

/// Runs one row of the table and returns its summary.
type Row<'run> = &'run dyn Fn() -> Result<String, BoxError>;

/// Run all campaigns and their controls at the documented sizes.
#[derive(Args, Debug)]
pub(crate) struct All {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl All {
    pub(super) fn run(self) -> Result<(), BoxError> {
        let seed = self.seed;
        println!("all: seed {seed}");
        let party = Options {
            program: std::env::current_exe()?,
            seed,
            processes: PROCESSES,
            operations: OPERATIONS,
            kills: KILLS,
            early: false,
        };
        let rows: [(&str, Row<'_>); 41] = [
            ("kill, control", &kill::controlled),
            ("kill", &|| kill::campaign(seed, None)),
            ("errors, control", &errors::controlled),
            ("errors", &|| errors::campaign(seed, None)),
            ("files kill, control", &files::killed_control),
            ("files kill", &|| files::killed(seed, None)),
            ("files sealed, control", &files::sealed_killed_control),
            ("files sealed", &|| files::sealed_killed(seed, None)),
            ("files errors, control", &files::failed_control),
            ("files errors", &|| files::failed(seed, None)),
            ("cuts, control", &power_cuts::control),
            ("cuts", &|| power_cuts::campaign(seed, CUTS, StoreLocation::Beside)),
            ("edits, control", &|| edits::control(seed)),
            ("edits", &|| edits::campaign(seed, EDITS)),
            ("exchange, control", &|| exchange::control(seed)),
            ("exchange", &|| exchange::campaign(seed, EXCHANGES)),
            ("sync, control", &|| sync::control(seed)),
            ("sync folder", &|| sync::campaign(seed, SYNC, RemoteKind::Folder)),
            ("sync bucket", &|| sync::campaign(seed, SYNC, RemoteKind::Bucket)),
            ("commands, control", &|| command_lines::control(seed)),
            ("commands", &|| command_lines::campaign(seed, COMMAND_LINES)),
            ("worktrees, control", &|| worktrees::control(seed)),
            ("worktrees", &|| worktrees::campaign(seed, COMMANDS)),
            ("model, control", &|| model::controls(seed)),
            ("model", &|| model::campaign(seed, STEPS)),
            ("processes, control", &|| processes::control(&party)),
            ("processes", &|| processes::campaign(&party)),
            ("projection, control", &|| projection::control(seed)),
            ("projection", &|| projection::campaign(seed, HISTORIES)),
            ("turns, control", &|| turns::control(seed)),
            ("turns", &|| turns::campaign(seed, TURNS, CHAOS)),
            ("turns kill, control", &turns::killed_control),
            ("turns kill", &|| turns::killed(seed, None)),
            ("hostile, control", &hostile::control),
            ("hostile", &hostile::campaign),
            ("api fuzz, control", &|| api::fuzz_control(seed)),
            ("api fuzz", &|| api::fuzzed(seed, REQUESTS, LANES)),
            ("api kill, control", &|| api::kill_control(seed, CLIENTS)),
            ("api kill", &|| api::killed(seed, SERVER_KILLS, CLIENTS)),
            ("flips, control", &|| flips::control(seed)),
            ("flips", &|| flips::campaign(FlipOptions { seed, points: POINTS, misplaced: false })),
        ];
        let mut failed = 0;
        println!("{:<20} {:>8}  {:<6} what", "campaign", "seconds", "result");
        for (name, campaign) in rows {
            let started = Instant::now();
            let outcome = campaign();
            let (result, what) = match &outcome {
                Ok(what) => ("good", what.clone()),
                Err(error) => ("FAILED", error.to_string()),
            };
            failed += u32::from(outcome.is_err());
            println!("{name:<20} {:>8.1}  {result:<6} {what}", started.elapsed().as_secs_f64());
        }
        if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} failed", rows.len()).into()) }
    }
}
