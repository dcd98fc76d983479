//! Model usage, read from the trace.

use std::collections::BTreeMap;

use retake_model::entry::Usage;
use retake_model::id::ThreadId;
use retake_timeline::store::{CommFilter, Store, StoreError};
use serde::{Deserialize, Serialize};

/// Usage of one model.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelUse {
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Number of answers.
    pub answers: u64,
    /// Tokens of all answers.
    #[serde(flatten)]
    pub tokens: Usage,
    /// Cost in millionths of a dollar, as far as prices are known.
    pub micro_dollars: u64,
    /// Answers with an unknown price.
    pub unpriced: u64,
}

/// The metadata of an answer in the trace.
#[derive(Deserialize)]
struct Answered {
    provider: String,
    model: Option<String>,
    usage: Option<Usage>,
    micro_dollars: Option<u64>,
}

/// Usage by model, of one thread or all, most used first.
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
