//! A key that cannot be printed by mistake.

use std::borrow::Cow;
use std::fmt;

/// A key. Neither `{}` nor `{:?}` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What stands where a key stood.
const HIDDEN: &str = "[key]";

/// Shorter texts occur by chance; to hide them would garble what is said, and hide nothing.
const SHORTEST: usize = 6;

impl Secret {
    /// The key in that text, without the white space around it that files and terminals leave.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The key itself, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with the key taken out wherever it occurs.
    pub fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        if self.0.len() < SHORTEST || !text.contains(&self.0) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.replace(&self.0, HIDDEN))
    }

    /// In the order in which they are taken out of a text: one may be a part of another.
    pub(crate) fn longest_first(secrets: &mut [Self]) {
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.0.len()));
    }

    /// Whether it can stand in a header: visible ASCII, and something at all.
    pub(crate) fn is_usable(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let secret = Secret::new(" sk-hidden-one\n");
        assert_eq!(format!("{secret} {secret:?}"), "[key] [key]");
        let check = |text: &str, expected: &str| assert_eq!(secret.redact(text), expected);
        check("nothing here", "nothing here");
        check("Bearer sk-hidden-one, sk-hidden-one", "Bearer [key], [key]");
        assert_eq!(Secret::new("a").redact("banana"), "banana");
    }

    #[test]
    fn only_what_a_header_can_carry_is_usable() {
        for (text, expected) in
            [("sk-1", true), ("", false), ("a b", false), ("a\nb", false), ("ключ", false)]
        {
            assert_eq!(Secret::new(text).is_usable(), expected, "{text:?}");
        }
    }
}
