//! `retake usage`

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use retake_model::entry::Usage as Tokens;
use retake_store::{BudgetState, CommFilter, Store, Usage};
use serde::{Deserialize, Serialize};

use crate::agent::dollars;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::{count, size};
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::style::Styles;

/// Show how much room the store takes, and what models were used, with what that cost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake usage
  retake config set storage.budget \"5 GB\"    warn before it grows beyond that")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    folder: String,
    #[serde(flatten)]
    usage: Usage,
    budget: Option<u64>,
    against: Option<BudgetState>,
    /// Models that answered, over all threads, as far as the communications log reaches back.
    models: Vec<ModelUse>,
}

/// What one model was used for.
#[derive(Default, Serialize)]
struct ModelUse {
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

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let store = context.timeline()?.store();
        let usage = store.usage()?;
        let budget = context.config.storage.budget.map(|budget| budget.0);
        let answer = Answer {
            folder: store.folder().to_string_lossy().into_owned(),
            usage,
            budget,
            against: budget.map(|budget| usage.against(budget)),
            models: models(store)?,
        };
        context.answer(&answer, |out, styles| {
            let (muted, warning) = (styles.muted, styles.warning);
            for (name, value) in [
                ("folder", sanitize(&answer.folder, Lines::Fold).into_owned()),
                ("database", size(usage.database)),
                ("its log", size(usage.log)),
                ("search index", size(usage.search)),
                ("what was said", size(usage.ledger)),
                ("backups", size(usage.backups)),
                ("all", size(usage.total)),
                ("threads", count(usage.threads)),
                ("operations", count(usage.operations)),
                ("objects", count(usage.objects)),
            ] {
                writeln!(out, "{muted}{name:>14}{muted:#}  {value}")?;
            }
            match answer.budget {
                None => writeln!(
                    out,
                    "{muted}        budget  none (`retake config set storage.budget \"5 GB\"`){muted:#}"
                )?,
                Some(budget) => {
                    write!(out, "{muted}        budget{muted:#}  {}", size(budget))?;
                    match answer.against {
                        Some(BudgetState::Near { percent } | BudgetState::Over { percent }) => {
                            writeln!(out, "{warning}, {percent} % used{warning:#}")?;
                        }
                        _ => writeln!(out)?,
                    }
                }
            }
            write_models(out, styles, &answer.models)
        })
    }
}

/// What each model was used for, the most used first.
fn models(store: &Store) -> Result<Vec<ModelUse>, Failure> {
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
            sum.tokens.input_tokens = sum.tokens.input_tokens.saturating_add(used.input_tokens);
            sum.tokens.output_tokens = sum.tokens.output_tokens.saturating_add(used.output_tokens);
            sum.tokens.cache_read_input_tokens =
                sum.tokens.cache_read_input_tokens.saturating_add(used.cache_read_input_tokens);
            sum.tokens.cache_creation_input_tokens =
                sum.tokens.cache_creation_input_tokens.saturating_add(used.cache_creation_input_tokens);
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

fn write_models(out: &mut dyn Write, styles: &Styles, models: &[ModelUse]) -> io::Result<()> {
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
        let read = tokens.input_tokens + tokens.cache_read_input_tokens + tokens.cache_creation_input_tokens;
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
