//! A model server that attacks, with its controls.

use retake_campaigns::hostile::{Attack, HostilePlan, MEMORY, Mistake, hostile, share};
use retake_campaigns::violation::caught;

#[test]
fn a_hostile_server_costs_bounded_time_and_memory() {
    let plan = HostilePlan { attacks: share(), memory: MEMORY, mistake: None };
    let survived = hostile(&plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(survived.attacks, Attack::ALL.len() as u64);
    assert!(survived.sent > 30 << 20, "{survived:?}: too little for a proof");
}

#[test]
fn a_key_that_follows_a_redirect_and_unbounded_memory_are_caught() {
    let attacks = |wanted: Attack| share().into_iter().filter(|(attack, _)| *attack == wanted).collect();
    let plan = HostilePlan {
        attacks: attacks(Attack::Redirect),
        memory: MEMORY,
        mistake: Some(Mistake::FollowedRedirect),
    };
    caught("a redirect that is followed", hostile(&plan)).unwrap_or_else(|trouble| panic!("{trouble}"));
    let plan = HostilePlan { attacks: attacks(Attack::EndlessText), memory: 1 << 20, mistake: None };
    caught("memory that is not bounded", hostile(&plan)).unwrap_or_else(|trouble| panic!("{trouble}"));
}
