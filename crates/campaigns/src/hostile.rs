//! A hostile model server: whatever it sends, a turn ends in bounded time and memory, and the key does not
//! leak.
//!
//! ```text
//!   retake run  ──► request with a key ──►  server          endless text · 1 GB of arguments · 100,000 calls ·
//!   (a process)  ◄── one attack, per wire ──┘               the same id · gzip bomb · redirect · not UTF-8 ·
//!        │                                                  endless line · slow drip · endless error · deep JSON
//!        └─ time, peak memory, exit code                    the other host: counts who comes
//! ```
//!
//! Peak memory is compared with that of the same command against a well-behaved server.

mod attack;
mod server;

use std::fs;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use retake_agent::provider::Wire;

pub use self::attack::Attack;
use self::server::{ElsewhereServer, HostileServer};
use crate::violation::{BoxError, CampaignError, Violation};
use retake_testing::find_program;

/// The key that must not reach another host.
const KEY: &str = "sk-hostile-0123456789";

/// Maximum memory of an attack, in addition to that of an ordinary answer.
pub const MEMORY: u64 = 64 << 20;

/// Maximum duration of a command, on busy cores.
pub const TIME: Duration = Duration::from_mins(2);

/// The attacks to run.
#[derive(Clone, Debug)]
pub struct HostilePlan {
    /// The attacks, each with its wire.
    pub attacks: Vec<(Attack, Wire)>,
    /// Maximum additional memory of an attack.
    pub memory: u64,
    /// The mistake that a control makes.
    pub mistake: Option<Mistake>,
}

/// A mistake that the campaign must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The client sends the key to the target of a redirect.
    FollowedRedirect,
}

/// The result of all attacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostileSummary {
    /// Number of attacks.
    pub attacks: u64,
    /// Maximum additional memory.
    pub growth: u64,
    /// Maximum duration.
    pub longest: Duration,
    /// The attack with that duration.
    pub slowest: String,
    /// Bytes that the server sent.
    pub sent: u64,
}

/// Measurements of a command.
struct Measurements {
    status: ExitStatus,
    peak: u64,
    took: Duration,
}

/// Every attack over every wire.
pub fn all() -> Vec<(Attack, Wire)> {
    Attack::ALL.iter().flat_map(|attack| Wire::ALL.map(|wire| (*attack, wire))).collect()
}

/// Every attack over one wire each.
pub fn share() -> Vec<(Attack, Wire)> {
    Attack::ALL.iter().copied().zip(Wire::ALL.into_iter().cycle()).collect()
}

/// Runs the program against a hostile server.
pub fn hostile(plan: &HostilePlan) -> Result<HostileSummary, CampaignError> {
    let program = find_program().map_err(CampaignError::trouble)?;
    let elsewhere = ElsewhereServer::start().map_err(CampaignError::trouble)?;
    let mut usual = 0;
    for wire in Wire::ALL {
        let server = HostileServer::start(None, wire, elsewhere.url()).map_err(CampaignError::trouble)?;
        let measured = run(&program, &server, None, wire)?;
        usual = usual.max(measured.peak);
        if !measured.status.success() {
            return Err(CampaignError::trouble(format!("an ordinary answer over {} fails", wire.name())));
        }
    }
    let mut survived = HostileSummary::default();
    for (step, (attack, wire)) in plan.attacks.iter().enumerate() {
        let name = format!("{} over {}", attack.name(), wire.name());
        let broken = |what: String| {
            CampaignError::from(Violation {
                campaign: "hostile",
                seed: 0,
                step: step as u64,
                what: format!("{name}: {what}"),
            })
        };
        let server =
            HostileServer::start(Some(*attack), *wire, elsewhere.url()).map_err(CampaignError::trouble)?;
        let measured = run(&program, &server, Some(*attack), *wire)?;
        if plan.mistake == Some(Mistake::FollowedRedirect) && *attack == Attack::Redirect {
            elsewhere.visit().map_err(CampaignError::trouble)?;
        }
        let growth = measured.peak.saturating_sub(usual);
        if growth > plan.memory {
            return Err(broken(format!("it took {} MiB more than usual", growth >> 20)));
        }
        if measured.took > TIME {
            return Err(broken(format!("it took {} s", measured.took.as_secs())));
        }
        if !matches!(measured.status.code(), Some(0 | 1)) {
            return Err(broken(format!("the program ended with {}", measured.status)));
        }
        if elsewhere.visits() > 0 {
            return Err(broken("a request went to the other host".to_owned()));
        }
        survived.attacks += 1;
        survived.growth = survived.growth.max(growth);
        survived.sent += server.sent();
        if measured.took > survived.longest {
            survived.longest = measured.took;
            survived.slowest = name;
        }
    }
    Ok(survived)
}

fn run(
    program: &std::path::Path,
    server: &HostileServer,
    attack: Option<Attack>,
    wire: Wire,
) -> Result<Measurements, CampaignError> {
    let run = || -> Result<Measurements, BoxError> {
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        fs::create_dir(&project)?;
        let config = folder.path().join("config.toml");
        let answer = if attack == Some(Attack::SlowDrip) { 2 } else { 60 };
        fs::write(
            &config,
            format!(
                "[agent]\nattempts = 1\napproval = \"none\"\n[providers.hostile]\nwire = \"{}\"\nbase_url = \"{}\"\n\
                 key = \"{KEY}\"\nanswer_seconds = {answer}\n",
                wire.name(),
                server.url(),
            ),
        )?;
        let started = Instant::now();
        let mut child = Command::new(program)
            .arg("-C")
            .arg(&project)
            .args(["run", "--json", "--provider", "hostile", "--model", "hostile/m", "hello"])
            .env_clear()
            .env("HOME", folder.path())
            .env("RETAKE_HOME", folder.path().join("home"))
            .env("RETAKE_CONFIG", &config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut peak = 0;
        loop {
            peak = peak.max(peak_memory(child.id()).unwrap_or_default());
            if let Some(status) = child.try_wait()? {
                return Ok(Measurements { status, peak, took: started.elapsed() });
            }
            if started.elapsed() > TIME * 2 {
                child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    };
    run().map_err(CampaignError::trouble)
}

/// Peak memory of a process, in bytes; `None` once it has ended.
fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
