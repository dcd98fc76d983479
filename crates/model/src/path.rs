//! Paths inside a folder of the user, safe by construction.
//!
//! A path is a sequence of names. A name is bytes, as in the file system, and need not be UTF-8. Names that
//! would lead out of the folder, or into the data of a repository, are invalid: no such path can be
//! constructed, so other code need not check for it.
//!
//! ```text
//!   src/main.rs      ..        /etc/passwd      a//b      .git/hooks      .HG./hgrc      GIT~1      CVS/Root
//!   a path           no        no               no        no              no             no         no
//! ```
//!
//! [`REPOSITORIES`] is the only list of folders that belong to version control systems; snapshots, restores,
//! tools and imports all use it. Trees stored before a name was added to the list stay readable
//! ([`FileName::is_repository`] detects them) but are never written to disk.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer};

/// Maximum length of a name in bytes, as in common file systems.
pub const MAX_NAME: usize = 255;
/// Maximum length of a path inside a folder, in bytes.
pub const MAX_PATH: usize = 4096;
/// Prefix of Retake's temporary files. Such files are never captured or restored.
pub const TEMPORARY: &[u8] = b".retake-tmp-";

/// Folders in which version control systems store their data. Files in them can cause code to run (hooks,
/// commands in configuration), so no name that a file system may resolve to one of these is a [`FileName`].
pub const REPOSITORIES: [&str; 7] = [".git", ".hg", ".svn", ".jj", ".bzr", "CVS", "_darcs"];

/// The name of a folder entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode)]
#[cbor(transparent)]
pub struct FileName(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>);

/// A path relative to a root: at least one name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Vec<FileName>);

/// A path and the root it starts from. The main root of a workspace has the empty name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RootPath {
    /// The root.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// The path relative to the root.
    pub path: TreePath,
}

/// Reason why bytes are not a valid name or path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPathError {
    /// Empty, `.`, `..`, or contains a slash or a zero byte.
    #[error("it does not name anything inside the folder")]
    NotInside,
    /// Longer than file systems allow.
    #[error("it is longer than file systems accept")]
    TooLong,
    /// The folder of a version control system, in any spelling that a file system may resolve to it.
    #[error("it belongs to the data of a version control system")]
    Repository,
    /// Reserved for Retake's temporary files.
    #[error("it is reserved for Retake's temporary files")]
    Reserved,
}

impl FileName {
    /// Validates a name.
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidPathError> {
        check(bytes)?;
        Ok(Self(bytes.to_vec()))
    }

    /// The name as bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it belongs to a version control system. Only trees stored before the name was protected
    /// contain such a name; it must not be written to disk.
    pub fn is_repository(&self) -> bool {
        is_repository(&self.0)
    }
}

impl<'bytes, Context> Decode<'bytes, Context> for FileName {
    fn decode(
        decoder: &mut minicbor::Decoder<'bytes>,
        _: &mut Context,
    ) -> Result<Self, minicbor::decode::Error> {
        // Trees also come from other machines, so decoding must reject invalid names. Stores of older
        // versions may contain a `CVS` folder; it stays readable, and code that writes files checks
        // `is_repository`.
        let bytes = decoder.bytes()?;
        match check(bytes) {
            Ok(()) => Ok(Self(bytes.to_vec())),
            Err(InvalidPathError::Repository) if !is_one_of(&REPOSITORIES[..1], bytes) => {
                Ok(Self(bytes.to_vec()))
            }
            Err(error) => Err(minicbor::decode::Error::custom(error)),
        }
    }
}

impl TreePath {
    /// Parses a path with names separated by slashes.
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidPathError> {
        if bytes.len() > MAX_PATH {
            return Err(InvalidPathError::TooLong);
        }
        bytes.split(|&byte| byte == b'/').map(FileName::new).collect::<Result<_, _>>().map(Self)
    }

    /// A path of one name.
    pub fn of(name: FileName) -> Self {
        Self(vec![name])
    }

    /// The names from the root down; never empty.
    pub fn names(&self) -> &[FileName] {
        &self.0
    }

    /// The last name.
    pub fn name(&self) -> &FileName {
        self.0.last().expect("a path has a name")
    }

    /// The names of the parent folders; empty at the top level.
    pub fn parents(&self) -> &[FileName] {
        &self.0[..self.0.len() - 1]
    }

    /// The parent folder, unless that is the root.
    pub fn parent(&self) -> Option<Self> {
        (self.0.len() > 1).then(|| Self(self.parents().to_vec()))
    }

    /// The path of an entry in this folder.
    #[must_use]
    pub fn join(&self, name: FileName) -> Self {
        let mut names = self.0.clone();
        names.push(name);
        Self(names)
    }

    /// Whether a name on the path belongs to a version control system: see [`FileName::is_repository`].
    pub fn is_repository(&self) -> bool {
        self.0.iter().any(FileName::is_repository)
    }

    /// Whether this path equals `other` or is below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The path as bytes, with slashes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().map(FileName::bytes).collect::<Vec<_>>().join(&b'/')
    }
}

impl RootPath {
    /// A path below the main root.
    pub fn main(path: TreePath) -> Self {
        Self { root: String::new(), path }
    }
}

/// Checks that bytes are a valid name.
pub fn check(name: &[u8]) -> Result<(), InvalidPathError> {
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
        return Err(InvalidPathError::NotInside);
    }
    if name.len() > MAX_NAME {
        return Err(InvalidPathError::TooLong);
    }
    if is_repository(name) {
        return Err(InvalidPathError::Repository);
    }
    if name.starts_with(TEMPORARY) {
        return Err(InvalidPathError::Reserved);
    }
    Ok(())
}

/// Whether a file system may resolve the name to one of [`REPOSITORIES`].
fn is_repository(name: &[u8]) -> bool {
    is_one_of(&REPOSITORIES, name)
}

/// Whether a file system may resolve the name to one of these: without regard to case (of all letters, so
/// that `ſ` is an `s`), with characters that HFS+ and ext4 ignore, with the dots, spaces and streams that
/// NTFS ignores, or as an NTFS short name.
fn is_one_of(repositories: &[&str], name: &[u8]) -> bool {
    // Fast path for most names: no listed name or short name starts with this byte.
    let first = name.first().map_or(b' ', u8::to_ascii_lowercase);
    if first.is_ascii() && !b"._ghsjbc".contains(&first) {
        return false;
    }
    let text = String::from_utf8_lossy(name);
    let folded: String =
        text.chars().filter(|character| !is_ignored(*character)).flat_map(fold_case).collect();
    let seen = folded.split([':', '\\']).next().unwrap_or_default().trim_end_matches(['.', ' ']);
    repositories.iter().any(|repository| {
        seen.eq_ignore_ascii_case(repository)
            || repository.strip_prefix('.').is_some_and(|plain| is_short_name(seen, plain))
    })
}

/// Folds the case of a character in both directions, because letters such as `ſ` and the Kelvin sign match an
/// ASCII letter in only one of the cases.
fn fold_case(character: char) -> impl Iterator<Item = char> {
    character.to_uppercase().flat_map(char::to_lowercase)
}

/// Whether a name is the NTFS short name of a name with a leading dot: `GIT~1` to `GIT~4` for `.git`. After
/// four names with the same prefix, NTFS builds the short name from a hash.
fn is_short_name(name: &str, plain: &str) -> bool {
    name.rsplit_once('~').is_some_and(|(stem, number)| {
        stem.eq_ignore_ascii_case(plain) && matches!(number, "1" | "2" | "3" | "4")
    })
}

/// Characters that a file system ignores when it compares names: some of them on HFS+, and all Unicode
/// default ignorable characters on ext4 with case folding.
fn is_ignored(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Writes text unchanged, bytes that are not UTF-8 as `\xNN`, and a backslash as two.
fn write_name(name: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                formatter.write_char('\\')?;
            }
            formatter.write_char(character)?;
        }
        for byte in chunk.invalid() {
            write!(formatter, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

impl fmt::Display for FileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.0, formatter)
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_char('/')?;
            }
            write_name(&name.0, formatter)?;
        }
        Ok(())
    }
}

impl FromStr for TreePath {
    type Err = InvalidPathError;

    /// Parses the displayed form of a path, so that users can copy one. A backslash that starts no escape
    /// stands for itself.
    fn from_str(text: &str) -> Result<Self, InvalidPathError> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            let (byte, after) = match (byte, after) {
                (b'\\', [b'\\', after @ ..]) => (b'\\', after),
                (b'\\', [b'x', high, low, after @ ..]) => match (hexadecimal(*high), hexadecimal(*low)) {
                    (Some(high), Some(low)) => (high << 4 | low, after),
                    _ => (byte, &rest[1..]),
                },
                plain => plain,
            };
            bytes.push(byte);
            rest = after;
        }
        Self::new(&bytes)
    }
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

impl fmt::Debug for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

impl fmt::Display for RootPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.root.is_empty() {
            write!(formatter, "{}:", self.root)?;
        }
        self.path.fmt(formatter)
    }
}

impl Serialize for FileName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_paths_parse_back() {
        let whole = |bytes: &[u8]| TreePath::new(bytes).expect("a valid path");
        for bytes in [&b"src/main.rs"[..], b"a\\b/\xff\\x41", b"\\\\", b"\xc3\x28", "größe/ü".as_bytes()] {
            let path = whole(bytes);
            assert_eq!(path.to_string().parse(), Ok(path), "{}", bytes.escape_ascii());
        }
        let check = |text: &str, expected: &[u8]| assert_eq!(text.parse(), Ok(whole(expected)), "{text}");
        check("a\\b", b"a\\b");
        check("a\\xzz", b"a\\xzz");
        check("a\\", b"a\\");
        for text in ["", "/", "a//b", "..", "\\x2e\\x2e/a", "a\\x00", ".git/hooks", "\\x2fetc"] {
            assert!(text.parse::<TreePath>().is_err(), "{text}");
        }
    }

    #[test]
    fn paths_that_escape_or_enter_a_repository_are_refused() {
        let check = |bytes: &[u8], expected: Result<&str, InvalidPathError>| {
            let found = TreePath::new(bytes).map(|path| path.to_string());
            assert_eq!(found.as_deref().map_err(|error| *error), expected, "{}", bytes.escape_ascii());
        };
        check(b"src/main.rs", Ok("src/main.rs"));
        check(b"with space/\xff\\", Ok("with space/\\xff\\\\"));
        check(".gitignore".as_bytes(), Ok(".gitignore"));
        check(b"digit/legit~1", Ok("digit/legit~1"));
        for ordinary in [
            ".hgignore",
            ".svnignore",
            "CVSROOT",
            "cvs.rs",
            "_darcs_",
            "hg",
            "jj~5",
            "csv",
            ".bzrignore",
            ".ſ",
            "ſ",
        ] {
            check(ordinary.as_bytes(), Ok(ordinary));
        }
        for outside in [&b""[..], b".", b"..", b"/a", b"a/", b"a//b", b"a/../b", b"a\0b"] {
            check(outside, Err(InvalidPathError::NotInside));
        }
        for repository in [
            ".git",
            "a/.GIT/config",
            ".Git ",
            ".git.",
            ".git. .",
            "GIT~1",
            ".g\u{200c}it",
            ".git::$INDEX_ALLOCATION",
            ".git\\hooks",
            ".hg",
            "a/.HG/hgrc",
            ".hg.",
            "HG~1",
            ".\u{200d}hg",
            ".svn/entries",
            "svn~2",
            ".jj ",
            ".JJ",
            ".bzr/branch",
            "CVS",
            "vendor/cvs/Root",
            "CVS::$DATA",
            "_darcs/prefs",
            "_DARCS.",
            ".\u{17f}vn",
            "CV\u{17f}",
            "_darc\u{17f}",
            "\u{17f}vn~1",
            ".g\u{131}t",
            ".\u{2060}git",
            "\u{200b}.hg",
            ".s\u{ad}vn\u{fe0f}",
        ] {
            check(repository.as_bytes(), Err(InvalidPathError::Repository));
        }
        check(b".retake-tmp-1", Err(InvalidPathError::Reserved));
        check(&[b'a'; 256], Err(InvalidPathError::TooLong));
        check(&b"a/".repeat(2049)[..4098 - 1], Err(InvalidPathError::TooLong));
    }

    #[test]
    fn protected_names_of_old_stores_decode_and_are_recognised() {
        let decoded = |name: &[u8]| {
            let mut bytes = vec![0x40 + u8::try_from(name.len()).expect("short")];
            bytes.extend(name);
            minicbor::decode::<FileName>(&bytes)
        };
        assert!(decoded(b"CVS").expect("an old name decodes").is_repository());
        assert!(decoded(".\u{17f}vn".as_bytes()).expect("an old name decodes").is_repository());
        assert!(!decoded(b"src").expect("a valid name").is_repository());
        for never in [&b".git"[..], b"GIT~1", b"..", b".retake-tmp-1"] {
            assert!(decoded(never).is_err(), "{}", never.escape_ascii());
        }
    }
}
