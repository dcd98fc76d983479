//! The campaigns under load: concurrent pushes, kills, and a balancer in front of several hubs.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use retake_testing::free_port;

use super::controls::{EarlyAnswer, Upsert};
use super::load::{LoadPlan, LoadReport, LoadTarget, run};
use super::processes::{Devices, Engine, Site};
use crate::violation::{BoxError, CampaignError, Violation, caught};

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// The hub.
    Hub,
    /// The database.
    Database,
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Concurrent pushes: versions tile, bundles chain, the feed has no gap, and heads are linearizable.
pub fn history(plan: LoadPlan, engine: Engine) -> Result<LoadReport, CampaignError> {
    let site = Site::new(engine)?;
    let port = free_port();
    let _hub = site.start(port)?;
    let devices = Devices::new(&site, local(port), plan.writers)?;
    run(&devices, plan, |_| Ok(()))
}

/// Kills the hub or its database under load, so many times: nothing acknowledged is lost.
pub fn kill(plan: LoadPlan, engine: Engine, what: Kill, times: u64) -> Result<LoadReport, CampaignError> {
    let site = Site::new(engine)?;
    let port = free_port();
    let mut hub = Some(site.start(port)?);
    let devices = Devices::new(&site, local(port), plan.writers)?;
    run(&devices, plan, |_| {
        for _ in 0..times {
            std::thread::sleep(Duration::from_millis(400));
            if let (Kill::Database, Some(postgres)) = (what, &site.postgres) {
                let process = postgres.process().to_string();
                Command::new("kill").args(["-9", &process]).status()?;
                std::thread::sleep(Duration::from_millis(300));
                postgres.resume();
            } else {
                hub.take().ok_or("no hub")?.kill()?;
                hub = Some(site.start(port)?);
            }
        }
        Ok(())
    })
}

/// Three hubs on one Postgres behind haproxy, one of them killed and started again, so many times.
pub fn failover(plan: LoadPlan, times: u64) -> Result<LoadReport, CampaignError> {
    let site = Site::new(Engine::Postgres)?;
    let ports = [free_port(), free_port(), free_port()];
    let mut hubs = Vec::new();
    for port in ports {
        hubs.push(Some(site.start(port)?));
    }
    let balancer = site.balance(&ports)?;
    let devices = Devices::new(&site, balancer.address, plan.writers)?;
    run(&devices, plan, |_: &AtomicBool| {
        for time in 0..times {
            std::thread::sleep(Duration::from_millis(500));
            let victim = time as usize % ports.len();
            hubs[victim].take().ok_or("no hub")?.kill()?;
            std::thread::sleep(Duration::from_millis(500));
            hubs[victim] = Some(site.start(ports[victim])?);
        }
        Ok(())
    })
}

/// Targets with a known mistake; each must be caught.
pub fn controls(plan: LoadPlan) -> Result<Vec<Violation>, BoxError> {
    let broken: [(&str, &dyn LoadTarget); 2] =
        [("get, compare and put", &Upsert::default()), ("answers before it writes", &EarlyAnswer::default())];
    broken.into_iter().map(|(name, target)| caught(name, run(target, plan, |_| Ok(())))).collect()
}
