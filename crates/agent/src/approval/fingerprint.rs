//! The name of one exact call, to remember it by.
//!
//! It covers the tool, all that it is given, the project, and the version of the tools: a call that differs in a
//! single character is another one, and is asked about again. The order of fields and the call's own id say
//! nothing about what it does, and are left out.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use retake_model::content::{ContentId, Kind, NotAContentId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::Call;

/// The name of one exact call in one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Fingerprint(ContentId);

impl Fingerprint {
    /// Its bytes.
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
    type Err = NotAContentId;

    fn from_str(text: &str) -> Result<Self, NotAContentId> {
        text.parse().map(Self)
    }
}

/// The name of that call in that project, as tools of that version understand it.
pub fn fingerprint(call: &Call, project: &str, version: u32) -> Fingerprint {
    let mut text = String::from("approval of a call\n");
    // Each part is JSON on a line of its own, so that none can pass for two.
    for part in [Value::from(version), Value::from(project), Value::from(call.name.as_str())] {
        canonical(&part, &mut text);
        text.push('\n');
    }
    canonical(&call.input, &mut text);
    Fingerprint(ContentId::of(Kind::Blob, text.as_bytes()))
}

/// JSON with its fields in the order of their names and no white space.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(name: &str, input: &Value) -> Fingerprint {
        fingerprint(&Call { id: "7".into(), name: name.into(), input: input.clone() }, "project", 1)
    }

    #[test]
    fn the_same_call_has_the_same_name_and_no_other_has() {
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
