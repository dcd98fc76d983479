//! A strict validator for our schemas: a property that the schema does not list is an error, unless the
//! schema allows arbitrary properties.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The first mismatch of a value with its schema, if any.
pub(crate) fn validate(root: &Value, value: &Value) -> Result<(), String> {
    Validator { root }.strictly(root, value)
}

/// The properties of an object that any part of its schema lists.
#[derive(Default)]
struct ListedProperties {
    names: BTreeSet<String>,
    all: bool,
}

impl ListedProperties {
    fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.all |= other.all;
    }
}

struct Validator<'a> {
    root: &'a Value,
}

impl Validator<'_> {
    fn strictly(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let known = self.check(schema, value)?;
        let stranger =
            value.as_object().and_then(|object| object.keys().find(|name| !known.names.contains(*name)));
        match stranger {
            Some(name) if !known.all => Err(format!("{name:?} is not in the schema of {value}")),
            _ => Ok(()),
        }
    }

    fn check(&self, schema: &Value, value: &Value) -> Result<ListedProperties, String> {
        let schema = match schema {
            Value::Bool(true) => return Ok(ListedProperties { all: true, ..ListedProperties::default() }),
            Value::Object(schema) => schema,
            other => return Err(format!("{value} against {other}")),
        };
        let mut known = ListedProperties::default();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let name = reference.strip_prefix('#').expect("a reference into the document");
            known.add(self.check(self.root.pointer(name).expect("it is there"), value)?);
        }
        Self::check_kind(schema, value)?;
        self.check_parts(schema, value, &mut known)?;
        for part in list(schema, "allOf") {
            known.add(self.check(part, value)?);
        }
        for (name, most) in [("oneOf", 1), ("anyOf", usize::MAX)] {
            let parts = list(schema, name);
            let tried: Vec<_> = parts.iter().map(|part| self.check(part, value)).collect();
            let good = tried.iter().filter(|tried| tried.is_ok()).count();
            if !parts.is_empty() && !(1..=most).contains(&good) {
                let why: Vec<&String> = tried.iter().filter_map(|tried| tried.as_ref().err()).collect();
                return Err(format!("{good} of {name} fit {value}: {why:?}"));
            }
            tried.into_iter().flatten().for_each(|found| known.add(found));
        }
        if schema.get("not").is_some_and(|not| self.check(not, value).is_ok()) {
            return Err(format!("{value} is what it must not be"));
        }
        Ok(known)
    }

    fn check_kind(schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
        let is = |kind: &Value| match kind.as_str().expect("a name") {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("no such type: {other}"),
        };
        let fits = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(is),
            Some(kind) => is(kind),
            None => true,
        };
        let constant = schema.get("const").is_none_or(|constant| constant == value);
        let listed = schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value));
        let low = schema.get("minimum").and_then(Value::as_f64);
        let high_enough = low.zip(value.as_f64()).is_none_or(|(low, value)| value >= low);
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let written = pattern.zip(value.as_str()).is_none_or(|(pattern, text)| matches(pattern, text));
        if fits && constant && listed && high_enough && written {
            Ok(())
        } else {
            Err(format!("{value} is not {}", Value::Object(schema.clone())))
        }
    }

    fn check_parts(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        known: &mut ListedProperties,
    ) -> Result<(), String> {
        if let Some(object) = value.as_object() {
            let properties = schema.get("properties").and_then(Value::as_object);
            for name in list(schema, "required").iter().filter_map(Value::as_str) {
                object.get(name).ok_or_else(|| format!("{name:?} is missing from {value}"))?;
            }
            for (name, value) in object {
                if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                    self.strictly(property, value).map_err(|why| format!("{name}: {why}"))?;
                    known.names.insert(name.clone());
                } else if let Some(others) = schema.get("additionalProperties") {
                    self.strictly(others, value).map_err(|why| format!("{name}: {why}"))?;
                    known.names.insert(name.clone());
                }
            }
        }
        if let Some(items) = value.as_array() {
            let first = list(schema, "prefixItems");
            for (at, item) in items.iter().enumerate() {
                match first.get(at).or(schema.get("items")) {
                    Some(schema) => self.strictly(schema, item).map_err(|why| format!("[{at}]: {why}"))?,
                    None => return Err(format!("nothing is said of item {at} of {value}")),
                }
            }
        }
        Ok(())
    }
}

fn list<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Supports the two patterns in use.
fn matches(pattern: &str, text: &str) -> bool {
    let (first, last, length) = match pattern {
        "^[0-9a-hjkmnp-tv-z]{25}[048cgmrw]$" => ("0123456789abcdefghjkmnpqrstvwxyz", "048cgmrw", 26),
        "^[0-9a-f]{64}$" => ("0123456789abcdef", "0123456789abcdef", 64),
        other => panic!("another pattern: {other}"),
    };
    text.len() == length
        && text.chars().all(|letter| first.contains(letter))
        && text.ends_with(|letter| last.contains(letter))
}

#[test]
fn values_that_do_not_match_a_schema_are_caught() {
    use serde_json::json;
    let root = json!({
        "$defs": { "Count": { "type": "integer", "minimum": 0 } },
        "type": "object",
        "properties": { "count": { "$ref": "#/$defs/Count" }, "any": true, "names": { "items": { "type": "string" } } },
        "required": ["count"],
        "oneOf": [
            { "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
            { "properties": { "kind": { "const": "b" }, "more": { "type": ["string", "null"] } }, "required": ["kind"] },
        ],
    });
    let check = |value: Value, good: bool| {
        assert_eq!(validate(&root, &value).is_ok(), good, "{value}: {:?}", validate(&root, &value));
    };
    check(json!({ "count": 1, "kind": "a", "any": [{}], "names": ["x"] }), true);
    check(json!({ "count": 1, "kind": "b", "more": null }), true);
    check(json!({ "count": 1, "kind": "a", "more": null }), false);
    check(json!({ "count": -1, "kind": "a" }), false);
    check(json!({ "count": 1.5, "kind": "a" }), false);
    check(json!({ "kind": "a" }), false);
    check(json!({ "count": 1, "kind": "c" }), false);
    check(json!({ "count": 1, "kind": "a", "stranger": 1 }), false);
    check(json!({ "count": 1, "kind": "a", "names": [1] }), false);
    check(json!([]), false);
}
