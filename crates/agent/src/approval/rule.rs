//! One rule: for which calls, and what is to happen with them.
//!
//! ```toml
//! [[approval.rules]]
//! tool = "shell"
//! command = "cargo *"
//! decision = "allow"
//! ```
//!
//! What a rule leaves out does not matter to it; what it names must all fit. A rule that could never match, or is
//! about a tool that does not exist, is refused when it is read: a denial with a spelling mistake would be none.

use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Decision;
use super::command::{CommandPattern, is_plain};
use crate::tools::{self, Call, Case, PathPattern, Reach, Spot};

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    tool: Option<&'static str>,
    path: Option<PathPattern>,
    command: Option<CommandPattern>,
    decision: Decision,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tool: Option<String>,
    path: Option<String>,
    command: Option<String>,
    decision: Decision,
}

/// Why something written is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// No tool has that name.
    #[error("there is no tool {0:?}; there are: {1}")]
    Tool(String, String),
    /// The pattern cannot be read.
    #[error("{0:?} is not a pattern for paths: {1}")]
    Path(String, String),
    /// A tool that takes no path.
    #[error("`shell` has no path; a command may go anywhere")]
    NoPath,
    /// A tool that takes no command.
    #[error("only `shell` has a command")]
    NoCommand,
    /// An empty pattern.
    #[error("the command is empty")]
    EmptyCommand,
    /// An allowance that could never be given.
    #[error(
        "{0:?} can never be allowed by a rule: commands with ; & | ` $ ( ) < > or line breaks match none. \
         Allow the exact command when you are asked"
    )]
    NeverPlain(String),
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { tool, path, command, decision } = Written::deserialize(deserializer)?;
        Self::new(tool.as_deref(), path.as_deref(), command.as_deref(), decision).map_err(D::Error::custom)
    }
}

impl Rule {
    /// A rule for calls of a tool (or of any), with such a path, or with such a command.
    pub fn new(
        tool: Option<&str>,
        path: Option<&str>,
        command: Option<&str>,
        decision: Decision,
    ) -> Result<Self, BadRule> {
        let tool = tool.filter(|name| *name != "*").map(known_tool).transpose()?;
        let runs = tool.is_some_and(|tool| tool.reach == Reach::Runs);
        if path.is_some() && runs {
            return Err(BadRule::NoPath);
        }
        if command.is_some() && (path.is_some() || (tool.is_some() && !runs)) {
            return Err(BadRule::NoCommand);
        }
        let case = if decision == Decision::Allow { Case::Matters } else { Case::Ignored };
        let path = path
            .map(|text| PathPattern::new(text, case).map_err(|why| BadRule::Path(text.to_owned(), why)))
            .transpose()?;
        if let Some(text) = command {
            if text.trim().is_empty() {
                return Err(BadRule::EmptyCommand);
            }
            if decision == Decision::Allow && !is_plain(text) {
                return Err(BadRule::NeverPlain(text.to_owned()));
            }
        }
        let command = command.map(CommandPattern::new);
        Ok(Self { tool: tool.map(|tool| tool.name), path, command, decision })
    }

    /// What is to happen.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether it is about that call.
    pub(super) fn matches(&self, call: &Call, directory: &Path) -> bool {
        let tool = self.tool.is_none_or(|name| name == call.name);
        let path = self.path.as_ref().is_none_or(|pattern| {
            // A call without a path is about the whole folder; one with a path that leads out is refused later.
            let text = tools::named_path(call).unwrap_or(".");
            let takes_path = tools::find(&call.name).is_some_and(|tool| tool.reach != Reach::Runs);
            takes_path
                && match tools::spot(text, directory) {
                    Ok(Spot::Below(path)) => pattern.covers(&path.bytes()),
                    Ok(Spot::Root) => pattern.covers_everything(),
                    Err(_) => false,
                }
        });
        let command = self.command.as_ref().is_none_or(|pattern| {
            let given = call.input.get("command").and_then(Value::as_str);
            let runs = tools::find(&call.name).is_some_and(|tool| tool.reach == Reach::Runs);
            runs && given.is_some_and(|given| match self.decision {
                Decision::Allow => pattern.admits(given),
                Decision::Ask | Decision::Deny => pattern.catches(given),
            })
        });
        tool && path && command
    }

    /// The paths that it is about, and the tool that they are closed to.
    pub(super) fn closes(&self) -> Option<(Option<&'static str>, PathPattern)> {
        self.path.clone().map(|path| (self.tool, path))
    }
}

fn known_tool(name: &str) -> Result<&'static tools::Tool, BadRule> {
    tools::find(name).ok_or_else(|| {
        let names: Vec<_> = tools::all().iter().map(|tool| tool.name).collect();
        BadRule::Tool(name.to_owned(), names.join(", "))
    })
}
