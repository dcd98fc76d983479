//! Approval rules: which calls they match, and the decision.
//!
//! ```toml
//! [[approval.rules]]
//! tool = "shell"
//! command = "cargo *"
//! decision = "allow"
//! ```
//!
//! All given fields must match. A rule that can never match or names an unknown tool is an error, because a denial with
//! a typo would not protect.

use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Decision;
use super::command::{CommandPattern, is_plain};
use crate::tools::{self, Call, CaseSensitivity, PathPattern, ToolAccess, ToolPath};

/// An approval rule.
#[derive(Clone, Debug)]
pub struct Rule {
    tool: Option<&'static str>,
    path: Option<PathPattern>,
    command: Option<CommandPattern>,
    decision: Decision,
}

/// A rule in the configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    tool: Option<String>,
    path: Option<String>,
    command: Option<String>,
    decision: Decision,
}

/// Why a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The tool does not exist.
    #[error("unknown tool {0:?}; available: {1}")]
    Tool(String, String),
    /// The path pattern is invalid.
    #[error("invalid path pattern {0:?}: {1}")]
    Path(String, String),
    /// The tool has no path.
    #[error("`shell` has no path; a command can access any path")]
    NoPath,
    /// The tool has no command.
    #[error("only `shell` has a command")]
    NoCommand,
    /// An empty pattern.
    #[error("the command is empty")]
    EmptyCommand,
    /// The command can never be allowed.
    #[error(
        "{0:?} can never be allowed by a rule: commands with ; & | ` $ ( ) < > or line breaks match none. \
         Allow the exact command when you are asked"
    )]
    NeverPlain(String),
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawRule { tool, path, command, decision } = RawRule::deserialize(deserializer)?;
        Self::new(tool.as_deref(), path.as_deref(), command.as_deref(), decision).map_err(D::Error::custom)
    }
}

impl Rule {
    /// A rule for calls of a tool (or of any tool) with a path or a command.
    pub fn new(
        tool: Option<&str>,
        path: Option<&str>,
        command: Option<&str>,
        decision: Decision,
    ) -> Result<Self, RuleError> {
        let tool = tool.filter(|name| *name != "*").map(known_tool).transpose()?;
        let runs = tool.is_some_and(|tool| tool.access == ToolAccess::Runs);
        if path.is_some() && runs {
            return Err(RuleError::NoPath);
        }
        if command.is_some() && (path.is_some() || (tool.is_some() && !runs)) {
            return Err(RuleError::NoCommand);
        }
        let case =
            if decision == Decision::Allow { CaseSensitivity::Matters } else { CaseSensitivity::Ignored };
        let path = path
            .map(|text| PathPattern::new(text, case).map_err(|why| RuleError::Path(text.to_owned(), why)))
            .transpose()?;
        if let Some(text) = command {
            if text.trim().is_empty() {
                return Err(RuleError::EmptyCommand);
            }
            if decision == Decision::Allow && !is_plain(text) {
                return Err(RuleError::NeverPlain(text.to_owned()));
            }
        }
        let command = command.map(CommandPattern::new);
        Ok(Self { tool: tool.map(|tool| tool.name), path, command, decision })
    }

    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether it matches a call.
    pub(super) fn matches(&self, call: &Call, directory: &Path) -> bool {
        let tool = self.tool.is_none_or(|name| name == call.name);
        let path = self.path.as_ref().is_none_or(|pattern| {
            // A call without a path refers to the whole folder; a path that leads out is refused later.
            let text = tools::named_path(call).unwrap_or(".");
            let takes_path = tools::find(&call.name).is_some_and(|tool| tool.access != ToolAccess::Runs);
            takes_path
                && match tools::tool_path(text, directory) {
                    Ok(ToolPath::Below(path)) => pattern.covers(&path.bytes()),
                    Ok(ToolPath::Root) => pattern.covers_everything(),
                    Err(_) => false,
                }
        });
        let command = self.command.as_ref().is_none_or(|pattern| {
            let given = call.input.get("command").and_then(Value::as_str);
            let runs = tools::find(&call.name).is_some_and(|tool| tool.access == ToolAccess::Runs);
            runs && given.is_some_and(|given| match self.decision {
                Decision::Allow => pattern.allows(given),
                Decision::Ask | Decision::Deny => pattern.denies(given),
            })
        });
        tool && path && command
    }

    /// The paths that it denies, and the tool, if it is for one.
    pub(super) fn denied_path(&self) -> Option<(Option<&'static str>, PathPattern)> {
        self.path.clone().map(|path| (self.tool, path))
    }
}

fn known_tool(name: &str) -> Result<&'static tools::Tool, RuleError> {
    tools::find(name).ok_or_else(|| {
        let names: Vec<_> = tools::all().iter().map(|tool| tool.name).collect();
        RuleError::Tool(name.to_owned(), names.join(", "))
    })
}
