//! Converts JSON schemas to the subset that Gemini accepts.

use serde_json::{Map, Value, json};

/// Keywords that are copied unchanged.
const PLAIN: &[&str] = &[
    "description",
    "nullable",
    "required",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "title",
];
/// Supported formats.
const FORMATS: &[&str] = &["float", "double", "int32", "int64", "enum", "date-time"];

/// The parameters of a tool; `None` for a tool without parameters, which must have no schema.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let Value::Object(given) = schema else { return None };
    let properties = given.get("properties").and_then(Value::as_object)?;
    if properties.is_empty() {
        return None;
    }
    let mut given = given.clone();
    given.insert("type".to_owned(), "object".into());
    Some(Value::Object(part(&given)))
}

fn any(schema: &Value) -> Value {
    match schema {
        Value::Object(schema) => Value::Object(part(schema)),
        // `true` accepts any value.
        _ => json!({"type": "string"}),
    }
}

fn part(given: &Map<String, Value>) -> Map<String, Value> {
    let mut schema: Map<String, Value> = given
        .iter()
        .filter(|(name, _)| PLAIN.contains(&name.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let choices = given.get("anyOf").or_else(|| given.get("oneOf")).and_then(Value::as_array);
    if let Some(choices) = choices {
        let is_null = |choice: &&Value| choice["type"] == "null";
        if choices.iter().any(|choice| is_null(&choice)) {
            schema.insert("nullable".to_owned(), true.into());
        }
        let choices: Vec<Value> = choices.iter().filter(|choice| !is_null(choice)).map(any).collect();
        if !choices.is_empty() {
            schema.insert("anyOf".to_owned(), choices.into());
            schema.shift_remove("required");
            return schema;
        }
    }
    let kind = kind(given, &mut schema);
    match kind {
        "object" => object(given, &mut schema),
        "array" => {
            schema.insert(
                "items".to_owned(),
                given.get("items").map_or_else(|| json!({"type": "string"}), any),
            );
        }
        "string" => {
            let constant = given.get("const").map(|value| vec![value.clone()]);
            let choices =
                given.get("enum").and_then(Value::as_array).cloned().or(constant).unwrap_or_default();
            let texts: Vec<Value> = choices
                .into_iter()
                .filter(|choice| choice.as_str().is_some_and(|text| !text.is_empty()))
                .collect();
            if !texts.is_empty() {
                schema.insert("enum".to_owned(), texts.into());
            }
        }
        _ => {}
    }
    if kind != "object" {
        schema.shift_remove("required");
    }
    if let Some(format) = given.get("format").and_then(Value::as_str)
        && FORMATS.contains(&format)
    {
        schema.insert("format".to_owned(), format.into());
    }
    schema.insert("type".to_owned(), kind.into());
    schema
}

/// The single type of a value; whether it may be null is a separate field.
fn kind(given: &Map<String, Value>, schema: &mut Map<String, Value>) -> &'static str {
    let known = |name: &str| {
        ["object", "array", "string", "integer", "number", "boolean"].into_iter().find(|kind| *kind == name)
    };
    let guess = || if given.contains_key("properties") { "object" } else { "string" };
    match given.get("type") {
        Some(Value::String(name)) => known(name).unwrap_or_else(guess),
        Some(Value::Array(names)) => {
            if names.iter().any(|name| name == "null") {
                schema.insert("nullable".to_owned(), true.into());
            }
            names.iter().filter_map(Value::as_str).find_map(known).unwrap_or_else(guess)
        }
        _ => guess(),
    }
}

fn object(given: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let properties: Map<String, Value> = given
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.iter().map(|(name, value)| (name.clone(), any(value))).collect())
        .unwrap_or_default();
    // Only existing properties can be required.
    let required: Vec<Value> = given
        .get("required")
        .and_then(Value::as_array)
        .map(|names| {
            let there = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
            names.iter().filter(there).cloned().collect()
        })
        .unwrap_or_default();
    schema.shift_remove("required");
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_fields_of_a_schema_remain() {
        let check =
            |schema: Value, expected: Option<Value>| assert_eq!(parameters(&schema), expected, "{schema}");
        check(json!({"type": "object", "properties": {}}), None);
        check(json!(true), None);
        check(
            json!({
                "$schema": "x",
                "additionalProperties": false,
                "properties": {
                    "path": {"type": ["string", "null"], "format": "uri", "default": "x"},
                    "mode": {"const": "fast"},
                    "count": {"type": "integer", "enum": [1, 2], "minimum": 0},
                    "list": {"type": "array"},
                    "either": {"oneOf": [{"type": "string"}, {"type": "null"}]},
                    "open": true,
                    "nested": {"properties": {"a": {"type": "boolean"}}, "required": ["a", "gone"]},
                },
                "required": ["path", "gone"],
            }),
            Some(json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "nullable": true},
                    "mode": {"type": "string", "enum": ["fast"]},
                    "count": {"type": "integer", "minimum": 0},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "either": {"anyOf": [{"type": "string"}], "nullable": true},
                    "open": {"type": "string"},
                    "nested": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
                },
                "required": ["path"],
            })),
        );
    }
}
