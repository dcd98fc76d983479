//! Fingerprints of calls that the user always allows.
//!
//! A fingerprint covers the tool, its input, the project and the version of the tools: a call that differs
//! in a single character needs a new approval. Field order and the call's id do not affect the call, so the
//! fingerprint ignores them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::content::{ContentId, Kind};

/// The version of the tools' behavior. Increase it when a call changes its meaning, so that earlier
/// approvals expire.
pub const TOOLS_VERSION: u32 = 1;

/// Returns the fingerprint of a call in a project, for that version of the tools.
pub fn fingerprint(tool: &str, input: &Value, project: &str, version: u32) -> ContentId {
    let mut text = String::from("approval of a call\n");
    // Each part is JSON on a separate line, so that parts cannot run into each other.
    for part in [Value::from(version), Value::from(project), Value::from(tool)] {
        canonical(&part, &mut text);
        text.push('\n');
    }
    canonical(input, &mut text);
    ContentId::of(Kind::Blob, text.as_bytes())
}

/// Writes JSON with sorted fields and without white space.
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
