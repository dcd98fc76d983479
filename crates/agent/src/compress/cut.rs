//! Selects the entries that a summary replaces.

use retake_model::entry::{Block, RoleKind};
use retake_model::id::{EntryId, ThreadId};
use retake_model::take::Take;
use retake_timeline::{EntryView, ReadError, Reader};

use super::{KeepRecent, ROLE};
use crate::turn::TOOL;

/// Entries per read.
const PAGE: u64 = 100;

/// The entries that a summary replaces: the first `end`, except `kept`.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) end: u64,
    pub(super) kept: Vec<EntryId>,
}

impl Cut {
    pub(super) fn find(
        reader: &Reader<'_>,
        thread: ThreadId,
        take: &Take,
        keep: KeepRecent,
    ) -> Result<Self, ReadError> {
        match keep {
            KeepRecent::Entries(count) => Self::by_count(reader, thread, take, count),
            KeepRecent::Tokens(tokens) => Self::by_size(reader, thread, take, tokens),
        }
    }

    /// Cuts before the first user message among the last `count` entries.
    fn by_count(reader: &Reader<'_>, thread: ThreadId, take: &Take, count: u64) -> Result<Self, ReadError> {
        let length = take.entries.len();
        let mut start = length.saturating_sub(count);
        let mut page = reader.entries(thread, take).page(start..length)?;
        // Results stay with the answer that contains their calls.
        while page.first().is_some_and(|view| view.entry.role == TOOL) && start > 0 {
            start -= 1;
            page = reader.entries(thread, take).page(start..length)?;
        }
        let end = page.iter().find(|view| is_user_message(view)).map_or(start, |view| view.number - 1);
        Ok(Self { end, kept: Vec::new() })
    }

    /// Keeps the last entries with about `tokens` tokens, and the last prompt.
    fn by_size(reader: &Reader<'_>, thread: ThreadId, take: &Take, tokens: u64) -> Result<Self, ReadError> {
        let length = take.entries.len();
        // Possible cuts: before a user message, or otherwise before any entry but a result.
        let (mut at_message, mut at_round) = (None, None);
        let (mut size, mut full) = (0, false);
        // User messages since the last final answer: the prompts of the current turn.
        let (mut task, mut task_size, mut task_known) = (Vec::new(), 0, false);
        let mut position = length;
        'walk: while position > 0 {
            let start = position.saturating_sub(PAGE);
            for view in reader.entries(thread, take).page(start..position)?.into_iter().rev() {
                let tokens_here = view.entry.size_in_context() as u64 / 4;
                size += tokens_here;
                full |= size > tokens;
                if !full {
                    at_message = if is_user_message(&view) { Some(view.number - 1) } else { at_message };
                    at_round = if view.entry.role == TOOL { at_round } else { Some(view.number - 1) };
                }
                task_known |= !task.is_empty() && is_final_answer(&view);
                if !task_known && is_user_message(&view) {
                    task_size += tokens_here;
                    // Always keep the last one, which the model has to answer.
                    task_known = task_size > tokens && !task.is_empty();
                    if !task_known {
                        task.push((view.number - 1, view.id));
                    }
                }
                if full && task_known {
                    break 'walk;
                }
            }
            position = start;
        }
        let end = at_message.or(at_round).unwrap_or(length);
        let kept: Vec<EntryId> = task.iter().filter(|(at, _)| *at < end).map(|(_, entry)| *entry).collect();
        // Summarising only a summary saves nothing.
        if end == kept.len() as u64 + 1 {
            let first = reader.entries(thread, take).page(0..end)?;
            if first.iter().any(|view| view.entry.role == ROLE) {
                return Ok(Self { end: 0, kept: Vec::new() });
            }
        }
        Ok(Self { end, kept })
    }
}

fn is_user_message(view: &EntryView) -> bool {
    RoleKind::of(&view.entry.role) == RoleKind::User
}

/// Whether an entry is an answer without tool calls, which ends a turn.
fn is_final_answer(view: &EntryView) -> bool {
    let calls = |block: &Block| matches!(block, Block::ToolCall { .. });
    RoleKind::of(&view.entry.role) == RoleKind::Assistant && !view.entry.blocks.iter().any(calls)
}
