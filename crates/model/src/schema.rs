//! JSON schemas of types with handwritten serialization: names, timestamps, and entries with unknown fields.
//!
//! All other types derive their schema. The schemas describe the serialized form exactly; types that are also
//! deserialized accept more than they emit.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::content::ContentId;
use crate::entry::{Block, EntryVersion, Usage};
use crate::id::{EntryId, FolderId, ProjectId, TakeId, ThreadId, TurnId};
use crate::json::Json;
use crate::path::{FileName, TreePath};
use crate::time::Timestamp;

/// The text form of an id: random characters, then ten that encode the time. The unused bits of the last one
/// are zero.
const IDENTITY: &str = "^[0-9a-hjkmnp-tv-z]{25}[048cgmrw]$";

/// Implements the schema of a type that is serialized as a string.
macro_rules! text {
    ($type:ident, $description:literal, { $($rest:tt)* }) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn schema_id() -> Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($type)).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $description, $($rest)* })
            }
        }
    };
}

text!(ProjectId, "The identity of a project.", { "pattern": IDENTITY });
text!(ThreadId, "The identity of a thread.", { "pattern": IDENTITY });
text!(TakeId, "The identity of a take.", { "pattern": IDENTITY });
text!(EntryId, "The identity of an entry, through all its versions.", { "pattern": IDENTITY });
text!(TurnId, "The identity of a turn.", { "pattern": IDENTITY });
text!(FolderId, "The identity of a captured folder.", { "pattern": IDENTITY });
text!(ContentId, "The name of content: the hash of its bytes.", { "pattern": "^[0-9a-f]{64}$" });
text!(Timestamp, "A time, in UTC.", { "format": "date-time" });
text!(TreePath, "A path below a root, with `/` between names; `\\xNN` for a byte that is not text.", { "minLength": 1 });
text!(FileName, "A name in a folder; `\\xNN` for a byte that is not text.", { "minLength": 1 });

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

impl JsonSchema for Usage {
    fn schema_name() -> Cow<'static, str> {
        "Usage".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Usage").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let count = generator.subschema_for::<u64>();
        let counts = [
            ("input_tokens", "Tokens read."),
            ("output_tokens", "Tokens written."),
            ("cache_read_input_tokens", "Tokens read from the provider's cache."),
            ("cache_creation_input_tokens", "Tokens written to the provider's cache."),
        ];
        let properties = counts.map(|(name, description)| (name, described(&count, description)));
        let description = "Token counts of an entry, and any other counts of the provider.";
        let names = counts.map(|(name, _)| name);
        // A count that is missing in the input is zero.
        let required: &[&str] = if generator.contract().is_serialize() { &names } else { &[] };
        open_object(description, properties.into(), required)
    }
}

impl JsonSchema for EntryVersion {
    fn schema_name() -> Cow<'static, str> {
        "Entry".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::EntryVersion").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<String>();
        let moment = generator.subschema_for::<Timestamp>();
        let properties = vec![
            ("role", described(&text, "The role of the author: any text.")),
            ("content", described(&text, "The content as text: that of the text blocks.")),
            ("blocks", described(&generator.subschema_for::<Vec<Block>>(), "The content, in order.")),
            ("created", described(&moment, "When it was created.")),
            ("edited", described(&moment, "When a user last edited its text.")),
            ("usage", described(&generator.subschema_for::<Usage>(), "Token counts of the provider.")),
            ("model", described(&text, "The model that wrote it.")),
        ];
        let description = "One version of an entry. Unknown fields are preserved.";
        open_object(description, properties, &["role", "content", "blocks", "created"])
    }
}

impl JsonSchema for Block {
    fn schema_name() -> Cow<'static, str> {
        "Block".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Block").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<String>();
        let flag = generator.subschema_for::<bool>();
        let any = generator.subschema_for::<Json>();
        let blob = generator.subschema_for::<ContentId>();
        // Type, description, required fields, optional fields.
        let known: [(&str, &str, Parts<'_>, Parts<'_>); 5] = [
            ("text", "Text, usually Markdown.", &[("text", &text)], &[]),
            ("thinking", "Thinking of the model.", &[("text", &text)], &[("signature", &text)]),
            (
                "tool_call",
                "A tool call of the model.",
                &[("call", &text), ("name", &text), ("input", &any)],
                &[],
            ),
            (
                "tool_result",
                "The result of a tool call.",
                &[("call", &text), ("text", &text), ("failed", &flag)],
                &[],
            ),
            ("image", "A picture.", &[("media", &text), ("blob", &blob)], &[]),
        ];
        let names = known.map(|(kind, ..)| kind);
        let mut variants: Vec<Value> = Vec::new();
        for (kind, description, always, maybe) in known {
            let mut properties = vec![("type", json!({ "type": "string", "const": kind }))];
            let parts = always.iter().chain(maybe).map(|(name, schema)| (*name, schema.as_value().clone()));
            properties.extend(parts);
            let mut required = vec!["type"];
            // In the input, a missing `failed` means that the tool succeeded.
            let given = |name: &&str| generator.contract().is_serialize() || *name != "failed";
            required.extend(always.iter().map(|(name, _)| *name).filter(given));
            variants.push(open_object(description, properties, &required).into());
        }
        let other = json!({ "type": "string", "not": { "enum": names } });
        let description = "A part of an unknown type, preserved unchanged.";
        variants.push(open_object(description, vec![("type", other)], &["type"]).into());
        json_schema!({ "description": "A part of an entry.", "oneOf": variants })
    }
}

/// Fields of a part of an entry, each with its schema.
type Parts<'a> = &'a [(&'static str, &'a Schema)];

/// An object with these properties that allows additional ones.
fn open_object(description: &str, properties: Vec<(&str, Value)>, required: &[&str]) -> Schema {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json_schema!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": true,
    })
}

fn described(schema: &Schema, description: &str) -> Value {
    let mut schema = schema.clone();
    schema.insert("description".to_owned(), description.into());
    schema.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters that the schema allows at a position of an id.
    fn allowed(place: usize) -> &'static str {
        if place < 25 { "0123456789abcdefghjkmnpqrstvwxyz" } else { "048cgmrw" }
    }

    #[test]
    fn ids_parse_exactly_if_the_schema_matches() {
        let good = "0".repeat(26);
        for place in 0..26 {
            for letter in (0..=127_u8).map(char::from) {
                let text: String = good
                    .chars()
                    .enumerate()
                    .map(|(at, zero)| if at == place { letter } else { zero })
                    .collect();
                assert_eq!(text.parse::<TakeId>().is_ok(), allowed(place).contains(letter), "{text:?}");
            }
        }
        for text in ["", &good[1..], &format!("{good}0")] {
            assert!(text.parse::<TakeId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn input_may_omit_fields_that_output_always_has() {
        let required = |settings: schemars::generate::SchemaSettings| {
            let schema = settings.into_generator().into_root_schema_for::<Usage>();
            schema.get("required").and_then(Value::as_array).map(Vec::len)
        };
        let settings = schemars::generate::SchemaSettings::draft2020_12;
        assert_eq!(required(settings().for_serialize()), Some(4));
        assert_eq!(required(settings().for_deserialize()), Some(0));
    }
}
