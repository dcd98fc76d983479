//! Commands of a turn: the agent's changes to a take, each together with the agent's new state.
//!
//! A turn belongs to one take, which stores its id ([`crate::agent::Agent::turn`]). Each step names its
//! turn: if that turn was undone or has ended, the command has no effect.

use super::entries::{check_version, store_entries, with_entries};
use super::{
    CommandContext, CommandError, CommandOutcome, Compression, InsertPosition, Prompt, SentContextText,
    TurnAdvance, TurnStart, find_take, takes, thread, with_take,
};
use crate::agent::{Agent, AgentState};
use crate::content::Kind;
use crate::entry::{Block, EntryVersion, RoleKind, default_role};
use crate::id::{EntryId, IdSource, TakeId};
use crate::list::List;
use crate::object::{Objects, load};
use crate::operation::{ForkOrigin, OperationKind, TurnStep};
use crate::state::ThreadState;
use crate::take::{SentContext, Take};

pub(super) fn start<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    start: TurnStart,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if take.agent.as_ref().is_some_and(|agent| agent.state.is_running()) {
        return Err(CommandError::TurnUnfinished);
    }
    begin(state, take, start, None, context)
}

pub(super) fn retry<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    from: TakeId,
    at: EntryId,
    name: Option<String>,
    mut start: TurnStart,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    if start.prompt == Prompt::Original {
        let source = find_take(state, from, context)?;
        let (_, cell) =
            source.entries.find(context.additions, at.bytes())?.ok_or(CommandError::NoSuchEntry)?;
        let message: EntryVersion = load(context.additions, cell.version)?;
        // A retry copies the message into a new entry, so that each can be edited separately.
        start.prompt = Prompt::Entry(EntryVersion { created: context.fresh.now(), ..message }.into());
    }
    let CommandOutcome::Changed { state, kind } = takes::fork(state, from, at, name, context)? else {
        return Err(CommandError::NoSuchEntry);
    };
    let OperationKind::TakeForked { take, name, .. } = kind else { return Err(CommandError::NoSuchTake) };
    // The message is sent again at once, so it does not also stay as the draft.
    let mut take = find_take(&state, take, context)?;
    (take.draft, take.attached) = Default::default();
    begin(&state, take, start, Some(ForkOrigin { from, at, name }), context)
}

fn begin<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    mut take: Take,
    start: TurnStart,
    forked: Option<ForkOrigin>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let TurnStart { turn, context: mut entries, prompt, settings, sent } = start;
    entries.push(match prompt {
        Prompt::Entry(entry) => entry,
        Prompt::Draft { role } => {
            let role = role.as_deref().unwrap_or_else(|| default_role(&state.roles));
            take.take_draft(role, context.fresh.now()).into()
        }
        Prompt::Original => return Err(CommandError::EmptyPrompt),
    });
    check_prompt(&entries.last().expect("the prompt was just added").version)?;
    let state = match thread::set(state, &settings, context)? {
        CommandOutcome::Changed { state, .. } => state,
        CommandOutcome::Unchanged => state.clone(),
    };
    if let Some(SentContextText { markdown, system_prompt }) = sent {
        let mut blob = |text: String| context.additions.add_bytes(Kind::Blob, text.into_bytes());
        take.sent = Some(SentContext { markdown: blob(markdown), system_prompt: blob(system_prompt) });
    }
    take.agent = Agent::unless_idle(turn, AgentState::prompted());
    let (take, added) = with_entries(take, InsertPosition::End, entries, context)?;
    let kind = OperationKind::TurnAdvanced { take: take.id, step: TurnStep::Started { forked }, added };
    Ok(CommandOutcome::Changed { state: with_take(&state, &take, context)?, kind })
}

pub(super) fn advance<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    advance: TurnAdvance,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    // A deleted take has no turn either.
    let take = find_take(state, take, context).map_err(|refusal| match refusal {
        CommandError::NoSuchTake => CommandError::TurnGone,
        other => other,
    })?;
    let TurnAdvance { turn, entries, settings, state: agent_state, step } = advance;
    if take.agent.as_ref().map(|agent| agent.turn) != Some(turn) {
        return Err(CommandError::TurnGone);
    }
    let state = match thread::set(state, &settings, context)? {
        CommandOutcome::Changed { state, .. } => state,
        CommandOutcome::Unchanged => state.clone(),
    };
    let take = Take { agent: Agent::unless_idle(turn, agent_state), ..take };
    let (take, added) = with_entries(take, InsertPosition::End, entries, context)?;
    let kind = OperationKind::TurnAdvanced { take: take.id, step, added };
    Ok(CommandOutcome::Changed { state: with_take(&state, &take, context)?, kind })
}

pub(super) fn compress<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    compression: Compression,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let Compression { turn, seen, end, kept, summary } = compression;
    let take = find_take(state, take, context)?;
    if turn.is_some() && turn != take.agent.as_ref().map(|agent| agent.turn) {
        return Err(CommandError::TurnGone);
    }
    // Replacing an entry that was edited after the summary was written would lose the edit.
    let changes = List::diff(context.additions, &seen, &take.entries)?;
    if end > seen.len() || changes.first().is_some_and(|change| change.old_start < end) {
        return Err(CommandError::SummaryOutdated);
    }
    let mut staying = Vec::with_capacity(kept.len());
    for entry in &kept {
        let found = take.entries.find(context.additions, entry.bytes())?.ok_or(CommandError::NoSuchEntry)?;
        if found.0 < end {
            staying.push(found);
        }
    }
    staying.sort_unstable_by_key(|(position, _)| *position);
    staying.dedup();
    let removed = end - staying.len() as u64;
    if removed == 0 {
        return Err(CommandError::NothingToCompress);
    }
    if !has_content(&summary.version) {
        return Err(CommandError::EmptySummary);
    }
    let cell = store_entries(vec![summary], context)?[0];
    let cells = staying.into_iter().map(|(_, cell)| cell).chain([cell]).collect();
    let entries = take.entries.splice(context.additions, 0..end, cells)?;
    let kind = OperationKind::Compressed { take: take.id, entry: cell.entry, version: cell.version, removed };
    let take = Take { entries, ..take };
    Ok(CommandOutcome::Changed { state: with_take(state, &take, context)?, kind })
}

/// Rejects an entry that cannot start a turn. Callers that prepare a turn check here first.
pub fn check_prompt(prompt: &EntryVersion) -> Result<(), CommandError> {
    if !has_content(prompt) {
        return Err(CommandError::EmptyPrompt);
    }
    if RoleKind::of(&prompt.role) == RoleKind::Assistant {
        return Err(CommandError::AssistantPrompt { role: prompt.role.clone() });
    }
    check_version(prompt)
}

fn has_content(entry: &EntryVersion) -> bool {
    entry.blocks.iter().any(|block| match block {
        Block::Text { text, .. } => !text.trim().is_empty(),
        Block::Image { .. } => true,
        _ => false,
    })
}
