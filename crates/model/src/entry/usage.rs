//! Token counts from a provider.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::fields::Fields;
use crate::json::Json;

/// The tokens that an entry used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Usage {
    /// Input tokens.
    #[n(0)]
    pub input_tokens: u64,
    /// Output tokens.
    #[n(1)]
    pub output_tokens: u64,
    /// Input tokens read from the provider's cache.
    #[n(2)]
    pub cache_read_input_tokens: u64,
    /// Input tokens written to the provider's cache.
    #[n(3)]
    pub cache_creation_input_tokens: u64,
    /// Other counts from the provider, stored verbatim.
    #[n(4)]
    pub extra: Fields,
}

/// The known fields, each with a short alias that is also accepted.
const NAMES: [(&str, &str); 4] = [
    ("input_tokens", "input"),
    ("output_tokens", "output"),
    ("cache_read_input_tokens", "cache_read"),
    ("cache_creation_input_tokens", "cache_write"),
];

/// The names of the known fields.
pub(crate) const USAGE_FIELDS: &[&str] = &[NAMES[0].0, NAMES[1].0, NAMES[2].0, NAMES[3].0];

impl Usage {
    /// Adds the tokens of another answer. Unknown counts are not added.
    pub fn add(&mut self, other: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_input_tokens =
            self.cache_read_input_tokens.saturating_add(other.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.saturating_add(other.cache_creation_input_tokens);
    }

    /// Returns all input tokens, cached or not.
    pub fn total_input(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_input_tokens)
            .saturating_add(self.cache_creation_input_tokens)
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let counts = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        for ((name, _), count) in NAMES.iter().zip(counts) {
            map.serialize_entry(name, &count)?;
        }
        for (name, value) in self.extra.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields: BTreeMap<String, Box<RawValue>> = BTreeMap::deserialize(deserializer)?;
        let mut counts = [0; 4];
        for ((name, short), count) in NAMES.iter().zip(&mut counts) {
            // If both are present, the short name has another meaning and stays an unknown field.
            let Some(raw) = fields.remove(*name).or_else(|| fields.remove(*short)) else { continue };
            let read: Option<u64> = serde_json::from_str(raw.get())
                .map_err(|error| D::Error::custom(format_args!("{name}: {error}")))?;
            *count = read.unwrap_or_default();
        }
        let kept = |(name, raw): (String, Box<RawValue>)| Ok((name, Json::new(raw.get())?));
        let extra: Result<Fields, crate::json::InvalidJsonError> = fields.into_iter().map(kept).collect();
        let [input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens] = counts;
        Ok(Self {
            input_tokens,
            output_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            extra: extra.map_err(D::Error::custom)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_counts_round_trip_verbatim() {
        let text = r#"{"input":3,"output_tokens":null,"server":{"b":1.0,"a":1},"tier":"x","cache_read":2}"#;
        let usage: Usage = serde_json::from_str(text).expect("usage");
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens), (3, 0, 2));
        let shown = serde_json::to_string(&usage).expect("JSON");
        assert!(shown.contains(r#""server":{"b":1.0,"a":1}"#) && shown.contains(r#""tier":"x""#), "{shown}");
        assert_eq!(serde_json::from_str::<Usage>(&shown).expect("usage"), usage);
        for bad in ["1", "[]", r#"{"input":-1}"#, r#"{"input":"3"}"#, r#"{"output_tokens":1.5}"#] {
            assert!(serde_json::from_str::<Usage>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn short_name_beside_the_long_one_stays_unknown() {
        let usage: Usage = serde_json::from_str(r#"{"input_tokens":3,"input":"y"}"#).expect("usage");
        assert_eq!(usage.input_tokens, 3);
        let shown = serde_json::to_string(&usage).expect("JSON");
        assert_eq!(serde_json::from_str::<Usage>(&shown).expect("usage"), usage);
    }
}
