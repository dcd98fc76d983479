//! Entries as JSON: `role`, `content` or `blocks`, `created`, `edited`, `usage`, `model`, and whatever else
//! came along, side by side.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Block, EntryVersion};
use crate::content::ContentId;
use crate::json::Json;
use crate::limits::ENTRY_BYTES;
use crate::name::{BadName, Naming, check};
use crate::time::Timestamp;

/// Why JSON was refused as an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// Not a JSON object.
    #[error("an entry must be a JSON object: {0}")]
    NotAnObject(String),
    /// A known field holds what it cannot hold.
    #[error("the entry's field {field:?} is not as it should be: {reason}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The role is not a name.
    #[error(transparent)]
    Role(#[from] BadName),
    /// Larger than any entry may be.
    #[error("an entry has at most {} MiB", ENTRY_BYTES / 1024 / 1024)]
    TooLarge,
}

/// Reads an entry from JSON. Fields that Retake does not know are kept as they came.
pub fn from_json(text: &str, default_role: &str, now: Timestamp) -> Result<EntryVersion, BadEntry> {
    if text.len() > ENTRY_BYTES {
        return Err(BadEntry::TooLarge);
    }
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(text).map_err(|error| BadEntry::NotAnObject(error.to_string()))?;
    let role = take::<String>(&mut fields, "role")?.unwrap_or_else(|| default_role.to_owned());
    let role = check(Naming::Role, &role)?;
    let created = take(&mut fields, "created")?.unwrap_or(now);
    let content = take::<String>(&mut fields, "content")?;
    let blocks = take::<Vec<Block>>(&mut fields, "blocks")?;
    let mut entry = EntryVersion::from_text(&role, content.as_deref().unwrap_or_default(), created);
    if let Some(blocks) = blocks {
        // `content` beside `blocks` is the readable form that was shown; the blocks are what counts.
        entry.blocks = blocks;
    }
    entry.usage = take(&mut fields, "usage")?;
    entry.model = take(&mut fields, "model")?;
    entry.edited = take(&mut fields, "edited")?;
    for shown in ["id", "version", "position", "preview"] {
        fields.remove(shown);
    }
    for (name, raw) in fields {
        let value = Json::new(raw.get()).map_err(|error| BadEntry::NotAnObject(error.to_string()))?;
        entry.extra.insert(name, value);
    }
    Ok(entry)
}

fn take<T: serde::de::DeserializeOwned>(
    fields: &mut BTreeMap<String, Box<RawValue>>,
    field: &'static str,
) -> Result<Option<T>, BadEntry> {
    match fields.remove(field) {
        None => Ok(None),
        Some(raw) if raw.get() == "null" => Ok(None),
        Some(raw) => serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|error| BadEntry::Field { field, reason: error.to_string() }),
    }
}

impl Serialize for EntryVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("content", &self.text())?;
        map.serialize_entry("blocks", &self.blocks)?;
        map.serialize_entry("created", &self.created)?;
        if let Some(edited) = &self.edited {
            map.serialize_entry("edited", edited)?;
        }
        if let Some(usage) = &self.usage {
            map.serialize_entry("usage", usage)?;
        }
        if let Some(model) = &self.model {
            map.serialize_entry("model", model)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A block as it is written. Read field by field: an enum with a tag would have to hold a tool's input while it
/// looks for the tag, and what is held is no longer the text as it came.
#[derive(Deserialize)]
struct Written {
    r#type: String,
    text: Option<String>,
    signature: Option<String>,
    call: Option<String>,
    name: Option<String>,
    input: Option<Json>,
    #[serde(default)]
    failed: bool,
    media: Option<String>,
    blob: Option<ContentId>,
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn needed<T, E: serde::de::Error>(value: Option<T>, field: &'static str) -> Result<T, E> {
            value.ok_or_else(|| E::missing_field(field))
        }
        let Written { r#type, text, signature, call, name, input, failed, media, blob } =
            Written::deserialize(deserializer)?;
        Ok(match r#type.as_str() {
            "text" => Self::Text { text: needed(text, "text")? },
            "thinking" => Self::Thinking { text: needed(text, "text")?, signature },
            "tool_call" => Self::ToolCall {
                call: needed(call, "call")?,
                name: needed(name, "name")?,
                input: needed(input, "input")?,
            },
            "tool_result" => {
                Self::ToolResult { call: needed(call, "call")?, text: needed(text, "text")?, failed }
            }
            "image" => Self::Image { media: needed(media, "media")?, blob: needed(blob, "blob")? },
            other => {
                let kinds = &["text", "thinking", "tool_call", "tool_result", "image"];
                return Err(D::Error::unknown_variant(other, kinds));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_763_239_740_000);

    #[test]
    fn unknown_fields_come_back_as_they_came() {
        let text =
            r#"{"role":"AI","content":"yes","ticket":{"b":1.0,"a":[1e3]},"model":"m","usage":{"input":3}}"#;
        let entry = from_json(text, "User", NOW).expect("a good entry");
        assert_eq!(entry.usage.expect("usage").input_tokens, 3);
        let shown = serde_json::to_string(&entry).expect("JSON");
        assert!(shown.contains(r#""ticket":{"b":1.0,"a":[1e3]}"#), "{shown}");
        assert_eq!(from_json(&shown, "User", NOW), Ok(entry));
    }

    #[test]
    fn every_kind_of_block_comes_back_as_it_was_shown() {
        let text = r#"{"role":"AI","blocks":[
            {"type":"thinking","text":"hm","signature":"s"},
            {"type":"text","text":"yes"},
            {"type":"tool_call","call":"c","name":"bash","input":{"b":1.0,"a":[ 1e400 ]}},
            {"input":null,"type":"tool_result","call":"c","text":"done"},
            {"type":"image","media":"image/png","blob":"BLOB"}]}"#;
        let text = text.replace("BLOB", &"0".repeat(64));
        let entry = from_json(&text, "User", NOW).expect("a good entry");
        assert_eq!(entry.blocks.len(), 5);
        let shown = serde_json::to_string(&entry).expect("JSON");
        assert!(shown.contains(r#""input":{"b":1.0,"a":[ 1e400 ]}"#), "{shown}");
        assert_eq!(from_json(&shown, "User", NOW), Ok(entry));
    }

    #[test]
    fn hostile_json_is_refused() {
        let deep = format!("{{\"x\":{}", "[".repeat(100_000));
        for text in [
            "",
            "[]",
            "1",
            r#"{"role":""}"#,
            r#"{"role":"\u001b"}"#,
            r#"{"content":7}"#,
            r#"{"blocks":[{"type":"x"}]}"#,
            r#"{"blocks":[{"text":"x"}]}"#,
            r#"{"blocks":[{"type":"text"}]}"#,
            r#"{"blocks":[{"type":"tool_call","call":"c","name":"n"}]}"#,
            &deep,
        ] {
            assert!(from_json(text, "User", NOW).is_err(), "{}", &text[..text.len().min(60)]);
        }
    }
}
