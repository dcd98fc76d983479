//! Values that users choose by name.
//!
//! Where the core has an enum, it is the only definition: the API parses it with serde, the command line with [`Choice`].

use retake_agent::approval::ApprovalMode;
use retake_model::replay::OnConflict;
use retake_model::settings::Effort;
use retake_model::state::Visibility;
use retake_model::take::FileList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value with a name on the command line.
pub trait Choice: Copy + PartialEq + Send + Sync + 'static {
    /// All values, with names and descriptions.
    const CHOICES: &'static [(Self, &'static str, &'static str)];

    /// The value of this name.
    fn named(name: &str) -> Option<Self> {
        Self::CHOICES.iter().find(|choice| choice.1 == name).map(|choice| choice.0)
    }
}

impl Choice for OnConflict {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Keep, "keep", "Keep the current file"),
        (Self::Take, "take", "Write the version from the history"),
        (Self::Mark, "mark", "Write both versions to the file, with conflict markers"),
    ];
}

impl Choice for Visibility {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Organization, "organization", "All members of the organization"),
        (Self::Private, "private", "Only the owner"),
        (Self::Public, "public", "Anyone with the link"),
    ];
}

impl Choice for FileList {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Files, "files", "The take's files"),
        (Self::ContextFiles, "context", "Files whose content goes into the next request"),
        (Self::Screenshots, "screenshots", "Pictures that go into the next request"),
    ];
}

impl Choice for Effort {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Off, "off", "Not at all, or as little as the model allows"),
        (Self::Low, "low", "A little"),
        (Self::Medium, "medium", "Moderately"),
        (Self::High, "high", "Hard"),
        (Self::Max, "max", "As hard as the model can"),
    ];
}

/// What tools may do without approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Read files; ask before anything else.
    Ask,
    /// Read and write files; ask before running commands.
    Edits,
    /// Run everything without asking.
    All,
    /// Read files only; deny everything else without asking.
    None,
}

impl From<Approve> for ApprovalMode {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask => Self::Ask,
            Approve::Edits => Self::AllowEdits,
            Approve::All => Self::AllowAll,
            Approve::None => Self::Deny,
        }
    }
}

impl Choice for Approve {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Ask, "ask", "Read files; ask before anything else"),
        (Self::Edits, "edits", "Read and write files; ask before running commands"),
        (Self::All, "all", "Run everything without asking"),
        (Self::None, "none", "Read files only; deny everything else without asking"),
    ];
}

/// The format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// Everything, for import.
    #[default]
    Retake,
    /// One take as Markdown.
    Markdown,
    /// One take as JSON.
    Json,
}

impl Choice for ExportFormat {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Retake, "retake", "Everything, for `retake import`"),
        (Self::Markdown, "markdown", "One take as Markdown"),
        (Self::Json, "json", "One take as JSON"),
    ];
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;

    #[test]
    fn names_on_the_command_line_are_those_of_the_api() {
        fn check<T: Choice + Debug + DeserializeOwned>() {
            for (value, name, _) in T::CHOICES {
                assert_eq!(T::named(name), Some(*value));
                assert_eq!(serde_json::from_value::<T>((*name).into()).ok(), Some(*value), "{name}");
            }
        }
        check::<OnConflict>();
        check::<Visibility>();
        check::<Effort>();
        check::<Approve>();
        check::<ExportFormat>();
    }
}
