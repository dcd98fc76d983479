//! Reads a repository's configuration: remotes, and settings that affect the comparison of files.
//!
//! A small parser of git's format: sections, quoted names, quoted and continued values, comments. It follows no
//! includes and evaluates nothing, so that addresses are returned as the repository has them, without the user's
//! `insteadOf`.

use std::path::Path;

use super::read::{self, Links};
use super::url::without_credentials;

/// Far longer than any real configuration.
const CONFIG_LIMIT: usize = 1024 * 1024;

/// Text of a repository's configuration.
pub(super) fn text(common: &Path) -> Option<String> {
    let bytes = read::read_limited(&common.join("config"), Links::Follow, CONFIG_LIMIT)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Address of `origin`, or else of the first remote that has one.
pub(super) fn remote(common: &Path) -> Option<String> {
    let remotes = remotes(&text(common)?);
    let origin = remotes.iter().find(|(name, _)| name == "origin");
    let (_, address) = origin.or(remotes.first())?;
    without_credentials(address)
}

/// First address of each remote, in configuration order.
fn remotes(text: &str) -> Vec<(String, String)> {
    let mut remotes: Vec<(String, String)> = Vec::new();
    for Variable { section, name, key, value: address } in variables(text) {
        if section != "remote" || key != "url" {
            continue;
        }
        match remotes.iter_mut().find(|(known, _)| *known == name) {
            // An empty address resets the list.
            Some((_, first)) if first.is_empty() || address.is_empty() => *first = address,
            Some(_) => {}
            None => remotes.push((name, address)),
        }
    }
    remotes.retain(|(_, address)| !address.is_empty());
    remotes
}

/// A variable of the configuration, such as `remote.origin.url`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Variable {
    /// Section in lower case: `remote`.
    pub(super) section: String,
    /// Subsection as written: `origin`; empty if there is none.
    pub(super) name: String,
    /// Key in lower case: `url`.
    pub(super) key: String,
    /// Value. A variable without one means `true`.
    pub(super) value: String,
}

/// All variables in order, up to the first malformed line.
pub(super) fn variables(text: &str) -> Vec<Variable> {
    let mut variables = Vec::new();
    let mut scanner = Scanner { rest: text.trim_start_matches('\u{feff}') };
    let mut section = (String::new(), String::new());
    while let Some(item) = scanner.next() {
        match item {
            Item::Section(title, name) => section = (title, name),
            Item::Variable(key, value) => {
                let (section, name) = section.clone();
                variables.push(Variable { section, name, key, value });
            }
            Item::Comment => {}
        }
    }
    variables
}

enum Item {
    /// Start of a section: its title and quoted name.
    Section(String, String),
    /// A variable and its value.
    Variable(String, String),
    Comment,
}

struct Scanner<'text> {
    rest: &'text str,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<Item> {
        self.rest = self.rest.trim_start();
        match self.take()? {
            '[' => self.section(),
            '#' | ';' => {
                self.skip_line();
                Some(Item::Comment)
            }
            first => Some(self.variable(first)),
        }
    }

    fn take(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end + 1..]);
    }

    /// `remote "name"]` or, in the old syntax, `remote.name]`; `None` if it is not terminated.
    fn section(&mut self) -> Option<Item> {
        let end = self
            .rest
            .find(|character: char| !(character.is_ascii_alphanumeric() || "-.".contains(character)))?;
        let title = self.rest[..end].to_ascii_lowercase();
        self.rest = self.rest[end..].trim_start_matches([' ', '\t']);
        match self.take()? {
            ']' => {
                let (title, name) = title.split_once('.').unwrap_or((&title, ""));
                Some(Item::Section(title.to_owned(), name.to_owned()))
            }
            '"' => {
                let mut name = String::new();
                loop {
                    match self.take()? {
                        '"' => break,
                        '\n' => return None,
                        '\\' => name.push(self.take()?),
                        plain => name.push(plain),
                    }
                }
                (self.take()? == ']').then_some(Item::Section(title, name))
            }
            _ => None,
        }
    }

    fn variable(&mut self, first: char) -> Item {
        let end = self.rest.find(['=', '\n']).unwrap_or(self.rest.len());
        let key = format!("{first}{}", &self.rest[..end]).trim().to_ascii_lowercase();
        self.rest = &self.rest[end..];
        match self.take() {
            Some('=') => Item::Variable(key, self.value()),
            _ => Item::Variable(key, String::new()),
        }
    }

    /// The rest of a line, and of the lines that continue it.
    fn value(&mut self) -> String {
        let mut value = String::new();
        let mut quoted = false;
        // Trailing white space is dropped unless it was quoted.
        let mut kept = 0;
        while let Some(character) = self.take() {
            match character {
                '\n' => break,
                '#' | ';' if !quoted => {
                    self.skip_line();
                    break;
                }
                '"' => quoted = !quoted,
                '\\' => match self.take() {
                    Some('\n') | None => continue,
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some(escaped) => value.push(escaped),
                },
                space if space.is_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(space);
                    }
                    continue;
                }
                plain => value.push(plain),
            }
            kept = value.len();
        }
        value.truncate(kept);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = remotes(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, address)| (&**name, &**address)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn remotes_are_read_as_git_writes_them() {
        check(
            "[remote \"origin\"]\n\turl = https://example.org/a\n\tfetch = +x:y\n",
            &[("origin", "https://example.org/a")],
        );
        check("[remote \"b\"]\nurl=1\n[core]\nurl=2\n[remote \"a\"]\nurl=3", &[("b", "1"), ("a", "3")]);
    }

    #[test]
    fn unusual_configuration_syntax_is_parsed() {
        check("[Remote \"x\"] URL = a ; comment", &[("x", "a")]);
        check("[remote.x]\nurl = a", &[("x", "a")]);
        check("[remote \"q\\\"uo\\\\te\"]\nurl = a", &[("q\"uo\\te", "a")]);
        check("[remote \"x\"]\nurl = \"a # b\" # c\n", &[("x", "a # b")]);
        check("[remote \"x\"]\nurl = a\\\n  b\n", &[("x", "a  b")]);
        check("[remote \"x\"]\nurl = a\nurl = b\npushurl = c\n", &[("x", "a")]);
        check("[remote \"x\"]\nurl = a\nurl =\nurl = b\n", &[("x", "b")]);
        check("[remote \"x\"]\nurl\n[remote \"y\"]\nurl=\n", &[]);
        check("\u{feff}# c\r\n[remote \"x\"]\r\n\turl = a\r\n", &[("x", "a")]);
        check("[include]\npath = /etc/passwd\n[url \"a\"]\ninsteadOf = b\n", &[]);
        check("[remote \"x\"]\n[remote \"x\"]\nurl = a\n", &[("x", "a")]);
    }

    #[test]
    fn malformed_configuration_ends_parsing() {
        for text in [
            "[",
            "[remote",
            "[remote \"x",
            "[remote \"x\"",
            "[remote \"x\ny\"]\nurl=a",
            "[]\nurl=a",
            "=\n=",
            "\\",
        ] {
            check(text, &[]);
        }
    }
}
