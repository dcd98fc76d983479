//! Generates values for a schema, preferring values from earlier answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// Maximum number of values per name.
const MAX_VALUES: usize = 48;

/// Values from answers, by parameter name.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownValues {
    values: BTreeMap<String, Vec<Value>>,
}

/// Other names that a value fits.
const NAME_ALIASES: [(&str, &str); 14] = [
    ("before", "entry"),
    ("after", "entry"),
    ("one", "take"),
    ("other", "take"),
    ("from", "version"),
    ("to", "version"),
    ("at", "version"),
    ("If-Match", "version"),
    ("cursor", "next"),
    ("callback", "callback"),
    ("field", "field"),
    ("message", "prompt"),
    ("q", "word"),
    ("path", "file"),
];

/// Instructions of the offline assistant that cannot do harm.
const PROMPTS: [&str; 14] = [
    "create a.txt with one",
    "create b/c.txt with two",
    "create a.txt with three then read a.txt",
    "edit a.txt: replace \"one\" with \"two\"",
    "read a.txt",
    "list",
    "search \"t\"",
    "say hello",
    "think a little",
    "ask which one",
    "wait 0.02",
    "fail",
    "run true",
    "what is this?",
];
const WORDS: [&str; 8] = ["a", "b", "User", "AI", "some words", "Größe 日本 👩‍👩‍👧", "main", "x.y"];
const FILES: [&str; 5] = ["a.txt", "b/c.txt", "b", "nowhere", "a.txt/b"];

impl KnownValues {
    /// Starts with generally valid values; folders are below `place`.
    pub(super) fn new(place: &str) -> Self {
        let mut seen = Self::default();
        let all = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect::<Vec<_>>();
        seen.values.insert("prompt".to_owned(), all(&PROMPTS));
        seen.values.insert("word".to_owned(), all(&WORDS));
        seen.values.insert("file".to_owned(), all(&FILES));
        seen.values.insert("provider".to_owned(), all(&["offline"]));
        seen.values.insert("model".to_owned(), all(&["offline/offline"]));
        let folders = ["", "/sub", "/nowhere", "/a.txt"].map(|below| json!(format!("{place}{below}")));
        seen.values.insert("folder".to_owned(), folders.to_vec());
        seen
    }

    /// Collects values from an answer.
    pub(super) fn learn_from(&mut self, path: &str, answer: &Value, rng: &mut Rng) {
        // A list of entries has `id`; requests call it `entry`.
        let last = path.rsplit('/').find(|part| !part.starts_with('{')).unwrap_or_default();
        let items = match last {
            "entries" | "session" => "entry",
            "callbacks" => "callback",
            "fields" => "field",
            other => other.strip_suffix('s').unwrap_or(other),
        };
        self.gather(items, answer, rng);
    }

    fn gather(&mut self, items: &str, value: &Value, rng: &mut Rng) {
        match value {
            Value::Array(values) => {
                values.iter().take(MAX_VALUES).for_each(|value| self.gather(items, value, rng));
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("id", Value::String(_)) => self.remember(items, value, rng),
                        ("name", Value::String(_)) if matches!(items, "callback" | "field") => {
                            self.remember(items, value, rng);
                        }
                        ("home", Value::String(_)) => self.remember("project", value, rng),
                        ("folder" | "prompt", _) => {}
                        (_, Value::String(text)) if text.len() <= 100 => self.remember(name, value, rng),
                        (_, Value::Number(_)) => self.remember(name, value, rng),
                        _ => self.gather(items, value, rng),
                    }
                }
            }
            _ => {}
        }
    }

    fn remember(&mut self, name: &str, value: &Value, rng: &mut Rng) {
        let kept = self.values.entry(name.to_owned()).or_default();
        if kept.contains(value) {
            return;
        }
        if kept.len() < MAX_VALUES {
            kept.push(value.clone());
        } else {
            let index = rng.index(MAX_VALUES);
            kept[index] = value.clone();
        }
    }

    /// A value for this name.
    pub(super) fn pick(&self, name: &str, rng: &mut Rng) -> Option<Value> {
        let other = NAME_ALIASES.iter().find(|(known, _)| *known == name).map_or(name, |(_, other)| other);
        rng.pick(self.values.get(other)?).cloned()
    }

    /// A value for this name and schema.
    pub(super) fn value(&self, name: &str, schema: &Value, rng: &mut Rng) -> Value {
        if let Some(choices) = schema["enum"].as_array() {
            return rng.pick(choices).cloned().unwrap_or_default();
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        let kind = kind_of(schema, rng);
        let fits = |value: &Value| match kind.as_deref() {
            Some("string") => value.is_string(),
            Some("integer" | "number") => value.is_number(),
            _ => false,
        };
        if (name == "folder" || !rng.once_in(10))
            && let Some(value) = self.pick(name, rng).filter(fits)
        {
            return value;
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[choice].as_array() {
                return rng.pick(choices).map_or(Value::Null, |chosen| self.value(name, chosen, rng));
            }
        }
        match kind.as_deref() {
            Some("object") => self.object(schema, rng),
            Some("array") => {
                let singular = name.strip_suffix('s').unwrap_or(name);
                let count = rng.below(4);
                (0..count).map(|_| self.value(singular, &schema["items"], rng)).collect()
            }
            Some("string") if schema.get("pattern").is_some() => json!(id(rng)),
            Some("string") => self.pick("word", rng).unwrap_or_default(),
            Some("integer") => {
                let least = schema["minimum"].as_i64().unwrap_or(-3).max(-3);
                let most = schema["maximum"].as_u64().map_or(40, |most| most.min(40)) as i64;
                json!(least + rng.below((most - least + 1).max(1) as u64) as i64)
            }
            Some("number") => json!(rng.below(20) as f64 / 10.0),
            Some("boolean") => json!(rng.once_in(2)),
            Some(_) => Value::Null,
            // No type given: any value.
            None => rng
                .pick(&[json!(null), json!("text"), json!(7), json!([1]), json!({"a": 1})])
                .cloned()
                .unwrap_or_default(),
        }
    }

    fn object(&self, schema: &Value, rng: &mut Rng) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&name.as_str()) || rng.once_in(3) {
                fields.insert(name.clone(), self.value(name, field, rng));
            }
        }
        if schema["additionalProperties"] == true && rng.once_in(4) {
            fields.insert("more".to_owned(), json!({"kept": [1.0, "as it came"]}));
        }
        Value::Object(fields)
    }
}

fn kind_of(schema: &Value, rng: &mut Rng) -> Option<String> {
    match &schema["type"] {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => rng.pick(kinds).and_then(Value::as_str).map(str::to_owned),
        _ if schema.get("properties").is_some() => Some("object".to_owned()),
        _ => None,
    }
}

/// An id that does not exist.
fn id(rng: &mut Rng) -> String {
    const MESSAGE_POLL_INTERVAL: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
    (0..26).map(|_| char::from(MESSAGE_POLL_INTERVAL[rng.index(MESSAGE_POLL_INTERVAL.len())])).collect()
}
