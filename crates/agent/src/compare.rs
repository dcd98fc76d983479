//! Two takes side by side: what they share, what each went on to say, and what that took.
//!
//! ```text
//!   shared   1 2 3 4 ─┬─ 5 6 7          the one     tokens, cost, time
//!                     └─ 5' 6'          the other   tokens, cost, time
//! ```

use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, Usage};
use retake_model::id::{TakeId, ThreadId};
use retake_model::list::List;
use retake_model::take::Take;
use retake_timeline::{EntryView, LookError, Looking};
use serde::Serialize;

use crate::provider::known::OFFLINE;
use crate::provider::prices::Prices;

/// Two takes side by side.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// How many entries both begin with.
    pub shared: u64,
    /// The two.
    pub sides: [Side; 2],
}

/// One of two takes, from where they part.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedTake"))]
pub struct Side {
    /// The take.
    pub take: TakeId,
    /// Its name.
    pub name: String,
    /// How many entries it has since.
    pub count: u64,
    /// What was said since.
    pub entries: Vec<EntryView>,
    /// Tokens of all answers since.
    pub usage: Usage,
    /// What they cost, in millionths of a dollar; `None` if the price of one of them is not known.
    pub micro_dollars: Option<u64>,
    /// From the first entry since to the last, in milliseconds.
    pub millis: i64,
    /// Tool calls, and how many of them failed.
    pub calls: Calls,
    /// The models that answered.
    pub models: Vec<String>,
    /// Its files as they were last known.
    pub files: Option<ContentId>,
}

/// How many tools were called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ToolCalls"))]
pub struct Calls {
    /// All.
    pub made: u64,
    /// Those that failed.
    pub failed: u64,
}

/// Puts two takes of a thread side by side.
pub fn compare(
    looking: &Looking<'_>,
    thread: ThreadId,
    takes: [&Take; 2],
    prices: &Prices,
) -> Result<Comparison, LookError> {
    let shared = shared(looking, takes)?;
    let [one, other] = takes;
    let side = |take: &Take| -> Result<Side, LookError> {
        let entries = looking.page(thread, take, shared..take.entries.len())?;
        let files = looking.files_of_take(thread, take.id)?;
        Ok(Side::of(take, entries, files, prices))
    };
    Ok(Comparison { shared, sides: [side(one)?, side(other)?] })
}

/// How many entries both begin with.
fn shared(looking: &Looking<'_>, takes: [&Take; 2]) -> Result<u64, LookError> {
    let [one, other] = takes;
    let differ = List::diff(&looking.queries(), &one.entries, &other.entries)?;
    Ok(differ.first().map_or(one.entries.len(), |first| first.old_start))
}

impl Side {
    fn of(take: &Take, entries: Vec<EntryView>, files: Option<ContentId>, prices: &Prices) -> Self {
        let mut usage = Usage::default();
        let mut micro_dollars = Some(0_u64);
        let mut calls = Calls::default();
        let mut models: Vec<String> = Vec::new();
        for view in &entries {
            let entry = &view.entry;
            count_calls(entry, &mut calls);
            let Some(model) = &entry.model else { continue };
            if !models.contains(model) {
                models.push(model.clone());
            }
            let Some(used) = &entry.usage else {
                // What nobody counted may have cost something, unless nobody was asked.
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

fn count_calls(entry: &EntryVersion, calls: &mut Calls) {
    use retake_model::entry::Block;
    for block in &entry.blocks {
        match block {
            Block::ToolCall { .. } => calls.made += 1,
            Block::ToolResult { failed: true, .. } => calls.failed += 1,
            _ => {}
        }
    }
}
