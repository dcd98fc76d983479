//! Prices that providers have published for their ordinary service, in dollars for a million tokens, and the sizes of
//! their models in tokens. As of November 2026.

use super::Price;

/// A model.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) price: Rates,
    pub(super) long: Long,
    pub(super) context: u64,
}

/// Read afresh, written, read from the cache, written to the cache.
#[derive(Clone, Copy)]
pub(super) struct Rates(f64, f64, f64, f64);

/// What long prompts cost.
#[derive(Clone, Copy)]
pub(super) enum Long {
    /// Like any other.
    Same,
    /// Above so many tokens that, or something that is not known.
    Above(u64, Option<Rates>),
}

impl From<Rates> for Price {
    fn from(Rates(input, output, read, write): Rates) -> Self {
        Self { input, output, cache_read: Some(read), cache_write: Some(write) }
    }
}

const fn row(name: &'static str, price: Rates, long: Long, context: u64) -> Row {
    Row { name, price, long, context }
}

/// Where the price of long prompts begins at `OpenAI`.
const LONG: u64 = 272_000;
/// A rate that is not known: what would need it has no price.
const NOT_KNOWN: f64 = f64::NAN;
const UNKNOWN: Long = Long::Above(LONG, None);

/// For models of `OpenAI` the size is where long prompts begin: beyond it they cost twice.
pub(super) const TABLE: &[Row] = &[
    row("claude-fable-5-1", Rates(10.0, 50.0, 0.25, 12.5), Long::Same, 1_000_000),
    row("claude-mythos-5-1", Rates(10.0, 50.0, 0.25, 12.5), Long::Same, 1_000_000),
    row("claude-fable-5", Rates(10.0, 50.0, 1.0, 12.5), Long::Same, 1_000_000),
    row("claude-mythos-5", Rates(10.0, 50.0, 1.0, 12.5), Long::Same, 1_000_000),
    row("claude-opus-5-5", Rates(4.0, 20.0, 0.2, 5.0), Long::Same, 1_000_000),
    row("claude-opus-5", Rates(5.0, 25.0, 0.5, 6.25), Long::Same, 1_000_000),
    row("claude-opus-4-8", Rates(5.0, 25.0, 0.5, 6.25), Long::Same, 200_000),
    row("claude-opus-4-7", Rates(5.0, 25.0, 0.5, 6.25), Long::Same, 200_000),
    row("claude-opus-4-6", Rates(5.0, 25.0, 0.5, 6.25), Long::Same, 200_000),
    row("claude-opus-4-5", Rates(5.0, 25.0, 0.5, 6.25), Long::Same, 200_000),
    row("claude-opus-4-1", Rates(15.0, 75.0, 1.5, 18.75), Long::Same, 200_000),
    row("claude-opus-4", Rates(15.0, 75.0, 1.5, 18.75), Long::Same, 200_000),
    row("claude-sonnet-5-5", Rates(2.0, 10.0, 0.1, 2.5), Long::Same, 1_000_000),
    row("claude-sonnet-5", Rates(2.0, 10.0, 0.2, 2.5), Long::Same, 1_000_000),
    row("claude-sonnet-4-6", Rates(3.0, 15.0, 0.3, 3.75), Long::Same, 200_000),
    row("claude-sonnet-4-5", Rates(3.0, 15.0, 0.3, 3.75), Long::Above(200_000, None), 200_000),
    row("claude-sonnet-4", Rates(3.0, 15.0, 0.3, 3.75), Long::Above(200_000, None), 200_000),
    row(
        "claude-haiku-5-5",
        Rates(0.1, 0.5, 0.01, 0.125),
        Long::Above(100_000, Some(Rates(0.5, 2.5, 0.05, 0.625))),
        1_000_000,
    ),
    row("claude-haiku-4-5", Rates(1.0, 5.0, 0.1, 1.25), Long::Same, 200_000),
    row("claude-3-5-haiku", Rates(0.8, 4.0, 0.08, 1.0), Long::Same, 200_000),
    row(
        "gpt-6.1-sol",
        Rates(2.0, 10.0, 0.1, 2.5),
        Long::Above(LONG, Some(Rates(4.0, 15.0, 0.2, NOT_KNOWN))),
        LONG,
    ),
    row("gpt-6.1-terra", Rates(1.0, 5.0, 0.05, 1.25), UNKNOWN, LONG),
    row("gpt-6-sol", Rates(2.0, 10.0, 0.2, 2.5), UNKNOWN, LONG),
    row("gpt-6-luna", Rates(0.1, 0.5, 0.01, 0.125), UNKNOWN, LONG),
    row("gpt-5.4", Rates(2.5, 15.0, 0.25, 2.5), UNKNOWN, LONG),
    row("gpt-5.4-mini", Rates(0.75, 4.5, 0.075, 0.75), UNKNOWN, LONG),
    row("gpt-5.2", Rates(1.75, 14.0, 0.175, 1.75), Long::Same, LONG),
    row("gpt-5.1", Rates(1.25, 10.0, 0.125, 1.25), Long::Same, LONG),
    row("gpt-5", Rates(1.25, 10.0, 0.125, 1.25), Long::Same, LONG),
    row("gpt-5-mini", Rates(0.25, 2.0, 0.025, 0.25), Long::Same, LONG),
    row("gpt-5-nano", Rates(0.05, 0.4, 0.005, 0.05), Long::Same, LONG),
    row("gpt-4.1", Rates(2.0, 8.0, 0.5, 2.0), Long::Same, 1_000_000),
    row("gpt-4.1-mini", Rates(0.4, 1.6, 0.1, 0.4), Long::Same, 1_000_000),
    row("gpt-4.1-nano", Rates(0.1, 0.4, 0.025, 0.1), Long::Same, 1_000_000),
    row("gpt-4o", Rates(2.5, 10.0, 1.25, 2.5), Long::Same, 128_000),
    row("gpt-4o-mini", Rates(0.15, 0.6, 0.075, 0.15), Long::Same, 128_000),
    row("deepseek-v4-flash", Rates(0.14, 0.28, 0.0028, 0.14), Long::Same, 1_000_000),
    row("deepseek-v4-pro", Rates(0.435, 0.87, 0.003_625, 0.435), Long::Same, 1_000_000),
    row("gemini-3.8-flash", Rates(0.75, 3.75, 0.075, 0.75), Long::Same, 1_000_000),
    row("gemini-3.5-flash", Rates(1.5, 9.0, 0.15, 1.5), Long::Same, 1_000_000),
    row(
        "gemini-3.1-pro",
        Rates(2.0, 12.0, 0.2, 2.0),
        Long::Above(200_000, Some(Rates(4.0, 18.0, 0.4, 4.0))),
        1_000_000,
    ),
    row("gemini-3-flash", Rates(0.5, 3.0, 0.05, 0.5), Long::Same, 1_000_000),
    row(
        "gemini-2.5-pro",
        Rates(1.25, 10.0, 0.125, 1.25),
        Long::Above(200_000, Some(Rates(2.5, 15.0, 0.25, 2.5))),
        1_000_000,
    ),
    row("gemini-2.5-flash", Rates(0.3, 2.5, 0.03, 0.3), Long::Same, 1_000_000),
    row("gemini-2.5-flash-lite", Rates(0.1, 0.4, 0.01, 0.1), Long::Same, 1_000_000),
];
