//! Parses tool input.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ToolError;

/// Parses the input of a tool. Unknown fields are errors, because ignoring a misspelt field would change the
/// meaning of the call.
pub(super) fn parse<Input: DeserializeOwned>(input: &Value) -> Result<Input, ToolError> {
    Input::deserialize(input)
        .map_err(|error| ToolError(format!("The input does not fit the schema of this tool: {error}.")))
}

/// The schema of an object.
pub(super) fn object(required: &[&str], fields: Value) -> Value {
    json!({
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": false,
    })
}
