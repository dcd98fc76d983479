//! From what a model wrote to what a tool takes.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Failure;

/// The input of a tool. What does not fit is refused with the field that it is about: a misspelt field that is
/// passed over in silence would do something else than what was asked.
pub(super) fn parse<Input: DeserializeOwned>(input: &Value) -> Result<Input, Failure> {
    Input::deserialize(input)
        .map_err(|error| Failure(format!("The input does not fit the schema of this tool: {error}.")))
}

/// The schema of an object with these fields.
pub(super) fn object(required: &[&str], fields: Value) -> Value {
    json!({
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": false,
    })
}
