//! How hard a model thinks, in one scale for all providers.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::InvalidSettingError;

/// How hard a model thinks before it answers. Each wire maps it to the fields that its provider has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cbor(index_only)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all, or as little as the model allows.
    #[n(0)]
    Off,
    /// A little.
    #[n(1)]
    Low,
    /// Moderately.
    #[n(2)]
    Medium,
    /// Hard.
    #[n(3)]
    High,
    /// As hard as the model can.
    #[n(4)]
    Max,
}

impl Effort {
    /// Every level, the lowest first.
    pub const ALL: [Self; 5] = [Self::Off, Self::Low, Self::Medium, Self::High, Self::Max];

    /// Its name in settings, configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    /// The level of that name; nothing for `default` and for a blank text, which leave it to the model.
    pub fn parse(name: &str) -> Result<Option<Self>, InvalidSettingError> {
        let name = name.trim();
        if name.is_empty() || name == "default" {
            return Ok(None);
        }
        let found = Self::ALL.into_iter().find(|effort| effort.name() == name);
        let expected = "off, low, medium, high, max or default";
        found.map(Some).ok_or(InvalidSettingError::Value { name: "effort", expected })
    }

    /// The level that a number of thinking tokens stands for.
    pub fn of_budget(tokens: u32) -> Self {
        match tokens {
            0 => Self::Off,
            1..4_096 => Self::Low,
            4_096..16_384 => Self::Medium,
            _ => Self::High,
        }
    }

    /// How many tokens a model may think for, where a provider wants a number.
    pub fn budget(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Low => 4_096,
            Self::Medium => 12_288,
            Self::High => 24_576,
            Self::Max => 49_152,
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
