//! `campaigns hub-tenants`, `hub-history`, `hub-kill` and `hub-failover`.

use clap::Args;
use retake_campaigns::hub::{
    Engine, Kill, LoadPlan, LoadReport, Stranger, controls, failover, history, kill, tenants,
};
use retake_campaigns::violation::{BoxError, caught};

/// The size of a campaign under load.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writers.
    #[arg(long, default_value_t = 8)]
    writers: u64,
    /// Threads that they share.
    #[arg(long, default_value_t = 4)]
    threads: u8,
    /// Acknowledged pushes of each writer.
    #[arg(long, default_value_t = 500)]
    pushes: u64,
    /// How often something is killed.
    #[arg(long, default_value_t = 20)]
    kills: u64,
    /// Run the controls: targets with a known mistake; each must be caught.
    #[arg(long)]
    control: bool,
}

impl Load {
    fn plan(self, campaign: &'static str) -> LoadPlan {
        let Self { seed, writers, threads, pushes, .. } = self;
        LoadPlan { campaign, seed, writers, threads, pushes }
    }

    fn controls(self, campaign: &'static str) -> Result<(), BoxError> {
        for violation in controls(self.plan(campaign))? {
            println!("{campaign}: caught: {}", violation.what);
        }
        Ok(())
    }

    pub(super) fn history(self) -> Result<(), BoxError> {
        if self.control {
            return self.controls("hub-history");
        }
        for engine in [Engine::Sqlite, Engine::Postgres] {
            print("hub-history", engine, history(self.plan("hub-history"), engine)?);
        }
        Ok(())
    }

    pub(super) fn kill(self) -> Result<(), BoxError> {
        if self.control {
            return self.controls("hub-kill");
        }
        for (engine, what) in
            [(Engine::Sqlite, Kill::Hub), (Engine::Postgres, Kill::Hub), (Engine::Postgres, Kill::Database)]
        {
            print("hub-kill", (engine, what), kill(self.plan("hub-kill"), engine, what, self.kills)?);
        }
        Ok(())
    }

    pub(super) fn failover(self) -> Result<(), BoxError> {
        if self.control {
            return self.controls("hub-failover");
        }
        print("hub-failover", Engine::Postgres, failover(self.plan("hub-failover"), self.kills)?);
        Ok(())
    }
}

fn print(campaign: &str, on: impl std::fmt::Debug, report: LoadReport) {
    let LoadReport { acknowledged, moved, repeated, readings } = report;
    println!(
        "{campaign}: {on:?}: {acknowledged} pushes acknowledged, none lost; {moved} lost a race, {repeated} requests \
         repeated, {readings} readings"
    );
}

/// Ask every route of the hub with the ids of another account.
#[derive(Args, Debug)]
pub(crate) struct Tenants {
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run the control: the stranger is a member, which must be noticed.
    #[arg(long)]
    control: bool,
}

impl Tenants {
    pub(super) fn run(self) -> Result<(), BoxError> {
        if self.control {
            let found = caught("a member", tenants(self.seed, Engine::Sqlite, Stranger::Member))?;
            println!("hub-tenants: caught: {}", found.what);
            return Ok(());
        }
        for engine in [Engine::Sqlite, Engine::Postgres] {
            for stranger in [Stranger::OtherAccount, Stranger::Revoked, Stranger::Nobody] {
                let report = tenants(self.seed, engine, stranger)?;
                println!(
                    "hub-tenants: {engine:?}, {stranger:?}: {} routes, {} requests with ids of others: as if absent",
                    report.routes, report.requests
                );
            }
        }
        Ok(())
    }
}
