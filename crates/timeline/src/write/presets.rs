//! Context presets: named lists of context files of a project.
//!
//! A preset is not part of a thread. Loading one sets the context files of a take, as an operation that can be undone.
//! A deleted or replaced preset can be restored.

use retake_model::command::Command;
use retake_model::id::{TakeId, ThreadId};
use retake_model::name::{InvalidNameError, NameKind, check};
use retake_model::take::{FileItem, FileList};
use retake_store::{SettingScope, StoreError};
use serde::Serialize;

use crate::{Caller, ChangeError, ChangeOutcome, ReadError, Timeline};

/// Maximum number of presets per project.
const MAX_PRESETS: usize = 1_000;

/// A named list of context files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextPreset {
    /// The name.
    pub name: String,
    /// The files, in order.
    pub items: Vec<FileItem>,
}

/// Why a preset operation failed.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// No preset has that name.
    #[error("this project has no context preset {0:?}")]
    NoSuchPreset(String),
    /// No preset of that name was deleted or replaced.
    #[error("no context preset {0:?} of this project was deleted or replaced")]
    NoFormerPreset(String),
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidNameError),
    /// The project has too many presets.
    #[error("a project has at most {MAX_PRESETS} context presets; delete one first")]
    TooMany,
    /// The change was rejected.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Timeline {
    /// Saves a preset for a thread's project. Replaces one of the same name, which can be restored.
    pub fn save_context_preset(
        &self,
        thread: ThreadId,
        name: &str,
        items: Vec<FileItem>,
    ) -> Result<ContextPreset, PresetError> {
        let name = check(NameKind::Preset, name)?;
        let scope = SettingScope::Project(self.read()?.thread(thread)?.home);
        let preset = ContextPreset { name, items };
        self.store().change_shared_settings(scope, |shared| {
            if shared.presets.len() >= MAX_PRESETS && !shared.presets.contains_key(&preset.name) {
                return Err(PresetError::TooMany);
            }
            shared.set_preset(&preset.name, Some(preset.items.clone()));
            Ok(())
        })?;
        Ok(preset)
    }

    /// Deletes a preset. It can be restored; takes into which it was loaded keep their files.
    pub fn delete_context_preset(&self, thread: ThreadId, name: &str) -> Result<ContextPreset, PresetError> {
        let scope = SettingScope::Project(self.read()?.thread(thread)?.home);
        let mut deleted = None;
        self.store().change_shared_settings(scope, |shared| {
            deleted = shared.presets.get(name).cloned();
            shared.set_preset(name, None);
            Ok::<_, PresetError>(())
        })?;
        let items = deleted.ok_or_else(|| PresetError::NoSuchPreset(name.to_owned()))?;
        Ok(ContextPreset { name: name.to_owned(), items })
    }

    /// Restores the latest deleted or replaced preset of that name, replacing the current one.
    pub fn restore_context_preset(&self, thread: ThreadId, name: &str) -> Result<ContextPreset, PresetError> {
        let scope = SettingScope::Project(self.read()?.thread(thread)?.home);
        let mut restored = None;
        self.store().change_shared_settings(scope, |shared| {
            if shared.presets.len() >= MAX_PRESETS && !shared.presets.contains_key(name) {
                return Err(PresetError::TooMany);
            }
            restored = shared.restore_preset(name);
            Ok(())
        })?;
        let items = restored.ok_or_else(|| PresetError::NoFormerPreset(name.to_owned()))?;
        Ok(ContextPreset { name: name.to_owned(), items })
    }

    /// Sets the context files of a take to those of a preset.
    pub fn load_context_preset(
        &self,
        thread: ThreadId,
        take: TakeId,
        name: &str,
        caller: Caller,
    ) -> Result<ChangeOutcome, PresetError> {
        let items = self.read()?.settings(thread).preset(name)?.items;
        let command = Command::SetFiles { take, list: FileList::ContextFiles, items };
        Ok(self.change(thread, command, caller)?)
    }
}
