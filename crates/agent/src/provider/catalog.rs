//! What is known about models: limits, thinking, prices. The data is in `catalog/table.rs`.

mod table;

use super::prices::Price;
use table::TABLE;

/// What is assumed of a model that is not in the table: what nearly every current one can be given, and an answer of
/// a length that nearly every one can write.
const UNKNOWN: Limits = Limits { context: 128_000, output: 8_192, known: false };

/// The limits of a model, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many it can be given.
    pub context: u64,
    /// How many it can answer with, thinking included.
    pub output: u32,
    /// Whether the model is in the table; otherwise these are safe guesses.
    pub known: bool,
}

/// A model.
pub(super) struct Row {
    pub(super) name: &'static str,
    context: u64,
    output: u32,
    /// Who sells it at this price.
    pub(super) sold_by: &'static [&'static str],
    pub(super) price: Option<Rates>,
    pub(super) long: Long,
    /// Whether it cannot stop thinking.
    pub(super) always_thinks: bool,
    /// Whether its provider can be asked to drop thoughts that are bound to another request.
    pub(super) drops_blocks: bool,
}

/// Read afresh, written, read from the cache, written to the cache.
#[derive(Clone, Copy)]
pub(super) struct Rates(pub(super) f64, pub(super) f64, pub(super) f64, pub(super) f64);

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

impl Row {
    const fn new(name: &'static str, context: u64, output: u32) -> Self {
        Self {
            name,
            context,
            output,
            sold_by: &[],
            price: None,
            long: Long::Same,
            always_thinks: false,
            drops_blocks: false,
        }
    }

    const fn price(self, sold_by: &'static [&'static str], price: Rates, long: Long) -> Self {
        Self { sold_by, price: Some(price), long, ..self }
    }

    const fn always(self) -> Self {
        Self { always_thinks: true, ..self }
    }

    const fn bound(self) -> Self {
        Self { drops_blocks: true, ..self }
    }
}

/// The limits of a model, whoever serves it.
pub fn limits(model: &str) -> Limits {
    let known = |row: &Row| Limits { context: row.context, output: row.output, known: true };
    find(model).map_or(UNKNOWN, known)
}

/// The row of a model, whoever serves it: `claude-opus-4-8`, `anthropic/claude-opus-4.8`,
/// `us.anthropic.claude-opus-4-8-v1:0`.
pub(super) fn find(model: &str) -> Option<&'static Row> {
    let name = bare(model);
    TABLE.iter().find(|row| is_version(&name, row.name))
}

/// The row of a model at the price of this provider, which must call it by its own name.
pub(super) fn sold(provider: &str, model: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.sold_by.contains(&provider) && is_version(model, row.name))
}

/// The name that its maker gives to a model, without what a reseller puts around it.
pub(super) fn bare(model: &str) -> String {
    let last = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let families = ["claude-", "gpt-", "gemini-", "deepseek-"];
    let start = families.iter().find_map(|family| last.find(family)).unwrap_or_default();
    let name = last[start..].split(':').next().unwrap_or_default();
    let name = name.strip_suffix("-v1").unwrap_or(name);
    // Some write the version of a Claude with a point.
    if name.starts_with("claude-") { name.replace('.', "-") } else { name.to_owned() }
}

/// Whether a model is the one of that name, or a dated version of it. Any other ending is another model.
fn is_version(model: &str, name: &str) -> bool {
    match model.strip_prefix(name) {
        Some("" | "-latest" | "-preview" | "-0") => true,
        Some(rest) => rest.strip_prefix(['-', '@']).is_some_and(is_date),
        None => false,
    }
}

/// `20251101`, `2025-11-01`, `001`.
fn is_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    matches!((digits, text.len()), (8, 8 | 10) | (3, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_belong_to_the_model_whoever_serves_it() {
        let check = |model: &str, context: u64, output: u32| {
            let found = limits(model);
            assert_eq!((found.context, found.output, found.known), (context, output, true), "{model}");
        };
        for name in ["claude-opus-4-8", "anthropic/claude-opus-4.8", "us.anthropic.claude-opus-4-8-v1:0"] {
            check(name, 1_000_000, 128_000);
        }
        check("claude-sonnet-4-5-20250929", 200_000, 64_000);
        check("claude-sonnet-4-0", 200_000, 64_000);
        check("openai/gpt-6.1-sol", 922_000, 128_000);
        check("gpt-5-2025-08-07", 272_000, 128_000);
        check("deepseek-v4-pro", 1_000_000, 384_000);
        check("google/gemini-3-flash-preview", 1_048_576, 65_536);
        for unknown in ["", "llama3", "claude-opus-9", "gpt-5-ultra"] {
            assert_eq!(limits(unknown), UNKNOWN, "{unknown}");
        }
    }

    #[test]
    fn no_row_hides_another() {
        for (at, row) in TABLE.iter().enumerate() {
            let first = TABLE.iter().position(|other| is_version(row.name, other.name));
            assert_eq!(first, Some(at), "{}", row.name);
            assert!(u64::from(row.output) <= row.context, "{}", row.name);
        }
    }
}
