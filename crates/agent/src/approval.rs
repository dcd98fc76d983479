//! Approval of tool calls: allow, ask, or deny.
//!
//! ```text
//!   rules that match the call        the strictest of them decides: deny before ask before allow
//!   no rule matches                  the mode decides by what the tool can touch
//!   the answer is ask                allowed if this exact call was remembered
//! ```
//!
//! The order of rules does not matter, so that rules from several files can be combined. No rule overrides
//! the mode `deny`, which is read-only.
//!
//! |               | `ask` | `allow-edits` | `allow-all` | `deny` |
//! |---------------|-------|---------------|-------------|--------|
//! | reads         | allow | allow         | allow       | allow  |
//! | writes a file | ask   | allow         | allow       | deny   |
//! | runs          | ask   | ask           | allow       | deny   |
//!
//! This module is pure; remembering calls and asking the user happen elsewhere.

mod command;
mod fingerprint;
mod question;
mod rule;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::tools::{self, Call, DeniedPaths, ToolAccess};

pub use fingerprint::{Fingerprint, fingerprint};
pub use question::{ApprovalQuestion, describe, escape_hidden};
pub use rule::{Rule, RuleError};

/// The decision about a call, in order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ApprovalDecision"))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Run it.
    Allow,
    /// Ask the user.
    Ask,
    /// Refuse it.
    Deny,
}

/// The default for calls that match no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ApprovalMode"))]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Allow reading; ask about everything else.
    #[default]
    Ask,
    /// Also allow writing files.
    AllowEdits,
    /// Allow everything.
    AllowAll,
    /// Allow reading; deny everything else.
    Deny,
}

/// The approval policy: `[approval]` in the configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalPolicy {
    /// For calls that match no rule.
    pub mode: ApprovalMode,
    /// The rules; their order does not matter.
    pub rules: Vec<Rule>,
}

/// Where a call runs.
#[derive(Clone, Copy, Debug)]
pub struct CallSite<'a> {
    /// The path of the project folder.
    pub directory: &'a Path,
    /// A stable name of the project, since remembered calls are valid for one project only.
    pub project: &'a str,
}

/// A decision and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The reason.
    pub because: VerdictReason,
}

/// The reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictReason {
    /// The mode.
    Mode(ApprovalMode),
    /// The rule at this index in the policy.
    Rule(usize),
    /// The user always allows this exact call.
    Remembered,
    /// The tool does not exist.
    UnknownTool,
}

impl ApprovalPolicy {
    /// Decides about a call; `remembered` returns whether the user always allows a call.
    pub fn decide(
        &self,
        call: &Call,
        site: CallSite<'_>,
        remembered: &dyn Fn(&Fingerprint) -> bool,
    ) -> Verdict {
        let Some(tool) = tools::find(&call.name) else {
            return Verdict { decision: Decision::Deny, because: VerdictReason::UnknownTool };
        };
        let by_mode = Verdict {
            decision: self.mode.decision_for(tool.access),
            because: VerdictReason::Mode(self.mode),
        };
        let by_rule = self
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.matches(call, site.directory))
            .map(|(index, rule)| Verdict { decision: rule.decision(), because: VerdictReason::Rule(index) })
            // Of equally strict rules the first, so that the reason is deterministic.
            .min_by_key(|verdict| std::cmp::Reverse(verdict.decision));
        let verdict = match by_rule {
            Some(_) if self.mode == ApprovalMode::Deny && by_mode.decision == Decision::Deny => by_mode,
            Some(by_rule) => by_rule,
            None => by_mode,
        };
        let exactly = || remembered(&fingerprint(call, site.project, tools::VERSION));
        if verdict.decision == Decision::Ask && exactly() {
            return Verdict { decision: Decision::Allow, because: VerdictReason::Remembered };
        }
        verdict
    }

    /// The denied paths, for tools that walk whole folders.
    pub fn denied_paths(&self) -> DeniedPaths {
        let denied = self.rules.iter().filter(|rule| rule.decision() == Decision::Deny);
        DeniedPaths::new(denied.filter_map(Rule::denied_path).collect())
    }
}

impl ApprovalMode {
    pub fn decision_for(self, access: ToolAccess) -> Decision {
        match (self, access) {
            (_, ToolAccess::Reads) | (Self::AllowEdits, ToolAccess::Writes) | (Self::AllowAll, _) => {
                Decision::Allow
            }
            (Self::Deny, _) => Decision::Deny,
            (Self::Ask | Self::AllowEdits, _) => Decision::Ask,
        }
    }
}

#[cfg(test)]
mod tests;
