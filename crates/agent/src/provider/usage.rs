//! Normalizes the token counts of all providers.
//!
//! Every input token counts once: as uncached (`input_tokens`), as read from the cache, or as written to it.
//! Implausible counts (negative, fractional, huge) give no usage: the answer is still accepted, but has no
//! cost.

use std::collections::BTreeMap;

use retake_model::entry::{Fields, Usage};
use retake_model::json::Json;
use serde_json::value::RawValue;

use super::Wire;

/// Maximum plausible count of any kind.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Counts, by name.
struct Counts(BTreeMap<String, Box<RawValue>>);

impl Counts {
    fn new(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok().map(Self)
    }

    /// A count; zero if it is missing, `None` if it is implausible.
    fn count(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            None => Some(0),
            Some(raw) => {
                let count: Option<u64> = serde_json::from_str(raw.get()).ok()?;
                count.or(Some(0)).filter(|count| *count <= MAX_TOKENS)
            }
        }
    }

    /// Nested counts; empty if they are missing.
    fn inside(&self, name: &str) -> Option<Self> {
        match self.0.get(name) {
            None => Some(Self(BTreeMap::new())),
            Some(raw) if raw.get() == "null" => Some(Self(BTreeMap::new())),
            Some(raw) => Self::new(raw),
        }
    }

    fn kept(&self, names: &[&str]) -> Fields {
        let field = |name: &&str| {
            let raw = self.0.get(*name).filter(|raw| raw.get() != "null")?;
            Some(((*name).to_owned(), Json::new(raw.get()).ok()?))
        };
        names.iter().filter_map(field).collect()
    }
}

/// The usage that a provider reports; `None` if implausible. `before` is the earlier usage of the same
/// answer.
pub(super) fn usage(wire: Wire, raw: &RawValue, before: Option<&Usage>) -> Option<Usage> {
    let counts = Counts::new(raw)?;
    match wire {
        Wire::Anthropic => anthropic(&counts, before.cloned().unwrap_or_default()),
        Wire::Chat => chat(&counts),
        Wire::Responses => responses(&counts),
        Wire::Gemini => gemini(&counts),
    }
}

/// Counts come in two events: counts missing in the second one stay.
fn anthropic(counts: &Counts, before: Usage) -> Option<Usage> {
    let count = |name: &str, before: u64| match counts.0.get(name) {
        Some(raw) if raw.get() != "null" => counts.count(name),
        _ => Some(before),
    };
    Some(Usage {
        input_tokens: count("input_tokens", before.input_tokens)?,
        output_tokens: count("output_tokens", before.output_tokens)?,
        cache_read_input_tokens: count("cache_read_input_tokens", before.cache_read_input_tokens)?,
        cache_creation_input_tokens: count(
            "cache_creation_input_tokens",
            before.cache_creation_input_tokens,
        )?,
        extra: counts.kept(&["cache_creation", "service_tier"]).or(&before.extra),
    })
}

fn chat(counts: &Counts) -> Option<Usage> {
    let details = counts.inside("prompt_tokens_details")?;
    // DeepSeek uses another name.
    let cached = details.count("cached_tokens")?.max(counts.count("prompt_cache_hit_tokens")?);
    let written = details.count("cache_write_tokens")?;
    let thought = counts.inside("completion_tokens_details")?.kept(&["reasoning_tokens"]);
    let prompt = counts.count("prompt_tokens")?;
    Some(Usage {
        // If the cached tokens exceed the total, the total excludes them: Grok on Azure counts them
        // separately.
        input_tokens: fresh(prompt, cached, written).unwrap_or(prompt),
        output_tokens: counts.count("completion_tokens")?,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: written,
        extra: counts.kept(&["cost"]).or(&thought),
    })
}

fn responses(counts: &Counts) -> Option<Usage> {
    let details = counts.inside("input_tokens_details")?;
    let cached = details.count("cached_tokens")?;
    let written = details.count("cache_write_tokens")?;
    Some(Usage {
        input_tokens: fresh(counts.count("input_tokens")?, cached, written)?,
        output_tokens: counts.count("output_tokens")?,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: written,
        extra: counts.inside("output_tokens_details")?.kept(&["reasoning_tokens"]),
    })
}

fn gemini(counts: &Counts) -> Option<Usage> {
    let cached = counts.count("cachedContentTokenCount")?;
    let thought = counts.count("thoughtsTokenCount")?;
    let prompt = counts.count("promptTokenCount")? + counts.count("toolUsePromptTokenCount")?;
    let mut extra = Fields::default();
    if thought > 0 {
        let count = Json::new(thought.to_string()).expect("a number is JSON");
        extra = [("reasoning_tokens".to_owned(), count)].into_iter().collect();
    }
    Some(Usage {
        input_tokens: fresh(prompt, cached, 0)?,
        // Thinking tokens are billed as output.
        output_tokens: counts.count("candidatesTokenCount")? + thought,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: 0,
        extra,
    })
}

/// The uncached tokens of a total that includes the cache.
fn fresh(all: u64, cached: u64, written: u64) -> Option<u64> {
    all.checked_sub(cached)?.checked_sub(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(wire: Wire, text: &str) -> Option<[u64; 4]> {
        let raw: Box<RawValue> = serde_json::from_str(text).expect("valid JSON");
        let usage = usage(wire, &raw, None)?;
        Some([
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        ])
    }

    #[test]
    fn every_token_is_counted_once() {
        let check = |wire: Wire, text: &str, expected: [u64; 4]| {
            assert_eq!(counted(wire, text), Some(expected), "{text}");
        };
        check(
            Wire::Anthropic,
            r#"{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":7,"cache_creation_input_tokens":11}"#,
            [3, 5, 7, 11],
        );
        check(Wire::Anthropic, r#"{"input_tokens":3,"cache_read_input_tokens":null}"#, [3, 0, 0, 0]);
        check(
            Wire::Chat,
            r#"{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},
                "completion_tokens_details":null}"#,
            [6, 2, 4, 0],
        );
        check(
            Wire::Chat,
            r#"{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":9,"prompt_cache_miss_tokens":1}"#,
            [1, 2, 9, 0],
        );
        check(Wire::Chat, r#"{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":6}}"#, [5, 0, 6, 0]);
        check(
            Wire::Responses,
            r#"{"input_tokens":10,"output_tokens":2,"input_tokens_details":{"cached_tokens":8}}"#,
            [2, 2, 8, 0],
        );
        check(
            Wire::Gemini,
            r#"{"promptTokenCount":10,"candidatesTokenCount":2,"thoughtsTokenCount":3,"cachedContentTokenCount":4}"#,
            [6, 5, 4, 0],
        );
    }

    #[test]
    fn impossible_token_counts_are_ignored() {
        for text in [
            "null",
            "[]",
            "7",
            r#"{"prompt_tokens":-1}"#,
            r#"{"prompt_tokens":1.5}"#,
            r#"{"prompt_tokens":"many"}"#,
            r#"{"prompt_tokens":18446744073709551615}"#,
            r#"{"prompt_tokens":1e400}"#,
            r#"{"prompt_tokens":5,"prompt_tokens_details":6}"#,
        ] {
            assert_eq!(counted(Wire::Chat, text), None, "{text}");
        }
    }
}
