//! A key that cannot be printed by mistake.

use std::borrow::Cow;
use std::fmt;

/// A key. Neither `{}` nor `{:?}` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Replaces a key in redacted text.
const HIDDEN: &str = "[key]";

/// Do not redact shorter texts: they occur by chance, and removing them would only garble the output.
const SHORTEST: usize = 6;

impl Secret {
    /// A key, without the surrounding white space that files and terminals add.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The key itself, for the code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Redacts every occurrence of the key in the text.
    pub fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        if self.0.len() < SHORTEST || !text.contains(&self.0) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.replace(&self.0, HIDDEN))
    }

    /// Sorts secrets for redaction, because one may be part of another.
    pub(crate) fn longest_first(secrets: &mut [Self]) {
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.0.len()));
    }

    /// Whether the key fits in a header: visible ASCII, and not empty.
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
    fn only_keys_that_fit_into_a_header_are_accepted() {
        for (text, expected) in
            [("sk-1", true), ("", false), ("a b", false), ("a\nb", false), ("ключ", false)]
        {
            assert_eq!(Secret::new(text).is_usable(), expected, "{text:?}");
        }
    }
}
