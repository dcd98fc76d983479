//! The author of a commit, from the files in which git keeps the user's name.
//!
//! Only `user.name` and `user.email` are read. Included files are not, because a repository can name them.

use std::path::PathBuf;

use super::config::{Variable, variables};
use super::read::{self, Links};

/// Far longer than any real configuration.
const CONFIG_LIMIT: usize = 1024 * 1024;
/// Longer names are cut.
const MAX_CHARS: usize = 200;

/// Name and address of a commit's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitIdentity {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl GitIdentity {
    /// An identity without the characters that git forbids; `None` if nothing remains of the name.
    pub fn new(name: &str, email: &str) -> Option<Self> {
        let clean = |text: &str| -> String {
            let is_allowed = |letter: &char| !letter.is_control() && !matches!(letter, '<' | '>');
            let text: String = text.chars().filter(is_allowed).take(MAX_CHARS).collect();
            // Git removes these at both ends.
            text.trim_matches([' ', '.', ',', ':', ';', '"', '\\', '\'']).to_owned()
        };
        let (name, email) = (clean(name), clean(email));
        (!name.is_empty()).then_some(Self { name, email })
    }

    /// Parses `Name <address>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('<')?;
        let (email, rest) = rest.split_once('>')?;
        rest.trim().is_empty().then(|| Self::new(name, email))?
    }
}

/// The user's identity from configuration files, the most specific one first.
pub(super) fn from_files(files: &[PathBuf]) -> Option<GitIdentity> {
    let (mut name, mut email) = (None, None);
    for file in files {
        let Some(bytes) = read::read_limited(file, Links::Follow, CONFIG_LIMIT) else { continue };
        let found = variables(&String::from_utf8_lossy(&bytes));
        let last = |wanted: &str| {
            let is_wanted =
                |found: &&Variable| found.section == "user" && found.name.is_empty() && found.key == wanted;
            found.iter().rev().find(is_wanted).map(|found| found.value.clone())
        };
        name = name.or_else(|| last("name"));
        email = email.or_else(|| last("email"));
    }
    GitIdentity::new(&name?, &email?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_cleaned() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let found = GitIdentity::parse(text);
            let found = found.as_ref().map(|found| (found.name.as_str(), found.email.as_str()));
            assert_eq!(found, expected, "{text:?}");
        };
        check("Ada Lovelace <ada@example.org>", Some(("Ada Lovelace", "ada@example.org")));
        check("Ada<>", Some(("Ada", "")));
        check(" A\nuthor x\u{1b} <a\n@b>", Some(("Author x", "a@b")));
        check("<ada@example.org>", None);
        check("Ada", None);
        check("Ada <a@b> more", None);
        check("", None);
    }
}
