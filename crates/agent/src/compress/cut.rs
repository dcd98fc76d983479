//! Which entries a summary stands for.

use retake_model::entry::{Block, RoleKind};
use retake_model::id::{EntryId, ThreadId};
use retake_model::take::Take;
use retake_timeline::{EntryView, LookError, Looking};

use super::{Keep, ROLE};
use crate::turn::TOOL;

/// How many entries are read at a time.
const PAGE: u64 = 100;

/// The entries that a summary stands for: the first `end`, but for those that are kept.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) end: u64,
    pub(super) kept: Vec<EntryId>,
}

impl Cut {
    pub(super) fn find(
        looking: &Looking<'_>,
        thread: ThreadId,
        take: &Take,
        keep: Keep,
    ) -> Result<Self, LookError> {
        match keep {
            Keep::Entries(count) => Self::by_count(looking, thread, take, count),
            Keep::Tokens(tokens) => Self::by_size(looking, thread, take, tokens),
        }
    }

    /// Before the first message of the user's among about the last so many entries.
    fn by_count(looking: &Looking<'_>, thread: ThreadId, take: &Take, count: u64) -> Result<Self, LookError> {
        let length = take.entries.len();
        let mut start = length.saturating_sub(count);
        let mut page = looking.page(thread, take, start..length)?;
        // Results stay with the answer that made their calls.
        while page.first().is_some_and(|view| view.entry.role == TOOL) && start > 0 {
            start -= 1;
            page = looking.page(thread, take, start..length)?;
        }
        let end = page.iter().find(|view| is_users(view)).map_or(start, |view| view.number - 1);
        Ok(Self { end, kept: Vec::new() })
    }

    /// Before as many of the last entries as have so many tokens. What the user asked for last stays too.
    fn by_size(looking: &Looking<'_>, thread: ThreadId, take: &Take, tokens: u64) -> Result<Self, LookError> {
        let length = take.entries.len();
        // Positions at which the kept entries can begin: at a message of the user's, or else at any but a result.
        let (mut at_message, mut at_round) = (None, None);
        let (mut size, mut full) = (0, false);
        // Messages of the user's since the last answer without calls: they are what the turn is about.
        let (mut task, mut task_size, mut task_known) = (Vec::new(), 0, false);
        let mut position = length;
        'walk: while position > 0 {
            let start = position.saturating_sub(PAGE);
            for view in looking.page(thread, take, start..position)?.into_iter().rev() {
                let tokens_here = view.entry.size() as u64 / 4;
                size += tokens_here;
                full |= size > tokens;
                if !full {
                    at_message = if is_users(&view) { Some(view.number - 1) } else { at_message };
                    at_round = if view.entry.role == TOOL { at_round } else { Some(view.number - 1) };
                }
                task_known |= !task.is_empty() && is_final_answer(&view);
                if !task_known && is_users(&view) {
                    task_size += tokens_here;
                    // The last one stays in any case: it is what the model is to answer.
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
        // A summary of nothing but a summary makes nothing shorter.
        if end == kept.len() as u64 + 1 {
            let first = looking.page(thread, take, 0..end)?;
            if first.iter().any(|view| view.entry.role == ROLE) {
                return Ok(Self { end: 0, kept: Vec::new() });
            }
        }
        Ok(Self { end, kept })
    }
}

fn is_users(view: &EntryView) -> bool {
    RoleKind::of(&view.entry.role) == RoleKind::User
}

/// Whether an entry ended a turn, as far as it can be told.
fn is_final_answer(view: &EntryView) -> bool {
    let calls = |block: &Block| matches!(block, Block::ToolCall { .. });
    RoleKind::of(&view.entry.role) == RoleKind::Assistant && !view.entry.blocks.iter().any(calls)
}
