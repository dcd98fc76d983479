//! The settings of a thread: prompts, sampling, model.

mod effort;
mod stored;

use serde::{Deserialize, Serialize};

pub use effort::Effort;

use crate::content::{Content, Kind};
use crate::limits::TEXT_BYTES;

/// The settings of a thread. A reset restores the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The system prompt of the project.
    pub project_system_prompt: String,
    /// The system prompt of all projects of the user.
    pub global_system_prompt: String,
    /// The base system prompt, used if `use_default_base_prompt` is off.
    pub base_system_prompt: String,
    /// Whether the built-in base prompt is used.
    pub use_default_base_prompt: bool,
    /// Sampling temperature; provider default if unset.
    pub temperature: Option<f64>,
    /// Nucleus sampling; provider default if unset.
    pub top_p: Option<f64>,
    /// Maximum number of output tokens; the limit of the model if unset.
    pub max_tokens: Option<u32>,
    /// Whether an entry before each prompt lists the files changed since the last turn.
    pub auto_add_history: bool,
    /// The provider to use.
    pub provider: Option<String>,
    /// The model to use.
    pub model: Option<String>,
    /// Reasoning effort; model default if unset.
    pub effort: Option<Effort>,
}

/// Names of the settings on the command line, in the API and in the log.
pub const NAMES: [&str; 11] = [
    "project_system_prompt",
    "global_system_prompt",
    "base_system_prompt",
    "use_default_base_prompt",
    "temperature",
    "top_p",
    "max_tokens",
    "auto_add_history",
    "provider",
    "model",
    "effort",
];

/// Reason why a setting is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettingError {
    /// The name is not a setting.
    #[error("there is no setting {0:?}; the settings are {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// The value is not valid for the setting.
    #[error("{name} must be {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The accepted values.
        expected: &'static str,
    },
}

impl Content for Settings {
    const KIND: Kind = Kind::Settings;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            project_system_prompt: String::new(),
            global_system_prompt: String::new(),
            base_system_prompt: String::new(),
            use_default_base_prompt: true,
            temperature: None,
            top_p: None,
            max_tokens: None,
            auto_add_history: false,
            provider: None,
            model: None,
            effort: None,
        }
    }
}

impl Settings {
    /// The value of a setting as text; `None` if the name is not a setting.
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "project_system_prompt" => self.project_system_prompt.clone(),
            "global_system_prompt" => self.global_system_prompt.clone(),
            "base_system_prompt" => self.base_system_prompt.clone(),
            "use_default_base_prompt" => self.use_default_base_prompt.to_string(),
            "temperature" => text(self.temperature),
            "top_p" => text(self.top_p),
            "max_tokens" => text(self.max_tokens),
            "auto_add_history" => self.auto_add_history.to_string(),
            "provider" => self.provider.clone().unwrap_or_default(),
            "model" => self.model.clone().unwrap_or_default(),
            "effort" => text(self.effort),
            _ => return None,
        })
    }

    /// Returns the settings with one of them changed.
    pub fn with(&self, name: &str, value: &str) -> Result<Self, InvalidSettingError> {
        let mut settings = self.clone();
        match name {
            "project_system_prompt" => settings.project_system_prompt = value.to_owned(),
            "global_system_prompt" => settings.global_system_prompt = value.to_owned(),
            "base_system_prompt" => settings.base_system_prompt = value.to_owned(),
            "use_default_base_prompt" => {
                settings.use_default_base_prompt = flag("use_default_base_prompt", value)?;
            }
            "temperature" => settings.temperature = number("temperature", value)?,
            "top_p" => settings.top_p = number("top_p", value)?,
            "max_tokens" => {
                let tokens = optional(value).map(|value| value.parse().map_err(|_| WHOLE_TOKENS));
                settings.max_tokens = tokens.transpose()?;
            }
            "auto_add_history" => settings.auto_add_history = flag("auto_add_history", value)?,
            "provider" => settings.provider = optional(value),
            "model" => settings.model = optional(value),
            "effort" => settings.effort = Effort::parse(value)?,
            _ => return Err(InvalidSettingError::Unknown(name.chars().take(40).collect())),
        }
        settings.checked()
    }

    /// Validates all values.
    pub fn checked(mut self) -> Result<Self, InvalidSettingError> {
        // Minus zero and zero are the same temperature and must have the same content id.
        self.temperature = self.temperature.map(|temperature| temperature + 0.0);
        self.top_p = self.top_p.map(|top_p| top_p + 0.0);
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return Err(InvalidSettingError::Value { name: "temperature", expected: "a number from 0 to 2" });
        }
        if self.top_p.is_some_and(|top_p| !(0.0..=1.0).contains(&top_p)) {
            return Err(InvalidSettingError::Value { name: "top_p", expected: "a number from 0 to 1" });
        }
        if self.max_tokens == Some(0) {
            return Err(WHOLE_TOKENS);
        }
        let prompts = [
            ("project_system_prompt", &self.project_system_prompt),
            ("global_system_prompt", &self.global_system_prompt),
            ("base_system_prompt", &self.base_system_prompt),
        ];
        for (name, prompt) in prompts {
            if prompt.len() > TEXT_BYTES {
                return Err(InvalidSettingError::Value { name, expected: "at most 4 MiB of text" });
            }
        }
        for (name, value) in [("provider", &self.provider), ("model", &self.model)] {
            if value.as_ref().is_some_and(|text| text.len() > 200 || text.chars().any(char::is_control)) {
                return Err(InvalidSettingError::Value { name, expected: "one line of at most 200 bytes" });
            }
        }
        Ok(self)
    }

    /// The settings after a reset of the thread: the defaults, except for prompts shared with other threads.
    #[must_use]
    pub fn after_reset(&self) -> Self {
        Self {
            project_system_prompt: self.project_system_prompt.clone(),
            global_system_prompt: self.global_system_prompt.clone(),
            ..Self::default()
        }
    }

    /// The names of the settings that differ between the two.
    pub fn changed(&self, other: &Self) -> Vec<String> {
        NAMES.iter().filter(|name| self.get(name) != other.get(name)).map(ToString::to_string).collect()
    }
}

const WHOLE_TOKENS: InvalidSettingError =
    InvalidSettingError::Value { name: "max_tokens", expected: "a whole number from 1 to 4294967295" };

fn flag(name: &'static str, value: &str) -> Result<bool, InvalidSettingError> {
    match value.trim() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(InvalidSettingError::Value { name, expected: "on or off" }),
    }
}

/// Parses a number; `None` if the value is blank.
fn number(name: &'static str, value: &str) -> Result<Option<f64>, InvalidSettingError> {
    let parse =
        |value: String| value.parse().map_err(|_| InvalidSettingError::Value { name, expected: "a number" });
    optional(value).map(parse).transpose()
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn optional(value: &str) -> Option<String> {
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{decode, encode};

    #[test]
    fn every_setting_can_be_read_and_set() {
        let values = ["a", "b", "c", "off", "0.7", "0.5", "100", "on", "anthropic", "opus", "max"];
        for (name, value) in NAMES.into_iter().zip(values) {
            let before = Settings::default();
            let after = before.with(name, value).expect("a valid value");
            assert_eq!(before.changed(&after), [name]);
            assert_eq!(decode::<Settings>(&encode(&after)), Ok(after));
        }
    }

    #[test]
    fn value_equal_to_the_default_is_still_explicit() {
        for (name, value) in [("temperature", "0"), ("top_p", "1"), ("max_tokens", "8192")] {
            let default = Settings::default();
            let chosen = default.with(name, value).expect("a valid value");
            assert_eq!(chosen.get(name).as_deref(), Some(value));
            assert_eq!(decode::<Settings>(&encode(&chosen)).as_ref(), Ok(&chosen));
            assert_ne!(encode(&chosen), encode(&default), "{name}");
            assert_eq!(chosen.with(name, " "), Ok(default));
        }
        assert_eq!(Settings::default().with("effort", "default"), Ok(Settings::default()));
    }

    #[test]
    fn invalid_values_are_refused() {
        for (name, value) in [
            ("temperature", "NaN"),
            ("temperature", "-1"),
            ("top_p", "inf"),
            ("max_tokens", "0"),
            ("max_tokens", "1e3"),
            ("auto_add_history", "maybe"),
            ("model", "a\nb"),
            ("effort", "much"),
            ("nonsense", "1"),
        ] {
            assert!(Settings::default().with(name, value).is_err(), "{name}={value}");
        }
    }
}
