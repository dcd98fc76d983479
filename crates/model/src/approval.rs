//! Calls that were allowed for good are remembered by a fingerprint.
//!
//! It covers the tool, all that it is given, the project, and the version of the tools: a call that differs in a
//! single character is another one, and is asked about again. The order of fields and the call's own id say
//! nothing about what it does, and are left out.

use std::fmt::Write as _;

use serde_json::Value;

use crate::content::{ContentId, Kind};

/// The version of what the tools do. It goes up when a call comes to mean something else, so that what was allowed
/// for good is asked about again.
pub const TOOLS_VERSION: u32 = 1;

/// The fingerprint of a call in a project, as tools of that version understand it.
pub fn fingerprint(tool: &str, input: &Value, project: &str, version: u32) -> ContentId {
    let mut text = String::from("approval of a call\n");
    // Each part is JSON on a line of its own, so that none can pass for two.
    for part in [Value::from(version), Value::from(project), Value::from(tool)] {
        canonical(&part, &mut text);
        text.push('\n');
    }
    canonical(input, &mut text);
    ContentId::of(Kind::Blob, text.as_bytes())
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
