//! Context presets: lists of context files that a project keeps by name.
//!
//! A preset is no part of a thread. Loading one sets a take's context files, as an operation that an undo takes back. One that is
//! deleted or replaced can be restored.

use retake_model::command::Command;
use retake_model::id::{TakeId, ThreadId};
use retake_model::name::{BadName, Naming, check};
use retake_model::take::{FileItem, FileList};
use retake_store::{SettingScope, StoreError};
use serde::Serialize;

use crate::{Caller, ChangeError, Done, LookError, Looking, Timeline};

/// More presets are refused.
const MOST_PRESETS: usize = 1_000;

/// A list of context files with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextPreset {
    /// Its name.
    pub name: String,
    /// The files, in order.
    pub items: Vec<FileItem>,
}

/// Why nothing was done with a preset.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// There is none of that name.
    #[error("there is no context preset {0:?} in this project")]
    NoSuchPreset(String),
    /// None of that name was deleted or replaced.
    #[error("no context preset {0:?} of this project was deleted or replaced")]
    NoFormerPreset(String),
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// There are too many.
    #[error("a project has at most {MOST_PRESETS} context presets; delete one first")]
    TooMany,
    /// The change was refused.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// It could not be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Looking<'_> {
    /// The presets of a thread's project, by name.
    pub fn context_presets(&self, thread: ThreadId) -> Result<Vec<ContextPreset>, LookError> {
        let scope = SettingScope::Project(self.thread(thread)?.home);
        let shared = self.store().shared_settings(scope)?;
        Ok(shared.presets.into_iter().map(|(name, items)| ContextPreset { name, items }).collect())
    }

    /// The presets of a thread's project that were deleted or replaced, the latest first.
    pub fn former_context_presets(&self, thread: ThreadId) -> Result<Vec<ContextPreset>, LookError> {
        let scope = SettingScope::Project(self.thread(thread)?.home);
        let former = self.store().shared_settings(scope)?.former_presets.into_iter().rev();
        Ok(former.map(|former| ContextPreset { name: former.name, items: former.items }).collect())
    }

    /// One preset of a thread's project.
    pub fn context_preset(&self, thread: ThreadId, name: &str) -> Result<ContextPreset, PresetError> {
        let all = self.context_presets(thread)?;
        let found = all.into_iter().find(|preset| preset.name == name);
        found.ok_or_else(|| PresetError::NoSuchPreset(name.to_owned()))
    }
}

impl Timeline {
    /// Saves a list of context files for a thread's project, in the place of one of that name, which can be restored.
    pub fn save_context_preset(
        &self,
        thread: ThreadId,
        name: &str,
        items: Vec<FileItem>,
    ) -> Result<ContextPreset, PresetError> {
        let name = check(Naming::Preset, name)?;
        let scope = SettingScope::Project(self.look()?.thread(thread)?.home);
        let preset = ContextPreset { name, items };
        self.store().change_shared_settings(scope, |shared| {
            if shared.presets.len() >= MOST_PRESETS && !shared.presets.contains_key(&preset.name) {
                return Err(PresetError::TooMany);
            }
            shared.set_preset(&preset.name, Some(preset.items.clone()));
            Ok(())
        })?;
        Ok(preset)
    }

    /// Deletes a preset of a thread's project. It can be restored; takes that it was loaded into keep their files.
    pub fn delete_context_preset(&self, thread: ThreadId, name: &str) -> Result<ContextPreset, PresetError> {
        let scope = SettingScope::Project(self.look()?.thread(thread)?.home);
        let mut deleted = None;
        self.store().change_shared_settings(scope, |shared| {
            deleted = shared.presets.get(name).cloned();
            shared.set_preset(name, None);
            Ok::<_, PresetError>(())
        })?;
        let items = deleted.ok_or_else(|| PresetError::NoSuchPreset(name.to_owned()))?;
        Ok(ContextPreset { name: name.to_owned(), items })
    }

    /// Brings back the latest preset of that name that was deleted or replaced, in the place of the present one.
    pub fn restore_context_preset(&self, thread: ThreadId, name: &str) -> Result<ContextPreset, PresetError> {
        let scope = SettingScope::Project(self.look()?.thread(thread)?.home);
        let mut restored = None;
        self.store().change_shared_settings(scope, |shared| {
            if shared.presets.len() >= MOST_PRESETS && !shared.presets.contains_key(name) {
                return Err(PresetError::TooMany);
            }
            restored = shared.restore_preset(name);
            Ok(())
        })?;
        let items = restored.ok_or_else(|| PresetError::NoFormerPreset(name.to_owned()))?;
        Ok(ContextPreset { name: name.to_owned(), items })
    }

    /// Makes the files of a preset the context files of a take.
    pub fn load_context_preset(
        &self,
        thread: ThreadId,
        take: TakeId,
        name: &str,
        caller: Caller,
    ) -> Result<Done, PresetError> {
        let items = self.look()?.context_preset(thread, name)?.items;
        let command = Command::SetFiles { take, list: FileList::ContextFiles, items };
        Ok(self.change(thread, command, caller)?)
    }
}
