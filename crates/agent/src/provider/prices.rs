//! The cost of answers.
//!
//! Prices are looked up, never guessed. They belong to a provider: the same model has other prices elsewhere.
//! A model without a price in the provider's table or the user's configuration has no cost, and neither has a
//! case with an unknown price, such as a very long prompt. The user's prices override the table.

use std::collections::BTreeMap;

use retake_model::entry::Usage;
use serde::Deserialize;

use super::catalog::{Limits, Long, limits, sold};
use super::plain_model;

/// Dollars per million tokens, as configured in `[prices."model"]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads; the input price by default.
    pub cache_read: Option<f64>,
    /// Cache writes; the input price by default.
    pub cache_write: Option<f64>,
}

/// All prices and context windows: the table, and the user's overrides.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    prices: BTreeMap<String, Price>,
    contexts: BTreeMap<String, u64>,
}

impl Prices {
    /// The table with the user's overrides. A name that ends with `*` matches all models with that prefix.
    pub fn new(prices: BTreeMap<String, Price>, contexts: BTreeMap<String, u64>) -> Self {
        Self { prices, contexts }
    }

    /// The cost of an answer in millionths of a dollar; `None` if unknown.
    pub fn cost(&self, provider: Option<&str>, model: &str, usage: &Usage) -> Option<u64> {
        if let Some(price) = own(&self.prices, provider, model) {
            return total(price, usage);
        }
        // Prefer the cost that the provider reports.
        if let Some(stated) = usage.extra.get("cost").and_then(|cost| cost.as_str().parse::<f64>().ok()) {
            return micros(stated);
        }
        let row = sold(provider?, model)?;
        let read = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        match row.long {
            Long::Above(limit, None) if read > limit => None,
            Long::Above(limit, Some(price)) if read > limit => total(&price.into(), usage),
            _ => total(&row.price?.into(), usage),
        }
    }

    /// The limits of a model. The user's context window overrides the table.
    pub fn limits(&self, model: &str) -> Limits {
        match own(&self.contexts, None, model) {
            Some(context) => Limits { context: *context, known: true, ..limits(model) },
            None => limits(model),
        }
    }
}

/// The user's setting for a model: with its provider or without, by the provider's name for it or its maker's.
fn own<'a, T>(configured: &'a BTreeMap<String, T>, provider: Option<&str>, model: &str) -> Option<&'a T> {
    [model, &*plain_model(model)].into_iter().find_map(|model| {
        let full = provider.and_then(|provider| named(configured, &format!("{provider}/{model}")));
        full.or_else(|| named(configured, model))
    })
}

/// The user's setting for a name: exactly, or by the longest matching prefix.
fn named<'a, T>(configured: &'a BTreeMap<String, T>, model: &str) -> Option<&'a T> {
    let beginning = |name: &str| name.strip_suffix('*').is_some_and(|beginning| model.starts_with(beginning));
    let matching = configured.iter().filter(|(name, _)| *name == model || beginning(name));
    matching.max_by_key(|(name, _)| (*name == model, name.len())).map(|(_, value)| value)
}

fn total(price: &Price, usage: &Usage) -> Option<u64> {
    let parts = [
        (usage.input_tokens, Some(price.input)),
        (usage.output_tokens, Some(price.output)),
        (usage.cache_read_input_tokens, price.cache_read.or(Some(price.input))),
        (usage.cache_creation_input_tokens, price.cache_write.or(Some(price.input))),
    ];
    // Integer millionths of a dollar per million tokens, so that sums over thousands of entries stay exact.
    let mut sum: u128 = 0;
    for (tokens, dollars) in parts {
        if tokens > 0 {
            sum += u128::from(tokens) * u128::from(micros(dollars?)?);
        }
    }
    u64::try_from((sum + 500_000) / 1_000_000).ok()
}

/// Converts dollars to millionths; `None` if they are not a valid amount.
fn micros(dollars: f64) -> Option<u64> {
    (0.0..1e9).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use retake_model::json::Json;

    fn usage(input: u64, output: u64, read: u64, write: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_input_tokens: read,
            cache_creation_input_tokens: write,
            ..Usage::default()
        }
    }

    #[test]
    fn only_known_models_have_a_price() {
        let check = |model: &str, usage: Usage, expected: Option<u64>| {
            let seller = ["anthropic", "openai", "deepseek"]
                .into_iter()
                .find_map(|provider| Prices::default().cost(Some(provider), model, &usage));
            assert_eq!(seller, expected, "{model}");
            for other in [None, Some("openrouter"), Some("my-proxy")] {
                assert_eq!(Prices::default().cost(other, model, &usage), None, "{model} of {other:?}");
            }
        };
        check("claude-opus-5-5", usage(1_000_000, 0, 0, 0), Some(4_000_000));
        check("claude-opus-5-5", usage(1, 1, 0, 0), Some(24));
        check("claude-opus-4-5-20251101", usage(1000, 1000, 1000, 1000), Some(5000 + 25_000 + 500 + 6250));
        check("claude-opus-5", usage(1000, 0, 0, 0), Some(5000));
        check("gpt-5", usage(1000, 1000, 0, 0), Some(11_250));
        check("gpt-5-2025-08-07", usage(1000, 1000, 0, 0), Some(11_250));
        check("gpt-5-mini", usage(1000, 0, 0, 0), Some(250));
        check("deepseek-v4-flash", usage(0, 0, 1_000_000, 0), Some(2800));
        check("claude-haiku-5-5", usage(100_000, 0, 0, 0), Some(10_000));
        check("claude-haiku-5-5", usage(100_000, 0, 1, 0), Some(50_000));
        check("gpt-6-luna", usage(300_000, 0, 0, 0), None);
        for unknown in
            ["", "gpt-5-ultra", "claude", "claude-opus-5-6", "gpt-50", "llama3", "anthropic/claude-opus-5"]
        {
            check(unknown, usage(1, 1, 1, 1), None);
        }
    }

    #[test]
    fn configured_prices_override_the_table() {
        let price = |input: f64| Price { input, output: 1.0, cache_read: None, cache_write: Some(f64::NAN) };
        let own = [
            ("gpt-5", price(7.0)),
            ("gpt-*", price(1.0)),
            ("gpt-5-m*", price(2.0)),
            ("bad", price(-1.0)),
            ("anthropic/gpt-9", price(3.0)),
            ("openai/gpt-9", price(4.0)),
        ];
        let own = own.map(|(name, price)| (name.to_owned(), price)).into_iter().collect();
        let contexts = [("llama*".to_owned(), 8192)].into_iter().collect();
        let prices = Prices::new(own, contexts);
        let check = |model: &str, usage: Usage, expected: Option<u64>| {
            assert_eq!(prices.cost(Some("anthropic"), model, &usage), expected, "{model}");
        };
        check("gpt-5", usage(1000, 0, 0, 0), Some(7000));
        check("gpt-5-mini", usage(1000, 0, 0, 0), Some(2000));
        check("gpt-oss", usage(1000, 0, 1000, 0), Some(2000));
        check("gpt-5", usage(0, 0, 0, 1), None);
        check("gpt-9", usage(1000, 0, 0, 0), Some(3000));
        check("bad", usage(1, 0, 0, 0), None);
        check("claude-opus-5", usage(1000, 0, 0, 0), Some(5000));
        let sizes = ["llama3", "claude-opus-5-5", "what"].map(|model| prices.limits(model).context);
        assert_eq!(sizes, [8192, 1_000_000, 128_000]);
    }

    #[test]
    fn a_cloud_model_name_finds_the_price_of_the_model() {
        let price = Price { input: 3.0, output: 1.0, cache_read: None, cache_write: None };
        let own = [("bedrock/claude-haiku-4-5*".to_owned(), price), ("claude-sonnet-4-6".to_owned(), price)];
        let contexts = [("claude-sonnet-4-5*".to_owned(), 1_000_000)];
        let prices = Prices::new(own.into(), contexts.into());
        for (provider, model) in [
            ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
            ("bedrock", "global.anthropic.claude-sonnet-4-6"),
            ("vertex", "claude-sonnet-4-6@default"),
        ] {
            assert_eq!(prices.cost(Some(provider), model, &usage(1000, 0, 0, 0)), Some(3000), "{model}");
        }
        for model in ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929"] {
            assert_eq!(prices.limits(model).context, 1_000_000, "{model}");
            assert_eq!(Prices::default().limits(model).context, 200_000, "{model}");
        }
    }

    #[test]
    fn the_cost_that_a_provider_reports_overrides_the_table() {
        let mut stated = usage(1, 1, 0, 0);
        stated.extra = [("cost".to_owned(), Json::new("0.00123").expect("JSON"))].into_iter().collect();
        assert_eq!(Prices::default().cost(Some("openrouter"), "vendor/model", &stated), Some(1230));
        stated.extra = [("cost".to_owned(), Json::new("-5").expect("JSON"))].into_iter().collect();
        assert_eq!(Prices::default().cost(Some("openrouter"), "vendor/model", &stated), None);
    }
}
