//! The JSON form of entries: `role`, `content` or `blocks`, `created`, `edited`, `usage`, `model`, and any
//! unknown fields beside them.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Block, EntryVersion, Fields};
use crate::content::ContentId;
use crate::json::Json;
use crate::limits::ENTRY_BYTES;
use crate::name::{InvalidNameError, NameKind, check};
use crate::time::Timestamp;

/// Why JSON was rejected as an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntryError {
    /// Not a JSON object.
    #[error("an entry must be a JSON object: {0}")]
    NotAnObject(String),
    /// A known field has an invalid value.
    #[error("the entry's field {field:?} is invalid: {reason}")]
    Field {
        /// The field.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// The role is invalid.
    #[error(transparent)]
    Role(#[from] InvalidNameError),
    /// The entry exceeds the size limit.
    #[error("an entry has at most {} MiB", ENTRY_BYTES / 1024 / 1024)]
    TooLarge,
}

/// Parses an entry from JSON. Unknown fields are stored verbatim.
pub fn from_json(text: &str, default_role: &str, now: Timestamp) -> Result<EntryVersion, InvalidEntryError> {
    if text.len() > ENTRY_BYTES {
        return Err(InvalidEntryError::TooLarge);
    }
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(text).map_err(|error| InvalidEntryError::NotAnObject(error.to_string()))?;
    let role = take::<String>(&mut fields, "role")?.unwrap_or_else(|| default_role.to_owned());
    let role = check(NameKind::Role, &role)?;
    let created = take(&mut fields, "created")?.unwrap_or(now);
    let content = take::<String>(&mut fields, "content")?;
    let blocks = take::<Vec<Block>>(&mut fields, "blocks")?;
    let mut entry = EntryVersion::from_text(&role, content.as_deref().unwrap_or_default(), created);
    if let Some(blocks) = blocks {
        // `content` beside `blocks` is only the readable form in API output; `blocks` takes precedence.
        entry.blocks = blocks;
    }
    entry.usage = take(&mut fields, "usage")?;
    entry.model = take(&mut fields, "model")?;
    entry.edited = take(&mut fields, "edited")?;
    for (name, raw) in fields {
        let value =
            Json::new(raw.get()).map_err(|error| InvalidEntryError::NotAnObject(error.to_string()))?;
        entry.extra.insert(name, value);
    }
    Ok(entry)
}

fn take<T: serde::de::DeserializeOwned>(
    fields: &mut BTreeMap<String, Box<RawValue>>,
    field: &'static str,
) -> Result<Option<T>, InvalidEntryError> {
    match fields.remove(field) {
        None => Ok(None),
        Some(raw) if raw.get() == "null" => Ok(None),
        Some(raw) => serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|error| InvalidEntryError::Field { field, reason: error.to_string() }),
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

/// The known fields of an entry.
pub(crate) const ENTRY_FIELDS: &[&str] =
    &["role", "content", "blocks", "created", "edited", "usage", "model"];

/// Returns the known fields of a block type, or `None` for an unknown type.
pub(crate) fn block_fields(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "text" => &["type", "text"],
        "thinking" => &["type", "text", "signature"],
        "tool_call" => &["type", "call", "name", "input"],
        "tool_result" => &["type", "call", "text", "failed"],
        "image" => &["type", "media", "blob"],
        _ => return None,
    })
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        match self {
            Self::Text { text, .. } => map.serialize_entry("text", text)?,
            Self::Thinking { text, signature, .. } => {
                map.serialize_entry("text", text)?;
                if let Some(signature) = signature {
                    map.serialize_entry("signature", signature)?;
                }
            }
            Self::ToolCall { call, name, input, .. } => {
                map.serialize_entry("call", call)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)?;
            }
            Self::ToolResult { call, text, failed, .. } => {
                map.serialize_entry("call", call)?;
                map.serialize_entry("text", text)?;
                map.serialize_entry("failed", failed)?;
            }
            Self::Image { media, blob, .. } => {
                map.serialize_entry("media", media)?;
                map.serialize_entry("blob", blob)?;
            }
            Self::Unknown { .. } => {}
        }
        for (name, value) in self.extra().iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Reads field by field: serde buffers the fields of a tagged enum until it finds the tag, which would lose
/// the verbatim text of a tool's input.
impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = RawFields(BTreeMap::deserialize(deserializer)?);
        let kind: String = fields.required("type")?;
        Ok(match kind.as_str() {
            "text" => Self::Text { text: fields.required("text")?, extra: fields.rest()? },
            "thinking" => Self::Thinking {
                text: fields.required("text")?,
                signature: fields.take("signature")?,
                extra: fields.rest()?,
            },
            "tool_call" => Self::ToolCall {
                call: fields.required("call")?,
                name: fields.required("name")?,
                // A call without input is valid.
                input: fields.json("input")?,
                extra: fields.rest()?,
            },
            "tool_result" => Self::ToolResult {
                call: fields.required("call")?,
                text: fields.required("text")?,
                failed: fields.take("failed")?.unwrap_or_default(),
                extra: fields.rest()?,
            },
            "image" => Self::Image {
                media: fields.required("media")?,
                blob: fields.required::<ContentId, _>("blob")?,
                extra: fields.rest()?,
            },
            _ => Self::Unknown { extra: fields.rest()?, kind },
        })
    }
}

struct RawFields(BTreeMap<String, Box<RawValue>>);

impl RawFields {
    fn take<T: serde::de::DeserializeOwned, E: serde::de::Error>(
        &mut self,
        field: &'static str,
    ) -> Result<Option<T>, E> {
        let Some(raw) = self.0.remove(field) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|error| E::custom(format_args!("{field}: {error}")))
    }

    fn required<T: serde::de::DeserializeOwned, E: serde::de::Error>(
        &mut self,
        field: &'static str,
    ) -> Result<T, E> {
        self.take(field)?.ok_or_else(|| E::missing_field(field))
    }

    fn json<E: serde::de::Error>(&mut self, field: &'static str) -> Result<Json, E> {
        let raw = self.0.remove(field).ok_or_else(|| E::missing_field(field))?;
        Json::new(raw.get()).map_err(E::custom)
    }

    fn rest<E: serde::de::Error>(&mut self) -> Result<Fields, E> {
        let fields = std::mem::take(&mut self.0);
        let kept =
            |(name, raw): (String, Box<RawValue>)| Ok((name, Json::new(raw.get()).map_err(E::custom)?));
        fields.into_iter().map(kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_763_239_740_000);

    #[test]
    fn unknown_fields_round_trip_verbatim() {
        let text =
            r#"{"role":"AI","content":"yes","ticket":{"b":1.0,"a":[1e3]},"model":"m","usage":{"input":3}}"#;
        let entry = from_json(text, "User", NOW).expect("a good entry");
        assert_eq!(entry.usage.as_ref().expect("usage").input_tokens, 3);
        let shown = serde_json::to_string(&entry).expect("JSON");
        assert!(shown.contains(r#""ticket":{"b":1.0,"a":[1e3]}"#), "{shown}");
        assert_eq!(from_json(&shown, "User", NOW), Ok(entry));
    }

    #[test]
    fn every_block_type_round_trips() {
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
    fn unknown_parts_of_blocks_round_trip_verbatim() {
        let text = r#"{"id":"msg_1","blocks":[
            {"type":"text","text":"yes","cache":{"b":1.0,"a":1},"name":"n"},
            {"type":"thinking","text":"hm","signature":null,"budget":9},
            {"type":"tool_call","call":"c","name":"bash","input":null,"caller":"x"},
            {"type":"tool_result","call":"c","text":"done","input":[ 1e400 ]},
            {"type":"image","media":"image/png","blob":"BLOB","alt":"a cat"},
            {"type":"citation","pages":[1, 2],"text":"the words","type2":true},
            {"type":""}],"usage":{"output":1,"tier":"standard"}}"#;
        let text = text.replace("BLOB", &"0".repeat(64));
        let entry = from_json(&text, "User", NOW).expect("a good entry");
        let shown = serde_json::to_string(&entry).expect("JSON");
        for kept in [
            r#""id":"msg_1""#,
            r#""cache":{"b":1.0,"a":1},"name":"n""#,
            r#""budget":9"#,
            r#""caller":"x""#,
            r#""input":[ 1e400 ]"#,
            r#""alt":"a cat""#,
            r#"{"type":"citation","pages":[1, 2],"text":"the words","type2":true}"#,
            r#""tier":"standard""#,
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert_eq!(from_json(&shown, "User", NOW).as_ref(), Ok(&entry));
        let bytes = crate::content::encode(&entry);
        assert_eq!(crate::content::decode::<EntryVersion>(&bytes), Ok(entry.clone()));
        assert!(crate::check::content(crate::content::Kind::Entry, &bytes).is_ok());
        assert!(
            entry.searchable_text().contains("the words") && entry.searchable_text().contains("citation")
        );
        assert_eq!(entry.text(), "yes");
    }

    #[test]
    fn invalid_json_is_rejected() {
        let deep = format!("{{\"x\":{}", "[".repeat(100_000));
        for text in [
            "",
            "[]",
            "1",
            r#"{"role":""}"#,
            r#"{"role":"\u001b"}"#,
            r#"{"content":7}"#,
            r#"{"blocks":[{"type":7}]}"#,
            r#"{"blocks":["text"]}"#,
            r#"{"usage":{"input":"many"}}"#,
            r#"{"blocks":[{"text":"x"}]}"#,
            r#"{"blocks":[{"type":"text"}]}"#,
            r#"{"blocks":[{"type":"tool_call","call":"c","name":"n"}]}"#,
            &deep,
        ] {
            assert!(from_json(text, "User", NOW).is_err(), "{}", &text[..text.len().min(60)]);
        }
    }
}
