//! Fingerprints of exact calls, to remember decisions.

use std::fmt;
use std::str::FromStr;

use retake_model::content::{ContentId, InvalidContentIdError};
use serde::{Deserialize, Serialize};

use crate::tools::Call;

/// Identifies an exact call in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Fingerprint(ContentId);

impl Fingerprint {
    pub fn bytes(&self) -> &[u8; 32] {
        self.0.bytes()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidContentIdError;

    fn from_str(text: &str) -> Result<Self, InvalidContentIdError> {
        text.parse().map(Self)
    }
}

/// The fingerprint of a call in a project, for a version of the tools.
pub fn fingerprint(call: &Call, project: &str, version: u32) -> Fingerprint {
    Fingerprint(retake_model::approval::fingerprint(&call.name, &call.input, project, version))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(name: &str, input: &Value) -> Fingerprint {
        fingerprint(&Call { id: "7".into(), name: name.into(), input: input.clone() }, "project", 1)
    }

    #[test]
    fn fingerprints_identify_exact_calls() {
        let input = json!({"command": "cargo test", "timeout": 5});
        let call = |id: &str| Call { id: id.into(), name: "shell".into(), input: input.clone() };
        let name = fingerprint(&call("1"), "project", 1);
        assert_eq!(name, fingerprint(&call("2"), "project", 1));
        let turned: Value =
            serde_json::from_str("{ \"timeout\" : 5, \"command\":\"cargo\\u0020test\" }").expect("JSON");
        assert_eq!(name, of("shell", &turned));
        assert_eq!(name.to_string().parse(), Ok(name));

        let others = [
            fingerprint(&call("1"), "other", 1),
            fingerprint(&call("1"), "project", 2),
            of("write", &input),
            of("shell", &json!({"command": "cargo test"})),
            of("shell", &json!({"command": "cargo test ", "timeout": 5})),
            of("shell", &json!({"command": "cargo test", "timeout": "5"})),
            of("shell", &json!({"command": "cargo test", "timeout": 5, "directory": "x"})),
            of("shell", &json!(["cargo test", 5])),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(name, *other, "{index}");
        }
    }
}
