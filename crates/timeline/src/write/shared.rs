//! Shared prompts and roles.
//!
//! The global prompt applies to all projects; the project prompt and the roles apply to all threads of a project. Each is
//! set in some thread, as an operation that can be undone there:
//!
//! ```text
//!   thread A sets "x"       record: A "x"                 A's state has "x"               ─► "x"
//!   thread B sets "y"       record: A "x", B "y"          B's state has "y"               ─► "y"
//!   B undoes                the same record               B's state has "" again: A       ─► "x"
//!   B redoes                the same record               B's state has "y"               ─► "y"
//! ```
//!
//! The record (`store/tables/shared_settings.rs`) lists which thread set which value. The latest value that its thread's own state
//! still has is effective. The record is written before the operation: without its operation it has no effect.
//!
//! A value that was set before records existed belongs to its thread alone, until one is set.

use retake_model::command::{Command, Prompt, TurnStart, checked_roles};
use retake_model::entry::default_role;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::settings::Settings;
use retake_store::{SettingScope, SharedValue, ThreadRow};

use crate::{ChangeError, ReadError, Reader, Timeline};

/// The roles, as name of a shared setting.
const ROLES: &str = "roles";
const GLOBAL_PROMPT: &str = "global_system_prompt";
const PROJECT_PROMPT: &str = "project_system_prompt";

/// The roles that the threads of a project share; `None` if no thread has set them.
pub(crate) fn shared_roles(
    reader: &Reader<'_>,
    project: ProjectId,
) -> Result<Option<Vec<String>>, ReadError> {
    let roles = shared_value(reader, SettingScope::Project(project), ROLES)?;
    Ok(roles.map(|roles| roles.lines().map(str::to_owned).collect()))
}

/// Replaces the prompts in the settings of a thread by the shared ones.
pub(crate) fn apply_shared_prompts(
    reader: &Reader<'_>,
    project: ProjectId,
    settings: &mut Settings,
) -> Result<(), ReadError> {
    if let Some(prompt) = shared_value(reader, SettingScope::Global, GLOBAL_PROMPT)? {
        settings.global_system_prompt = prompt;
    }
    if let Some(prompt) = shared_value(reader, SettingScope::Project(project), PROJECT_PROMPT)? {
        settings.project_system_prompt = prompt;
    }
    Ok(())
}

/// The value of a shared setting; `None` if no thread has set it or all have undone it.
fn shared_value(reader: &Reader<'_>, scope: SettingScope, name: &str) -> Result<Option<String>, ReadError> {
    let shared = reader.shared_settings(scope)?;
    for set in shared.values.get(name).into_iter().flatten().rev() {
        match value_in(reader, set.thread, name)? {
            Some(now) if now != set.value => {}
            // Also if the thread was purged: the value that it set for others stays.
            _ => return Ok(Some(set.value.clone())),
        }
    }
    Ok(None)
}

/// The value in the state of a thread; `None` if the thread does not exist.
fn value_in(reader: &Reader<'_>, thread: ThreadId, name: &str) -> Result<Option<String>, ReadError> {
    if reader.queries().thread(thread)?.is_none() {
        return Ok(None);
    }
    let state = reader.state(thread)?;
    if name == ROLES {
        return Ok(Some(state.roles.join("\n")));
    }
    Ok(state.own_settings(&reader.queries())?.get(name))
}

/// The shared settings of a command: scope, name and value.
fn shared_by(command: &Command, row: &ThreadRow) -> Vec<(SettingScope, &'static str, String)> {
    let home = SettingScope::Project(row.home);
    match command {
        Command::SetRoles { roles } => match checked_roles(roles) {
            Ok(roles) => vec![(home, ROLES, roles.join("\n"))],
            // The command is rejected later.
            Err(_) => Vec::new(),
        },
        Command::Set { values } => values
            .iter()
            .filter_map(|(name, value)| match name.as_str() {
                GLOBAL_PROMPT => Some((SettingScope::Global, GLOBAL_PROMPT, value.clone())),
                PROJECT_PROMPT => Some((home, PROJECT_PROMPT, value.clone())),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// A recorded shared setting.
pub(crate) struct SharedSettingChange {
    scope: SettingScope,
    name: &'static str,
    set: SharedValue,
}

impl Timeline {
    /// Completes a command that sends a draft with the role from the thread's project.
    pub(crate) fn with_shared_role(
        &self,
        thread: ThreadId,
        mut command: Command,
    ) -> Result<Command, ChangeError> {
        let (Command::SendDraft { role, .. }
        | Command::StartTurn { start: TurnStart { prompt: Prompt::Draft { role }, .. }, .. }) = &mut command
        else {
            return Ok(command);
        };
        if role.is_none() {
            *role = Some(default_role(&self.read()?.settings(thread).roles()?).to_owned());
        }
        Ok(command)
    }

    /// Records the shared settings of a command, before its operation is published.
    pub(crate) fn record_shared(
        &self,
        thread: ThreadId,
        command: &Command,
    ) -> Result<Vec<SharedSettingChange>, ChangeError> {
        let mut recorded = Vec::new();
        if !matches!(command, Command::Set { .. } | Command::SetRoles { .. }) {
            return Ok(recorded);
        }
        let reader = self.read()?;
        let Some(row) = reader.queries().thread(thread)? else { return Ok(recorded) };
        for (scope, name, value) in shared_by(command, &row) {
            let set = SharedValue { thread, value };
            self.store().change_shared_settings::<ChangeError>(scope, |shared| {
                shared.push(name, set.clone());
                Ok(())
            })?;
            recorded.push(SharedSettingChange { scope, name, set });
        }
        Ok(recorded)
    }

    /// Reverts the records of a rejected command.
    pub(crate) fn revert_shared(&self, recorded: Vec<SharedSettingChange>) -> Result<(), ChangeError> {
        for SharedSettingChange { scope, name, set } in recorded {
            self.store().change_shared_settings::<ChangeError>(scope, |shared| {
                if let Some(values) = shared.values.get_mut(name)
                    && let Some(at) = values.iter().rposition(|known| *known == set)
                {
                    values.remove(at);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
