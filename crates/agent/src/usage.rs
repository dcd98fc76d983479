//! What models were used for, read off the communications log.

use std::collections::BTreeMap;

use retake_model::entry::Usage;
use retake_model::id::ThreadId;
use retake_timeline::store::{CommFilter, Store, StoreError};
use serde::{Deserialize, Serialize};

/// What one model was used for.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelUse {
    /// Who serves it.
    pub provider: String,
    /// The model.
    pub model: String,
    /// How often it answered.
    pub answers: u64,
    /// Tokens of all answers.
    #[serde(flatten)]
    pub tokens: Usage,
    /// What it cost, in millionths of a dollar, as far as prices are known.
    pub micro_dollars: u64,
    /// Answers whose price is not known.
    pub unpriced: u64,
}

/// What the log knows of an answer.
#[derive(Deserialize)]
struct Answered {
    provider: String,
    model: Option<String>,
    usage: Option<Usage>,
    micro_dollars: Option<u64>,
}

/// What each model was used for, in one thread or in all, the most used first.
pub fn models_used(store: &Store, thread: Option<ThreadId>) -> Result<Vec<ModelUse>, StoreError> {
    let mut found: BTreeMap<(String, String), ModelUse> = BTreeMap::new();
    let Some(ledger) = store.existing_ledger()? else { return Ok(Vec::new()) };
    ledger.comms(&CommFilter { thread, ..CommFilter::default() }, &mut |comm| {
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
