//! Whether a call may be carried out: allowed, asked about, or denied.
//!
//! ```text
//!   rules that match the call        the strictest of them decides: deny before ask before allow
//!   no rule matches                  the mode decides by what the tool can touch
//!   the answer is ask                allowed if this exact call was remembered
//! ```
//!
//! The order of rules does not matter, so that rules from several files can be put together without anyone having
//! to think about which comes last. The mode `deny` is the one thing that no rule lifts: it is for reading only.
//!
//! |               | `ask` | `allow-edits` | `allow-all` | `deny` |
//! |---------------|-------|---------------|-------------|--------|
//! | looks         | allow | allow         | allow       | allow  |
//! | writes a file | ask   | allow         | allow       | deny   |
//! | runs          | ask   | ask           | allow       | deny   |
//!
//! All of this is pure: who remembers, and who is asked, is elsewhere.

mod command;
mod fingerprint;
mod question;
mod rule;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::tools::{self, Call, Closed, Reach};

pub use fingerprint::{Fingerprint, fingerprint};
pub use question::{Question, describe, visible};
pub use rule::{BadRule, Rule};

/// What is to happen with a call. In the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ApprovalDecision"))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It is carried out.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// What happens where no rule says anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ApprovalMode"))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Looking is allowed, everything else is asked about.
    #[default]
    Ask,
    /// Files may be written too.
    AllowEdits,
    /// Everything is allowed.
    AllowAll,
    /// Looking is allowed, and nothing else.
    Deny,
}

/// What the user has decided beforehand: `[approval]` in the configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Where no rule says anything.
    pub mode: Mode,
    /// The rules; their order does not matter.
    pub rules: Vec<Rule>,
}

/// Where a call is to be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The path of the project folder.
    pub directory: &'a Path,
    /// The project, by a name that does not change: what was remembered for one does not hold for another.
    pub project: &'a str,
}

/// What was decided, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What is to happen.
    pub decision: Decision,
    /// What decided it.
    pub because: Because,
}

/// What decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The mode.
    Mode(Mode),
    /// The rule with that position in the policy.
    Rule(usize),
    /// This exact call was allowed before, for good.
    Remembered,
    /// There is no such tool.
    UnknownTool,
}

impl Policy {
    /// Decides about a call; `remembered` says whether a call was allowed for good.
    pub fn decide(
        &self,
        call: &Call,
        place: Place<'_>,
        remembered: &dyn Fn(&Fingerprint) -> bool,
    ) -> Verdict {
        let Some(tool) = tools::find(&call.name) else {
            return Verdict { decision: Decision::Deny, because: Because::UnknownTool };
        };
        let by_mode = Verdict { decision: self.mode.decides(tool.reach), because: Because::Mode(self.mode) };
        let by_rule = self
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.matches(call, place.directory))
            .map(|(index, rule)| Verdict { decision: rule.decision(), because: Because::Rule(index) })
            // Of equals the first, so that what is told to a person does not depend on chance.
            .min_by_key(|verdict| std::cmp::Reverse(verdict.decision));
        let verdict = match by_rule {
            Some(_) if self.mode == Mode::Deny && by_mode.decision == Decision::Deny => by_mode,
            Some(by_rule) => by_rule,
            None => by_mode,
        };
        let exactly = || remembered(&fingerprint(call, place.project, tools::VERSION));
        if verdict.decision == Decision::Ask && exactly() {
            return Verdict { decision: Decision::Allow, because: Because::Remembered };
        }
        verdict
    }

    /// The paths that rules deny, for the room: what goes through whole folders must not show them either.
    pub fn closed(&self) -> Closed {
        let denied = self.rules.iter().filter(|rule| rule.decision() == Decision::Deny);
        Closed::new(denied.filter_map(Rule::closes).collect())
    }
}

impl Mode {
    /// What it decides about a tool.
    pub fn decides(self, reach: Reach) -> Decision {
        match (self, reach) {
            (_, Reach::Reads) | (Self::AllowEdits, Reach::Writes) | (Self::AllowAll, _) => Decision::Allow,
            (Self::Deny, _) => Decision::Deny,
            (Self::Ask | Self::AllowEdits, _) => Decision::Ask,
        }
    }
}

#[cfg(test)]
mod tests;
