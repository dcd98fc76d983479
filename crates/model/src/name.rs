//! Names that users give: titles, take names, tags, roles.
//!
//! A name is one line of printable text. It is checked on input, so that later code can rely on a name that
//! does not break a line, a path or a terminal.

use crate::limits::{NAME_CHARS, TITLE_CHARS};

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A thread's title.
    Title,
    /// A take's name.
    Take,
    /// A tag.
    Tag,
    /// A role.
    Role,
    /// A saved version.
    Save,
    /// A context preset.
    Preset,
}

/// Reason why a name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNameError {
    /// The name is empty after trimming.
    #[error("{} must not be empty", what(*.0))]
    Empty(NameKind),
    /// Longer than the limit.
    #[error("{} has at most {limit} characters", what(*.kind))]
    TooLong {
        /// The kind of the name.
        kind: NameKind,
        /// Maximum number of characters.
        limit: usize,
    },
    /// A saved version of that name could not be found, because the name has another meaning as a revision.
    #[error("{name:?} cannot name a saved version, because it already means {meaning}; choose another name")]
    Reserved {
        /// The name.
        name: String,
        /// What it means.
        meaning: &'static str,
    },
    /// It contains a character that names must not have.
    #[error("{} must not contain {character:?}", what(*.kind))]
    Character {
        /// The kind of the name.
        kind: NameKind,
        /// The first such character.
        character: char,
    },
}

/// Trims and validates a name.
pub fn check(kind: NameKind, text: &str) -> Result<String, InvalidNameError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(InvalidNameError::Empty(kind));
    }
    let limit = if kind == NameKind::Title { TITLE_CHARS } else { NAME_CHARS };
    if text.chars().count() > limit {
        return Err(InvalidNameError::TooLong { kind, limit });
    }
    match text.chars().find(|&character| forbidden(kind, character)) {
        Some(character) => Err(InvalidNameError::Character { kind, character }),
        None => Ok(text.to_owned()),
    }
}

/// Trims and validates the name of a version that is saved now. Rejects names that mean something else where a
/// revision is expected.
pub fn check_new_save(text: &str) -> Result<String, InvalidNameError> {
    let name = check(NameKind::Save, text)?;
    let meaning = if name.parse::<u64>().is_ok() {
        "the version with this number"
    } else if name == "folder" {
        "the current files"
    } else if name.starts_with("take:") {
        "the files of a take"
    } else if name.starts_with("turn:") {
        "a turn"
    } else {
        return Ok(name);
    };
    Err(InvalidNameError::Reserved { name, meaning })
}

/// Removes characters that a title must not contain.
pub fn strip_for_title(text: &str) -> String {
    text.chars().filter(|character| !forbidden(NameKind::Title, *character)).collect()
}

/// The base of a take name: the part before `_take_`.
pub fn base(name: &str) -> &str {
    name.split_once("_take_").map_or(name, |(base, _)| base)
}

fn what(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Title => "a title",
        NameKind::Take => "a take's name",
        NameKind::Tag => "a tag",
        NameKind::Role => "a role",
        NameKind::Save => "the name of a saved version",
        NameKind::Preset => "a context preset's name",
    }
}

fn forbidden(kind: NameKind, character: char) -> bool {
    let invisible = character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    // Zero-width joiners connect emoji and are shown as part of them.
    let invisible = invisible && character != '\u{200d}';
    match kind {
        NameKind::Title | NameKind::Role | NameKind::Save => invisible,
        // The command line uses `thread/take` and `tag,tag` as separators.
        NameKind::Take | NameKind::Preset => invisible || character == '/',
        NameKind::Tag => invisible || character == ',' || character.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_printable_line() {
        fn check_all(kind: NameKind, good: &[&str], bad: &[&str]) {
            for text in good {
                assert!(check(kind, text).is_ok(), "{kind:?} {text:?}");
            }
            for text in bad {
                assert!(check(kind, text).is_err(), "{kind:?} {text:?}");
            }
        }
        let long = "x".repeat(10_000);
        check_all(
            NameKind::Title,
            &["Fix login", "修正", "👩‍💻 pairing", "a/b"],
            &["", "  ", "a\nb", "\u{1b}[2J", "\u{202e}evil", &long],
        );
        check_all(NameKind::Take, &["main", "main_take_2"], &["a/b", "\0", ""]);
        check_all(NameKind::Tag, &["bug", "v1.2"], &["two words", "a,b", ""]);
        check_all(NameKind::Role, &["Vendor API"], &["\u{7}"]);
    }

    #[test]
    fn a_saved_version_has_no_name_with_another_meaning() {
        for reserved in ["5", " 12 ", "0", "folder", "take:main", "take:", "turn:3"] {
            let refused = check_new_save(reserved);
            assert!(matches!(refused, Err(InvalidNameError::Reserved { .. })), "{reserved:?}: {refused:?}");
            // Stored ones stay valid.
            assert!(check(NameKind::Save, reserved).is_ok());
        }
        for free in ["v5", "5 done", "Folder", "folders", "main", "take two", "retake:x", "-1"] {
            assert_eq!(check_new_save(free).as_deref(), Ok(free));
        }
    }

    #[test]
    fn base_of_a_take_name_precedes_its_number() {
        assert_eq!(base("auth_take_12"), "auth");
        assert_eq!(base("auth"), "auth");
    }
}
