//! Compares takes: shared entries, later turns beside each other, and their cost.
//!
//! ```text
//!   shared   1 2 3 4 ─┬─ prompt: 5 6   prompt: 7 8      first take    tokens, cost, time
//!                     ├─ prompt: 5' 6'                  second take   tokens, cost, time
//!                     └─ prompt: 5" 6"  prompt: 7"       third take    tokens, cost, time
//! ```

mod align;

use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, RoleKind, Usage};
use retake_model::id::{TakeId, ThreadId};
use retake_model::list::List;
use retake_model::take::Take;
use retake_timeline::{EntryView, ReadError, Reader};
use serde::Serialize;

use crate::provider::known::OFFLINE;
use crate::provider::prices::Prices;

/// The most takes to compare at once.
pub const MAX_COMPARED_TAKES: usize = 8;

/// A comparison of two or more takes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Number of entries that all takes start with.
    pub shared: u64,
    /// The takes, in the order in which they were named.
    pub takes: Vec<ComparedTake>,
    /// Their own turns, aligned: turns with the same prompt are together.
    pub turns: Vec<AlignedTurn>,
}

/// Turns of the compared takes that belong beside each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlignedTurn {
    /// Whether all takes that have this turn have the same prompt.
    pub same_prompt: bool,
    /// Whether all takes have this turn, with the same prompt and the same answer.
    pub same_answer: bool,
    /// The entries of each take, in the order of `takes`; null for a take without this turn.
    pub entries: Vec<Option<EntryRange>>,
}

/// Consecutive entries of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntryRange {
    /// The number of the first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// How many of them are the prompt, with its context.
    pub prompt: u64,
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

/// Compares takes of a thread.
pub fn compare(
    reader: &Reader<'_>,
    thread: ThreadId,
    takes: &[&Take],
    prices: &Prices,
) -> Result<Comparison, ReadError> {
    let shared = shared(reader, takes)?;
    let compared = takes.iter().map(|take| -> Result<ComparedTake, ReadError> {
        let entries = reader.entries(thread, take).page(shared..take.entries.len())?;
        let files = reader.files(thread).of_take(take.id)?;
        Ok(ComparedTake::of(take, entries, files, prices))
    });
    let takes = compared.collect::<Result<Vec<_>, _>>()?;
    Ok(Comparison { shared, turns: aligned_turns(&takes), takes })
}

/// The number of entries that all takes start with.
fn shared(reader: &Reader<'_>, takes: &[&Take]) -> Result<u64, ReadError> {
    let Some((first, others)) = takes.split_first() else { return Ok(0) };
    let mut shared = first.entries.len();
    for other in others {
        let differ = List::diff(&reader.queries(), &first.entries, &other.entries)?;
        shared = shared.min(differ.first().map_or(first.entries.len(), |first| first.old_start));
    }
    Ok(shared)
}

fn aligned_turns(takes: &[ComparedTake]) -> Vec<AlignedTurn> {
    let turns: Vec<Vec<&[EntryView]>> = takes.iter().map(|take| turns(&take.entries).collect()).collect();
    let texts: Vec<Vec<String>> =
        turns.iter().map(|turns| turns.iter().map(|turn| prompt_text(turn)).collect()).collect();
    let prompts: Vec<Vec<&str>> =
        texts.iter().map(|texts| texts.iter().map(String::as_str).collect()).collect();
    let aligned = |row: align::Row| -> AlignedTurn {
        let found = row.iter().enumerate().filter_map(|(take, turn)| Some((take, (*turn)?)));
        let found: Vec<(&str, &[EntryView])> =
            found.map(|(take, turn)| (prompts[take][turn], turns[take][turn])).collect();
        let same_prompt = found.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let is_same = |one: &[EntryView], other: &[EntryView]| {
            let answer = |turn: &[EntryView]| prompt_length(turn)..turn.len();
            let (one, other) = (&one[answer(one)], &other[answer(other)]);
            one.iter().map(|view| &view.entry.blocks).eq(other.iter().map(|view| &view.entry.blocks))
        };
        let same_answer = same_prompt
            && found.len() == takes.len()
            && found.windows(2).all(|pair| is_same(pair[0].1, pair[1].1));
        let range = |(take, turn): (usize, &Option<usize>)| {
            let turn = turns[take][(*turn)?];
            let prompt = prompt_length(turn) as u64;
            Some(EntryRange { first: turn.first()?.number, count: turn.len() as u64, prompt })
        };
        AlignedTurn { same_prompt, same_answer, entries: row.iter().enumerate().map(range).collect() }
    };
    align::align(&prompts).into_iter().map(aligned).collect()
}

/// Splits entries before each prompt, so that every part is a prompt, with the context entry before it, and its answer.
pub fn turns(entries: &[EntryView]) -> impl Iterator<Item = &[EntryView]> {
    entries.chunk_by(|view, next| !(is_context(next) || is_prompt(next) && !is_context(view)))
}

fn is_prompt(view: &EntryView) -> bool {
    RoleKind::of(&view.entry.role) == RoleKind::User
}

fn is_context(view: &EntryView) -> bool {
    view.entry.role == "Context"
}

/// How many entries at the start of a turn are its prompt.
fn prompt_length(turn: &[EntryView]) -> usize {
    turn.iter().take_while(|view| is_context(view) || is_prompt(view)).count()
}

fn prompt_text(turn: &[EntryView]) -> String {
    turn.iter().filter(|view| is_prompt(view)).map(|view| view.entry.text()).collect::<Vec<_>>().join("\n")
}

impl Comparison {
    /// The entries of a take in an aligned turn: those of the prompt, and those of the answer.
    pub fn entries(&self, turn: &AlignedTurn, take: usize) -> Option<(&[EntryView], &[EntryView])> {
        let range = turn.entries.get(take).copied().flatten()?;
        let entries = &self.takes.get(take)?.entries;
        let first = usize::try_from(range.first.checked_sub(self.shared + 1)?).ok()?;
        let end = first.checked_add(usize::try_from(range.count).ok()?)?;
        entries.get(first..end)?.split_at_checked(usize::try_from(range.prompt).ok()?)
    }
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
