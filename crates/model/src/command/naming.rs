//! Names for new takes.

use super::{CommandContext, CommandError};
use crate::id::IdSource;
use crate::limits::NAME_CHARS;
use crate::name::{NameKind, base, check};
use crate::object::Objects;
use crate::state::ThreadState;

/// Returns the requested name if it is free; otherwise the next free name, made of the source's base name
/// and a number.
pub(super) fn name_for_take<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    source: &str,
    asked: Option<String>,
    context: &CommandContext<'_, '_, O, F>,
) -> Result<String, CommandError> {
    if let Some(asked) = asked {
        return free_name(&asked, context);
    }
    // The number of takes is usually close to the first free number.
    let mut number = state.takes.len().max(1);
    while number > 1 && !(context.take_named)(&numbered_name(source, number - 1))? {
        number -= 1;
    }
    while (context.take_named)(&numbered_name(source, number))? {
        number += 1;
    }
    Ok(numbered_name(source, number))
}

/// Returns the base name of a take with a number. A long base is shortened to make room for the number.
pub(crate) fn numbered_name(source: &str, number: u64) -> String {
    let end = format!("_take_{number}");
    let room = NAME_CHARS.saturating_sub(end.chars().count());
    let beginning: String = base(source).chars().take(room).collect();
    format!("{beginning}{end}")
}

/// Returns the trimmed name if no take has it.
pub(super) fn free_name<O: Objects + ?Sized, F: IdSource>(
    asked: &str,
    context: &CommandContext<'_, '_, O, F>,
) -> Result<String, CommandError> {
    let name = check(NameKind::Take, asked)?;
    if (context.take_named)(&name)? {
        return Err(CommandError::NameTaken(name));
    }
    Ok(name)
}
