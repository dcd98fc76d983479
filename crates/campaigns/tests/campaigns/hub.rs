//! Small shares of the campaigns against the hub, and their controls.

use retake_campaigns::hub::{Engine, Kill, LoadPlan, Stranger, controls, failover, history, kill, tenants};
use retake_campaigns::violation::caught;

fn plan(campaign: &'static str) -> LoadPlan {
    LoadPlan { campaign, seed: 1, writers: 4, threads: 2, pushes: 40 }
}

#[test]
fn a_stranger_learns_and_changes_nothing() {
    for stranger in [Stranger::OtherAccount, Stranger::Revoked, Stranger::Nobody] {
        let report =
            tenants(1, Engine::Sqlite, stranger).unwrap_or_else(|failed| panic!("{stranger:?}: {failed}"));
        assert!(
            report.routes > 30 && report.requests > 50 && report.found > 15,
            "{report:?}: too few for a proof"
        );
    }
}

#[test]
fn a_hub_that_shows_a_thread_is_caught() {
    caught("a member", tenants(1, Engine::Sqlite, Stranger::Member))
        .unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn concurrent_pushes_are_linearizable() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let report =
            history(plan("hub-history"), engine).unwrap_or_else(|failed| panic!("{engine:?}: {failed}"));
        assert!(report.acknowledged == 160 && report.moved > 0, "{report:?}: too few for a proof");
    }
}

#[test]
fn a_killed_hub_or_database_loses_nothing() {
    for (engine, what) in [(Engine::Sqlite, Kill::Hub), (Engine::Postgres, Kill::Database)] {
        let report =
            kill(plan("hub-kill"), engine, what, 2).unwrap_or_else(|failed| panic!("{what:?}: {failed}"));
        assert_eq!(report.acknowledged, 160);
    }
}

#[test]
fn one_of_three_hubs_is_killed_behind_a_balancer() {
    let report = failover(plan("hub-failover"), 2).unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(report.acknowledged, 160);
}

#[test]
fn hubs_with_a_known_mistake_are_caught() {
    assert_eq!(controls(plan("hub-history")).unwrap_or_else(|trouble| panic!("{trouble}")).len(), 2);
}
