//! Verbatim JSON.
//!
//! Unknown fields and tool inputs must survive byte for byte. They are stored as validated text instead of
//! a parsed value, so that key order and number formats do not change.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

/// Valid JSON, exactly as written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Json(#[n(0)] String);

/// The text is not valid JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON: {0}")]
pub struct InvalidJsonError(String);

/// The maximum nesting depth, which other JSON readers also accept.
const MAX_DEPTH: usize = 128;

impl Json {
    /// Validates the text and stores it verbatim.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidJsonError> {
        let text = text.into();
        // Not parsed into a value: a number too large for one is still valid JSON.
        serde_json::from_str::<serde::de::IgnoredAny>(&text)
            .map_err(|error| InvalidJsonError(error.to_string()))?;
        if depth(&text) > MAX_DEPTH {
            return Err(InvalidJsonError(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self(text))
    }

    /// Creates a JSON string.
    pub fn string(content: &str) -> Self {
        Self(serde_json::to_string(content).expect("strings serialize to JSON"))
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the nesting depth of valid JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Stored text was validated on input, but decoding does not validate it again.
        let raw = RawValue::from_string(self.0.clone()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::new(raw.get()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_verbatim() {
        for text in ["1.0", "1e400", r#"{"b":1,"a":[ 2 ]}"#, "18446744073709551616", r#""\u00e9""#] {
            let json: Json = serde_json::from_str(text).expect("valid JSON");
            assert_eq!(serde_json::to_string(&json).expect("raw text"), text);
        }
    }

    #[test]
    fn invalid_and_deeply_nested_json_is_rejected() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in ["", "{", "nul", "1 2", &deep] {
            assert!(Json::new(text).is_err());
        }
    }
}
