//! Model usage, read from the trace.

use std::collections::BTreeMap;

use retake_model::entry::Usage;
use retake_model::id::ThreadId;
use retake_store::runtime::TraceFilter;
use retake_timeline::{StoreError, Timeline};
use serde::{Deserialize, Serialize};

/// Usage of one model.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelUsage {
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
struct AnswerFacts {
    provider: String,
    model: Option<String>,
    usage: Option<Usage>,
    micro_dollars: Option<u64>,
}

/// Usage by model, of one thread or all, most used first.
pub fn models_used(timeline: &Timeline, thread: Option<ThreadId>) -> Result<Vec<ModelUsage>, StoreError> {
    let mut found: BTreeMap<(String, String), ModelUsage> = BTreeMap::new();
    let Some(runtime_database) = timeline.store().existing_runtime_database()? else { return Ok(Vec::new()) };
    runtime_database.read_trace(&TraceFilter { thread, ..TraceFilter::default() }, &mut |trace_number| {
        if trace_number.kind != "answer" {
            return Ok(());
        }
        let Ok(answered) = serde_json::from_str::<AnswerFacts>(&trace_number.facts) else { return Ok(()) };
        let model = answered.model.unwrap_or_default();
        let entry = found.entry((answered.provider.clone(), model.clone()));
        let sum = entry.or_insert_with(|| ModelUsage {
            provider: answered.provider,
            model,
            ..ModelUsage::default()
        });
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
    let mut models: Vec<ModelUsage> = found.into_values().collect();
    models.sort_by_key(|model| std::cmp::Reverse(model.answers));
    Ok(models)
}
