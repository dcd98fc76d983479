//! Compares two takes: shared entries, later entries, and their cost.
//!
//! ```text
//!   shared   1 2 3 4 ─┬─ 5 6 7          first take    tokens, cost, time
//!                     └─ 5' 6'          second take   tokens, cost, time
//! ```

use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, Usage};
use retake_model::id::{TakeId, ThreadId};
use retake_model::list::List;
use retake_model::take::Take;
use retake_timeline::{EntryView, ReadError, Reader};
use serde::Serialize;

use crate::provider::known::OFFLINE;
use crate::provider::prices::Prices;

/// A comparison of two takes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Number of shared entries.
    pub shared: u64,
    /// Both takes.
    pub sides: [ComparedTake; 2],
}

/// One of the takes, from where they diverge.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedTake"))]
pub struct ComparedTake {
    /// The take.
    pub take: TakeId,
    /// Its name.
    pub name: String,
    /// Number of its own entries.
    pub count: u64,
    /// Its own entries.
    pub entries: Vec<EntryView>,
    /// Tokens of its own answers.
    pub usage: Usage,
    /// Their cost in millionths of a dollar; null if the price of one is unknown.
    pub micro_dollars: Option<u64>,
    /// Milliseconds from its first own entry to the last.
    pub millis: i64,
    /// Number of tool calls.
    pub calls: CallCounts,
    /// Models used.
    pub models: Vec<String>,
    /// Its last recorded files.
    pub files: Option<ContentId>,
}

/// Counts of tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ToolCalls"))]
pub struct CallCounts {
    /// All calls.
    pub made: u64,
    /// Failed calls.
    pub failed: u64,
}

/// Compares two takes of a thread.
pub fn compare(
    reader: &Reader<'_>,
    thread: ThreadId,
    takes: [&Take; 2],
    prices: &Prices,
) -> Result<Comparison, ReadError> {
    let shared = shared(reader, takes)?;
    let [one, other] = takes;
    let side = |take: &Take| -> Result<ComparedTake, ReadError> {
        let entries = reader.entries(thread, take).page(shared..take.entries.len())?;
        let files = reader.files(thread).of_take(take.id)?;
        Ok(ComparedTake::of(take, entries, files, prices))
    };
    Ok(Comparison { shared, sides: [side(one)?, side(other)?] })
}

/// The number of shared entries.
fn shared(reader: &Reader<'_>, takes: [&Take; 2]) -> Result<u64, ReadError> {
    let [one, other] = takes;
    let differ = List::diff(&reader.queries(), &one.entries, &other.entries)?;
    Ok(differ.first().map_or(one.entries.len(), |first| first.old_start))
}

impl ComparedTake {
    fn of(take: &Take, entries: Vec<EntryView>, files: Option<ContentId>, prices: &Prices) -> Self {
        let mut usage = Usage::default();
        let mut micro_dollars = Some(0_u64);
        let mut calls = CallCounts::default();
        let mut models: Vec<String> = Vec::new();
        for view in &entries {
            let entry = &view.entry;
            count_calls(entry, &mut calls);
            let Some(model) = &entry.model else { continue };
            if !models.contains(model) {
                models.push(model.clone());
            }
            let Some(used) = &entry.usage else {
                // An answer of a model without usage has an unknown cost.
                micro_dollars = micro_dollars.filter(|_| model == OFFLINE);
                continue;
            };
            usage.add(used);
            let cost = prices.cost(entry.provider().as_deref(), model, used);
            micro_dollars = micro_dollars.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
        }
        let moment = |view: Option<&EntryView>| view.map_or(0, |view| view.entry.created.millis());
        let millis = (moment(entries.last()) - moment(entries.first())).max(0);
        let name = take.name.clone();
        Self {
            take: take.id,
            name,
            count: entries.len() as u64,
            entries,
            usage,
            micro_dollars,
            millis,
            calls,
            models,
            files,
        }
    }
}

fn count_calls(entry: &EntryVersion, calls: &mut CallCounts) {
    use retake_model::entry::Block;
    for block in &entry.blocks {
        match block {
            Block::ToolCall { .. } => calls.made += 1,
            Block::ToolResult { failed: true, .. } => calls.failed += 1,
            _ => {}
        }
    }
}
