//! `reasoning_details`: reasoning that `OpenRouter` streams in pieces and expects back as complete items.

use retake_model::json::Json;
use serde_json::{Map, Value};

/// The items so far.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Map<String, Value>>);

/// Fields that arrive in pieces.
const GROWING: [&str; 3] = ["text", "summary", "data"];

impl Details {
    /// Adds a piece, which continues the last item if type and index are the same.
    pub(super) fn push(&mut self, piece: Map<String, Value>) {
        let same = |last: &&mut Map<String, Value>| {
            piece.contains_key("index")
                && ["type", "index"].iter().all(|name| last.get(*name) == piece.get(*name))
        };
        let Some(last) = self.0.last_mut().filter(same) else {
            self.0.push(piece);
            return;
        };
        for (name, value) in piece {
            match (last.get_mut(&name), value) {
                (Some(_), Value::Null) => {}
                (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&name.as_str()) => {
                    text.push_str(&more);
                }
                (_, value) => _ = last.insert(name, value),
            }
        }
    }

    /// All items as a list; `None` if there are none.
    pub(super) fn take(&mut self) -> Option<Json> {
        let items = std::mem::take(&mut self.0);
        if items.is_empty() {
            return None;
        }
        Json::new(serde_json::to_string(&items).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_item_are_joined() {
        let check = |pieces: &[&str], expected: &str| {
            let mut details = Details::default();
            for piece in pieces {
                details.push(serde_json::from_str(piece).expect("an object"));
            }
            let found: Value = serde_json::from_str(details.take().expect("a list").as_str()).expect("JSON");
            assert_eq!(found, serde_json::from_str::<Value>(expected).expect("JSON"));
        };
        check(
            &[
                r#"{"type":"reasoning.text","index":0,"text":"a","format":"f"}"#,
                r#"{"type":"reasoning.text","index":0,"text":"b","signature":null}"#,
                r#"{"type":"reasoning.text","index":0,"signature":"s"}"#,
                r#"{"type":"reasoning.encrypted","index":0,"data":"d"}"#,
                r#"{"type":"reasoning.text","index":1,"text":"c"}"#,
            ],
            r#"[{"type":"reasoning.text","index":0,"text":"ab","signature":"s","format":"f"},
                {"type":"reasoning.encrypted","index":0,"data":"d"},{"type":"reasoning.text","index":1,"text":"c"}]"#,
        );
        // Without an index, two pieces are never the same item.
        check(&[r#"{"type":"x"}"#, r#"{"type":"x"}"#], r#"[{"type":"x"},{"type":"x"}]"#);
        assert!(Details::default().take().is_none());
    }
}
