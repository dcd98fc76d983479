//! Reads fields whose type differs between servers that are called compatible. A value that cannot be used counts as
//! missing: it must not make the rest of an answer unreadable.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A text. Numbers are texts too: some servers count where others name.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// An index: a number, perhaps as a text.
pub(super) fn index<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Fields {
        #[serde(default, deserialize_with = "text")]
        id: Option<String>,
        #[serde(default, deserialize_with = "index")]
        place: Option<u64>,
    }

    #[test]
    fn fields_of_another_type_are_converted_or_missing() {
        let check = |json: &str, id: Option<&str>, place: Option<u64>| {
            let fields: Fields = serde_json::from_str(json).expect("no value is an error");
            assert_eq!((fields.id.as_deref(), fields.place), (id, place), "{json}");
        };
        check("{}", None, None);
        check(r#"{"id":"a","place":3}"#, Some("a"), Some(3));
        check(r#"{"id":7,"place":"3"}"#, Some("7"), Some(3));
        check(r#"{"id":null,"place":null}"#, None, None);
        check(r#"{"id":{"a":[1]},"place":-1}"#, None, None);
        check(r#"{"id":["a"],"place":"first"}"#, None, None);
        check(r#"{"id":true,"place":1.5}"#, None, None);
    }
}
