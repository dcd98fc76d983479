//! Known models: their limits in tokens, how they think, and the published prices of their providers for
//! standard service, in dollars per million tokens. As of November 2026.
//!
//! One row per model, the newest first within each provider. A model whose limits are not published is left out: it
//! gets safe defaults and a notice.
//!
//! Sources: the model pages of `platform.claude.com`, `developers.openai.com`, `ai.google.dev` and
//! `api-docs.deepseek.com`; for the newest models of `OpenAI`, whose own pages could not be read, the model lists of
//! Vercel, Venice and `LiteLLM`, where they agree. Of `claude-fable-5-2` and `claude-mythos-5-1` only the names are
//! published (in Anthropic's library).

use super::{Long, Rates, Row};

/// Prompt length above which `OpenAI` charges the long-prompt price.
const LONG: u64 = 272_000;
/// Maximum input of `OpenAI`'s largest models: their window without the space reserved for an answer.
const LARGE: u64 = 922_000;
/// An unknown rate: answers that need it have no cost.
const NOT_KNOWN: f64 = f64::NAN;
const UNKNOWN: Long = Long::Above(LONG, None);

/// Providers that sell each maker's models at the prices below. Other providers have other prices.
const ANTHROPIC: &[&str] = &["anthropic"];
const OPENAI: &[&str] = &["openai", "openai-responses"];
const DEEPSEEK: &[&str] = &["deepseek"];
const GOOGLE: &[&str] = &["gemini"];

// One line per row.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    Row::new("claude-fable-5-1", 1_000_000, 128_000).price(ANTHROPIC, Rates(10.0, 50.0, 0.25, 12.5), Long::Same).always().bound(),
    Row::new("claude-fable-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(10.0, 50.0, 1.0, 12.5), Long::Same).always(),
    Row::new("claude-mythos-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(10.0, 50.0, 1.0, 12.5), Long::Same).always(),
    Row::new("claude-opus-5-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(4.0, 20.0, 0.2, 5.0), Long::Same).always().bound(),
    Row::new("claude-opus-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(5.0, 25.0, 0.5, 6.25), Long::Same),
    Row::new("claude-opus-4-8", 1_000_000, 128_000).price(ANTHROPIC, Rates(5.0, 25.0, 0.5, 6.25), Long::Same),
    Row::new("claude-opus-4-7", 1_000_000, 128_000).price(ANTHROPIC, Rates(5.0, 25.0, 0.5, 6.25), Long::Same),
    Row::new("claude-opus-4-6", 1_000_000, 128_000).price(ANTHROPIC, Rates(5.0, 25.0, 0.5, 6.25), Long::Same),
    Row::new("claude-opus-4-5", 200_000, 64_000).price(ANTHROPIC, Rates(5.0, 25.0, 0.5, 6.25), Long::Same),
    Row::new("claude-opus-4-1", 200_000, 32_000).price(ANTHROPIC, Rates(15.0, 75.0, 1.5, 18.75), Long::Same),
    Row::new("claude-opus-4", 200_000, 32_000).price(ANTHROPIC, Rates(15.0, 75.0, 1.5, 18.75), Long::Same),
    Row::new("claude-sonnet-5-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(2.0, 10.0, 0.1, 2.5), Long::Same).bound(),
    Row::new("claude-sonnet-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(2.0, 10.0, 0.2, 2.5), Long::Same),
    Row::new("claude-sonnet-4-6", 1_000_000, 64_000).price(ANTHROPIC, Rates(3.0, 15.0, 0.3, 3.75), Long::Same),
    Row::new("claude-sonnet-4-5", 200_000, 64_000).price(ANTHROPIC, Rates(3.0, 15.0, 0.3, 3.75), Long::Above(200_000, None)),
    Row::new("claude-sonnet-4", 200_000, 64_000).price(ANTHROPIC, Rates(3.0, 15.0, 0.3, 3.75), Long::Above(200_000, None)),
    Row::new("claude-haiku-5-5", 1_000_000, 128_000).price(ANTHROPIC, Rates(0.1, 0.5, 0.01, 0.125), Long::Above(100_000, Some(Rates(0.5, 2.5, 0.05, 0.625)))).bound(),
    Row::new("claude-haiku-4-5", 200_000, 64_000).price(ANTHROPIC, Rates(1.0, 5.0, 0.1, 1.25), Long::Same),
    Row::new("claude-3-5-haiku", 200_000, 8_192).price(ANTHROPIC, Rates(0.8, 4.0, 0.08, 1.0), Long::Same),
    Row::new("claude-3-7-sonnet", 200_000, 64_000),
    Row::new("claude-3-5-sonnet", 200_000, 8_192),
    Row::new("claude-3-opus", 200_000, 4_096),
    Row::new("claude-3-haiku", 200_000, 4_096),
    Row::new("gpt-6.1-sol", LARGE, 128_000).price(OPENAI, Rates(2.0, 10.0, 0.1, 2.5), Long::Above(LONG, Some(Rates(4.0, 15.0, 0.2, NOT_KNOWN)))),
    Row::new("gpt-6.1-terra", LARGE, 128_000).price(OPENAI, Rates(1.0, 5.0, 0.05, 1.25), Long::Above(LONG, Some(Rates(2.0, 7.5, 0.1, NOT_KNOWN)))),
    Row::new("gpt-6-sol", LARGE, 128_000).price(OPENAI, Rates(2.0, 10.0, 0.2, 2.5), UNKNOWN),
    Row::new("gpt-6-luna", LARGE, 128_000).price(OPENAI, Rates(0.1, 0.5, 0.01, 0.125), UNKNOWN),
    Row::new("gpt-5.4", LARGE, 128_000).price(OPENAI, Rates(2.5, 15.0, 0.25, 2.5), UNKNOWN),
    Row::new("gpt-5.4-mini", LONG, 128_000).price(OPENAI, Rates(0.75, 4.5, 0.075, 0.75), UNKNOWN),
    Row::new("gpt-5.2", LONG, 128_000).price(OPENAI, Rates(1.75, 14.0, 0.175, 1.75), Long::Same),
    Row::new("gpt-5.1", LONG, 128_000).price(OPENAI, Rates(1.25, 10.0, 0.125, 1.25), Long::Same),
    Row::new("gpt-5", LONG, 128_000).price(OPENAI, Rates(1.25, 10.0, 0.125, 1.25), Long::Same),
    Row::new("gpt-5-mini", LONG, 128_000).price(OPENAI, Rates(0.25, 2.0, 0.025, 0.25), Long::Same),
    Row::new("gpt-5-nano", LONG, 128_000).price(OPENAI, Rates(0.05, 0.4, 0.005, 0.05), Long::Same),
    Row::new("gpt-4.1", 1_047_576, 32_768).price(OPENAI, Rates(2.0, 8.0, 0.5, 2.0), Long::Same),
    Row::new("gpt-4.1-mini", 1_047_576, 32_768).price(OPENAI, Rates(0.4, 1.6, 0.1, 0.4), Long::Same),
    Row::new("gpt-4.1-nano", 1_047_576, 32_768).price(OPENAI, Rates(0.1, 0.4, 0.025, 0.1), Long::Same),
    Row::new("gpt-4o", 128_000, 16_384).price(OPENAI, Rates(2.5, 10.0, 1.25, 2.5), Long::Same),
    Row::new("gpt-4o-mini", 128_000, 16_384).price(OPENAI, Rates(0.15, 0.6, 0.075, 0.15), Long::Same),
    Row::new("gpt-6-astra", LARGE, 128_000).price(OPENAI, Rates(10.0, 50.0, NOT_KNOWN, NOT_KNOWN), UNKNOWN),
    Row::new("gpt-6.2-astra", LARGE, 128_000),
    Row::new("gpt-5.6", LARGE, 128_000),
    Row::new("gpt-5.6-sol", LARGE, 128_000),
    Row::new("gpt-5.6-terra", LARGE, 128_000),
    Row::new("gpt-5.5", LARGE, 128_000),
    Row::new("gpt-5.6-luna", LARGE, 128_000),
    Row::new("gpt-5.3-codex", LONG, 128_000),
    Row::new("gpt-5.2-codex", LONG, 128_000),
    Row::new("gpt-5.1-codex", LONG, 128_000),
    Row::new("gpt-5.1-codex-max", LONG, 128_000),
    Row::new("gpt-5.1-codex-mini", LONG, 128_000),
    Row::new("gpt-5-codex", LONG, 128_000),
    Row::new("o4-mini", 200_000, 100_000),
    Row::new("o3", 200_000, 100_000),
    Row::new("o3-mini", 200_000, 100_000),
    Row::new("o1", 200_000, 100_000),
    Row::new("deepseek-v4-flash", 1_000_000, 384_000).price(DEEPSEEK, Rates(0.14, 0.28, 0.0028, 0.14), Long::Same),
    Row::new("deepseek-v4-pro", 1_000_000, 384_000).price(DEEPSEEK, Rates(0.435, 0.87, 0.003_625, 0.435), Long::Same),
    Row::new("gemini-3.8-flash", 1_048_576, 65_536).price(GOOGLE, Rates(0.75, 3.75, 0.075, 0.75), Long::Same),
    Row::new("gemini-3.5-flash", 1_048_576, 65_536).price(GOOGLE, Rates(1.5, 9.0, 0.15, 1.5), Long::Same),
    Row::new("gemini-3.1-pro", 1_048_576, 65_536).price(GOOGLE, Rates(2.0, 12.0, 0.2, 2.0), Long::Above(200_000, Some(Rates(4.0, 18.0, 0.4, 4.0)))),
    Row::new("gemini-3-flash", 1_048_576, 65_536).price(GOOGLE, Rates(0.5, 3.0, 0.05, 0.5), Long::Same),
    Row::new("gemini-2.5-pro", 1_048_576, 65_536).price(GOOGLE, Rates(1.25, 10.0, 0.125, 1.25), Long::Above(200_000, Some(Rates(2.5, 15.0, 0.25, 2.5)))),
    Row::new("gemini-2.5-flash", 1_048_576, 65_536).price(GOOGLE, Rates(0.3, 2.5, 0.03, 0.3), Long::Same),
    Row::new("gemini-2.5-flash-lite", 1_048_576, 65_536).price(GOOGLE, Rates(0.1, 0.4, 0.01, 0.1), Long::Same),
    Row::new("gemini-3-pro", 1_048_576, 65_536),
    Row::new("gemini-2.0-flash", 1_048_576, 8_192),
];
