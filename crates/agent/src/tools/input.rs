//! Parses tool input.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::ToolError;

/// Parses the input of a tool. Unknown fields are errors, because ignoring a misspelt field would change the
/// meaning of the call.
pub(super) fn parse<Input: DeserializeOwned>(input: &Value) -> Result<Input, ToolError> {
    Input::deserialize(input)
        .map_err(|error| ToolError(format!("The input does not fit the schema of this tool: {error}.")))
}

/// The schema of a tool's input, in the order of its fields: a model that writes a file names its path first.
/// It has only keywords that all providers accept in their strict modes.
pub(super) fn schema<Input: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut derived = generator.into_root_schema_for::<Input>().to_value();
    let Value::Object(fields) = derived["properties"].take() else { return Value::Null };
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, field)| (name, property(&field))).collect();
    let required = match derived["required"].take() {
        Value::Array(required) => required,
        _ => Vec::new(),
    };
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(derived: &Value) -> Value {
    // A field that may be missing is derived as a value or null; a call leaves it out instead.
    let kind = derived["type"].as_array().and_then(|kinds| kinds.first()).unwrap_or(&derived["type"]);
    let mut property = Map::from_iter([("type".to_owned(), kind.clone())]);
    for key in ["minimum", "maximum", "description"] {
        if let Some(value) = derived.get(key) {
            property.insert(key.to_owned(), value.clone());
        }
    }
    property.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn schemas_are_derived_in_the_order_of_fields() {
        let edit = tools::schema(tools::find("edit").expect("a tool"));
        let names: Vec<&String> = edit["properties"].as_object().expect("an object").keys().collect();
        assert_eq!(names, ["path", "old", "new", "all"]);
        assert_eq!(edit["required"], json!(["path", "old", "new"]));
        assert_eq!(edit["properties"]["all"]["type"], "boolean");
        let search = tools::schema(tools::find("search").expect("a tool"));
        let context = &search["properties"]["context"];
        assert_eq!((&context["minimum"], &context["maximum"]), (&json!(0), &json!(20)));
        let keys: Vec<&String> = context.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["type", "minimum", "maximum", "description"]);
    }
}
