//! Properties of models: limits, thinking, prices. The data is in `catalog/table.rs`.

mod table;

use super::plain_model;
use super::prices::Price;
use table::TABLE;

/// Defaults for models that are not in the table: a context window and an output length that nearly every
/// current model supports.
const UNKNOWN: Limits = Limits { context: 128_000, output: 8_192, known: false };

/// The limits of a model, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Context window.
    pub context: u64,
    /// Maximum output, including thinking.
    pub output: u32,
    /// Whether the model is in the table; otherwise these are safe guesses.
    pub known: bool,
}

/// A model.
pub(super) struct Row {
    pub(super) name: &'static str,
    context: u64,
    output: u32,
    /// Providers that sell it at this price.
    pub(super) sold_by: &'static [&'static str],
    pub(super) price: Option<Rates>,
    pub(super) long: Long,
    /// Whether its thinking cannot be turned off.
    pub(super) always_thinks: bool,
    /// Whether its provider can drop thoughts that are bound to another request.
    pub(super) drops_blocks: bool,
}

/// Prices of input, output, cache reads and cache writes.
#[derive(Clone, Copy)]
pub(super) struct Rates(pub(super) f64, pub(super) f64, pub(super) f64, pub(super) f64);

/// The price of long prompts.
#[derive(Clone, Copy)]
pub(super) enum Long {
    /// The same as for short ones.
    Same,
    /// Other rates above this many tokens; `None` if they are unknown.
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

/// The limits of a model, at any provider.
pub fn limits(model: &str) -> Limits {
    let known = |row: &Row| Limits { context: row.context, output: row.output, known: true };
    find(model).map_or(UNKNOWN, known)
}

/// The row of a model, at any provider: `claude-opus-4-8`, `anthropic/claude-opus-4.8`,
/// `us.anthropic.claude-opus-4-8-v1:0`, `claude-opus-4-8@default`.
pub(super) fn find(model: &str) -> Option<&'static Row> {
    let name = bare(model);
    TABLE.iter().find(|row| is_version(&name, row.name))
}

/// The row of a model with the price of this provider. The name must be the provider's own.
pub(super) fn sold(provider: &str, model: &str) -> Option<&'static Row> {
    let name = plain_model(model);
    TABLE.iter().find(|row| row.sold_by.contains(&provider) && is_version(&name, row.name))
}

/// The maker's name of a model, without a reseller's additions.
pub(super) fn bare(model: &str) -> String {
    let model = plain_model(model);
    let last = model.rsplit('/').next().unwrap_or(&model).to_ascii_lowercase();
    let families = ["claude-", "gpt-", "gemini-", "deepseek-"];
    let start = families.iter().find_map(|family| last.find(family)).unwrap_or_default();
    let name = last[start..].split(':').next().unwrap_or_default();
    let name = name.strip_suffix("-v1").unwrap_or(name);
    match name.strip_prefix("claude-") {
        Some(rest) => format!("claude-{}", family_first(&rest.replace('.', "-"))),
        None => name.to_owned(),
    }
}

/// Some resellers write the version of a Claude from 4 on with a dot, or before the family:
/// `4.5-sonnet` is `sonnet-4-5`.
fn family_first(name: &str) -> String {
    let words: Vec<&str> = name.split('-').collect();
    let is_number = |word: &&&str| word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_digit());
    let version = words.iter().take_while(is_number).count();
    match words.get(version) {
        Some(family) if version > 0 && words[0] >= "4" => {
            let mut sorted = vec![*family];
            sorted.extend(&words[..version]);
            sorted.extend(&words[version + 1..]);
            sorted.join("-")
        }
        _ => name.to_owned(),
    }
}

/// Whether a model has this name, or is a dated version of it. Any other suffix means another model.
fn is_version(model: &str, name: &str) -> bool {
    match model.strip_prefix(name) {
        Some("" | "-latest" | "-preview" | "-0") => true,
        Some(rest) => {
            let rest = rest.strip_prefix("-preview").unwrap_or(rest);
            rest.strip_prefix(['-', '@']).is_some_and(is_date)
        }
        None => false,
    }
}

/// `20251101`, `2025-11-01`, `09-2025`, `06-05`, `001`.
fn is_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    matches!((digits, text.len()), (8, 8 | 10) | (6, 7) | (4, 5) | (3, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_depend_on_the_model_and_not_on_the_provider() {
        let check = |model: &str, context: u64, output: u32| {
            let found = limits(model);
            assert_eq!((found.context, found.output, found.known), (context, output, true), "{model}");
        };
        for name in [
            "claude-opus-4-8",
            "anthropic/claude-opus-4.8",
            "us.anthropic.claude-opus-4-8-v1:0",
            "claude-opus-4-8@default",
            "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-8-20260101-v2:0",
        ] {
            check(name, 1_000_000, 128_000);
        }
        check("claude-sonnet-4-5-20250929", 200_000, 64_000);
        check("claude-sonnet-4-0", 200_000, 64_000);
        check("claude-4-sonnet-20250514", 200_000, 64_000);
        check("anthropic/claude-4.8-opus", 1_000_000, 128_000);
        check("claude-3.7-sonnet", 200_000, 64_000);
        check("gemini-2.5-flash-preview-09-2025", 1_048_576, 65_536);
        check("gemini-2.5-pro-preview-06-05", 1_048_576, 65_536);
        check("openai/gpt-6.1-sol", 922_000, 128_000);
        check("gpt-5-2025-08-07", 272_000, 128_000);
        check("deepseek-v4-pro", 1_000_000, 384_000);
        check("google/gemini-3-flash-preview", 1_048_576, 65_536);
        for unknown in ["", "llama3", "claude-opus-9", "gpt-5-ultra"] {
            assert_eq!(limits(unknown), UNKNOWN, "{unknown}");
        }
    }

    #[test]
    fn no_row_of_the_catalog_shadows_another() {
        for (at, row) in TABLE.iter().enumerate() {
            let first = TABLE.iter().position(|other| is_version(row.name, other.name));
            assert_eq!(first, Some(at), "{}", row.name);
            assert!(u64::from(row.output) <= row.context, "{}", row.name);
        }
    }
}
