//! Reset: clears all entries, drafts, settings and files; keeps the thread and its takes.
//!
//! | cleared | kept |
//! |---|---|
//! | the entries of every take | the takes themselves, their names, parents and git commits |
//! | drafts, files, context files, screenshots | title, tags, roles, pin, sharing |
//! | the last sent context | the project, the log, every earlier state |
//! | base prompt, sampling, provider and model | the prompts that threads share: see `timeline/write/shared.rs` |
//!
//! Reset is one operation, so one undo reverts all of it.

use super::{CommandContext, CommandError, CommandOutcome, take_cell};
use crate::id::IdSource;
use crate::list::List;
use crate::object::{Objects, load};
use crate::operation::OperationKind;
use crate::settings::Settings;
use crate::state::ThreadState;
use crate::take::Take;

pub(super) fn reset<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let mut cells = Vec::new();
    for take in state.all_takes(context.additions)? {
        let Take { id, name, created, parent, git_commit, .. } = take;
        let emptied = Take { parent, git_commit, ..Take::empty(id, name, created) };
        let content = context.additions.add(&emptied);
        cells.push(take_cell(&emptied, content));
    }
    let takes = List::from_cells(context.additions, cells);
    let settings: Settings = load(context.additions, state.settings)?;
    let settings = context.additions.add(&settings.after_reset());
    let after = ThreadState { takes, settings, ..state.clone() };
    if after == *state {
        return Ok(CommandOutcome::Unchanged);
    }
    Ok(CommandOutcome::Changed { state: after, kind: OperationKind::Reset })
}
