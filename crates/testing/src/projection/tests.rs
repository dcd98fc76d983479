//! Tests that the rules detect invalid requests, by the thousand.

use std::collections::BTreeMap;

use crate::projection::campaign::{campaign, mutants};
use crate::projection::sample::{Rng, picture, random_entries};
use retake_model::projection::{Ask, Dialect, Thinking, Thoughts, Wire, converse, request, rules};
use retake_model::settings::Effort;

#[test]
fn requests_of_random_histories_break_no_rule() {
    let summary = campaign(0..2_000).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((summary.histories, summary.requests), (2_000, 8_000));
    assert!(summary.mutants > 50_000, "{summary:?}");
    assert!(summary.caught * 1_000 >= summary.mutants * 999, "{summary:?}");
}

#[test]
fn every_invalid_request_is_detected() {
    let mut tried: BTreeMap<(&str, &str), (u32, u32)> = BTreeMap::new();
    for seed in 0..200 {
        let conversation = converse(&random_entries(seed));
        for wire in Wire::ALL {
            let model = format!("{}-large", wire.name());
            let ask = Ask {
                wire,
                dialect: Dialect::of(wire),
                model: &model,
                system: "Be brief.",
                tools: &[],
                max_tokens: 8_192,
                temperature: None,
                top_p: None,
                thinking: Some(Thinking { effort: Effort::Low, budget: 2_000 }),
                thoughts: Thoughts::Accepted,
            };
            let body = request(&conversation, &ask, &picture);
            for (way, mutant) in mutants(&body, &mut Rng::new(seed)) {
                let (tries, missed) = tried.entry((wire.name(), way)).or_default();
                *tries += 1;
                *missed += u32::from(rules::check(wire, &mutant).is_empty());
            }
        }
    }
    let missed: Vec<_> = tried.iter().filter(|(_, (_, missed))| *missed > 0).collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert!(tried.len() > 100, "{}: {tried:?}", tried.len());
}
