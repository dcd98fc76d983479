//! Reads the settings, roles and presets that apply to a thread. Some of them are shared: see `write/shared.rs`.

use retake_model::id::ThreadId;
use retake_model::settings::Settings;
use retake_model::state::ThreadState;
use retake_store::{SettingScope, SharedSettings};

use crate::write::presets::{ContextPreset, PresetError};
use crate::write::shared::{apply_shared_prompts, shared_roles};
use crate::{ReadError, Reader};

/// Reads the settings, roles and presets that apply to a thread.
#[derive(Clone, Copy)]
pub struct SettingsReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
    pub(crate) thread: ThreadId,
}

impl SettingsReader<'_> {
    /// The settings, including shared ones.
    pub fn effective(&self) -> Result<Settings, ReadError> {
        self.effective_in(&self.reader.state(self.thread)?)
    }

    /// The settings in a state of the thread, including shared ones.
    pub fn effective_in(&self, state: &ThreadState) -> Result<Settings, ReadError> {
        let mut settings = state.own_settings(&self.reader.queries())?;
        apply_shared_prompts(self.reader, self.reader.thread(self.thread)?.home, &mut settings)?;
        Ok(settings)
    }

    /// The roles for entries of the thread.
    pub fn roles(&self) -> Result<Vec<String>, ReadError> {
        match shared_roles(self.reader, self.reader.thread(self.thread)?.home)? {
            Some(roles) => Ok(roles),
            None => Ok(self.reader.state(self.thread)?.roles),
        }
    }

    /// The context presets of the thread's project, sorted by name.
    pub fn presets(&self) -> Result<Vec<ContextPreset>, ReadError> {
        let presets = self.of_project()?.presets.into_iter();
        Ok(presets.map(|(name, items)| ContextPreset { name, items }).collect())
    }

    /// Deleted or replaced context presets of the thread's project, latest first.
    pub fn former_presets(&self) -> Result<Vec<ContextPreset>, ReadError> {
        let former = self.of_project()?.former_presets.into_iter().rev();
        Ok(former.map(|former| ContextPreset { name: former.name, items: former.items }).collect())
    }

    /// One context preset of the thread's project.
    pub fn preset(&self, name: &str) -> Result<ContextPreset, PresetError> {
        let found = self.presets()?.into_iter().find(|preset| preset.name == name);
        found.ok_or_else(|| PresetError::NoSuchPreset(name.to_owned()))
    }

    fn of_project(&self) -> Result<SharedSettings, ReadError> {
        let scope = SettingScope::Project(self.reader.thread(self.thread)?.home);
        Ok(self.reader.shared_settings(scope)?)
    }
}
