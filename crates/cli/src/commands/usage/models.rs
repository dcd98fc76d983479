//! What models were used for, read off the communications log.

use std::collections::BTreeMap;
use std::io::{self, Write};

use retake_model::entry::Usage as Tokens;
use retake_store::{CommFilter, Store};
use serde::{Deserialize, Serialize};

use crate::agent::dollars;
use crate::failure::Failure;
use crate::ui::bytes::count;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::style::Styles;

/// What one model was used for.
#[derive(Default, Serialize)]
pub(super) struct ModelUse {
    provider: String,
    model: String,
    answers: u64,
    #[serde(flatten)]
    tokens: Tokens,
    /// What it cost, in millionths of a dollar, as far as prices are known.
    micro_dollars: u64,
    /// Answers whose price is not known.
    unpriced: u64,
}

/// What the log knows of an answer.
#[derive(Deserialize)]
struct Answered {
    provider: String,
    model: Option<String>,
    usage: Option<Tokens>,
    micro_dollars: Option<u64>,
}

/// What each model was used for, the most used first.
pub(super) fn used(store: &Store) -> Result<Vec<ModelUse>, Failure> {
    let mut found: BTreeMap<(String, String), ModelUse> = BTreeMap::new();
    let Some(ledger) = store.existing_ledger()? else { return Ok(Vec::new()) };
    ledger.comms(&CommFilter::default(), &mut |comm| {
        if comm.kind != "answer" {
            return Ok(());
        }
        let Ok(answered) = serde_json::from_str::<Answered>(&comm.facts) else { return Ok(()) };
        let model = answered.model.unwrap_or_default();
        let entry = found.entry((answered.provider.clone(), model.clone()));
        let sum =
            entry.or_insert_with(|| ModelUse { provider: answered.provider, model, ..ModelUse::default() });
        sum.answers += 1;
        if let Some(used) = &answered.usage {
            sum.tokens.add(used);
        }
        match answered.micro_dollars {
            Some(cost) => sum.micro_dollars = sum.micro_dollars.saturating_add(cost),
            None => sum.unpriced += 1,
        }
        Ok(())
    })?;
    let mut models: Vec<ModelUse> = found.into_values().collect();
    models.sort_by_key(|model| std::cmp::Reverse(model.answers));
    Ok(models)
}

pub(super) fn write(out: &mut dyn Write, styles: &Styles, models: &[ModelUse]) -> io::Result<()> {
    let (heading, muted) = (styles.heading, styles.muted);
    if !models.is_empty() {
        writeln!(
            out,
            "\n{heading}{:<32} {:>8} {:>12} {:>12}  cost{heading:#}",
            "model", "answers", "read", "written"
        )?;
    }
    for model in models {
        let name = format!("{}/{}", model.provider, model.model);
        let tokens = &model.tokens;
        let read = tokens.read();
        let cost = match (model.micro_dollars, model.unpriced) {
            (0, unpriced) if unpriced > 0 => format!("{muted}not known{muted:#}"),
            (cost, 0) => dollars(cost),
            (cost, _) => format!("{} and more", dollars(cost)),
        };
        let (answers, read, written) = (count(model.answers), count(read), count(tokens.output_tokens));
        let name = sanitize(&name, Lines::Fold);
        writeln!(out, "{name:<32} {answers:>8} {read:>12} {written:>12}  {cost}")?;
    }
    Ok(())
}
