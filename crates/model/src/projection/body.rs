//! The body of a request, with messages that are already encoded.

use std::fmt::{self, Display, Formatter, Write};
use std::sync::Arc;

use serde_json::{Map, Value};

/// The body of a request: fields, and the list of messages as JSON. It is displayed as the JSON to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    fields: Map<String, Value>,
    /// The field that the messages belong to, after its own items.
    list: &'static str,
    /// The messages, each as items of a JSON list without its brackets.
    messages: Vec<Arc<str>>,
    prefix: Option<String>,
}

impl Body {
    pub(super) fn new(
        body: Value,
        list: &'static str,
        messages: Vec<Arc<str>>,
        prefix: Option<String>,
    ) -> Self {
        Self { messages, list, prefix, ..Self::from(body) }
    }

    /// The digest of a request on Anthropic's wire, to store with its answer; `None` for other wires.
    pub fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// A field other than the list of messages.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|_| name != self.list)
    }

    /// Adds a field, or replaces it in its place.
    pub fn set(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// Removes a field; the others stay in order.
    pub fn remove(&mut self, name: &str) {
        self.fields.shift_remove(name);
    }

    /// The length of the JSON of its messages, in bytes.
    fn len(&self) -> usize {
        self.messages.iter().map(|message| message.len() + 1).sum()
    }

    /// The body as JSON.
    pub fn to_json(&self) -> String {
        let mut text = String::with_capacity(self.len() + 1024);
        let _ = write!(text, "{self}");
        text
    }
}

impl From<Value> for Body {
    /// A body with these fields; empty if the value is not an object.
    fn from(body: Value) -> Self {
        let fields = if let Value::Object(fields) = body { fields } else { Map::new() };
        Self { fields, ..Self::default() }
    }
}

impl Display for Body {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_char('{')?;
        for (place, (name, value)) in self.fields.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(formatter, "{comma}{}:", Value::from(name.as_str()))?;
            if name != self.list || self.list.is_empty() {
                write!(formatter, "{value}")?;
                continue;
            }
            let own = value.as_array().into_iter().flatten().map(|item| item.to_string().into());
            let items = own.chain(self.messages.iter().cloned()).filter(|items: &Arc<str>| !items.is_empty());
            formatter.write_char('[')?;
            for (place, items) in items.enumerate() {
                let comma = if place > 0 { "," } else { "" };
                formatter.write_str(comma)?;
                formatter.write_str(&items)?;
            }
            formatter.write_char(']')?;
        }
        formatter.write_char('}')
    }
}
