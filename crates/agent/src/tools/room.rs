//! The folder and the limits of tool calls.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use retake_model::path::{BadPath, TreePath};
use retake_workspace::apply::OpenRoot;

use super::beneath::{self, Links};
use super::closed::Closed;

/// The context of tool calls: the open folder, limits, environment.
#[derive(Debug)]
pub struct Room {
    /// The open folder.
    pub root: OpenRoot,
    /// Its path, for comparing absolute paths of calls.
    pub directory: PathBuf,
    /// Limits of calls.
    pub limits: Limits,
    /// The environment of commands, before variables that look like keys are removed.
    pub environment: Vec<(OsString, OsString)>,
    /// Further variables to hide, such as configured key variables.
    pub hidden: Vec<String>,
    /// Denied paths, from [`ApprovalPolicy::denied_paths`](crate::approval::ApprovalPolicy::denied_paths).
    pub closed: Closed,
}

/// Limits of tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum characters of an output.
    pub text: usize,
    /// Maximum characters of a line.
    pub line: usize,
    /// Default number of lines of `read`.
    pub lines: usize,
    /// Maximum names of `list` and `glob`.
    pub names: usize,
    /// Maximum bytes of a file to edit or search.
    pub file: u64,
    /// Maximum bytes of an image.
    pub image: u64,
    /// Maximum bytes of command output to store.
    pub whole: usize,
    /// Default timeout of a command.
    pub time: Duration,
    /// Maximum timeout of a command.
    pub longest_time: Duration,
    /// Grace period after a timeout before a command is killed.
    pub grace: Duration,
    /// Grace period after an interrupt; the command ends within 200 milliseconds.
    pub interrupted_grace: Duration,
}

/// A path of a call: the folder itself or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The folder.
    Root,
    /// A path below it.
    Below(TreePath),
}

/// Why a path is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefused {
    /// It is absolute and outside the folder.
    #[error("{0:?} is outside the project folder. Use a path relative to the project folder.")]
    Outside(String),
    /// It contains `..`.
    #[error("{0:?} contains `..`. Use a path from the project folder down.")]
    Upwards(String),
    /// It is otherwise invalid.
    #[error("{0:?} is not a path that tools may use: {1}.")]
    Bad(String, BadPath),
    /// A rule denies it.
    #[error("{0:?} is closed to this tool by a rule of the user's. Do without it.")]
    Closed(String),
    /// It is the folder itself.
    #[error("The path names the project folder itself. Name a file in it.")]
    Root,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text: 30_000,
            line: 2_000,
            lines: 2_000,
            names: 500,
            file: 20 * 1024 * 1024,
            image: 5 * 1024 * 1024,
            whole: 16 * 1024 * 1024,
            time: Duration::from_mins(2),
            longest_time: Duration::from_mins(10),
            grace: Duration::from_millis(500),
            interrupted_grace: Duration::from_millis(80),
        }
    }
}

impl Room {
    /// Opens a folder, with an empty environment.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            root: OpenRoot::open(directory)?,
            directory: directory.canonicalize()?,
            limits: Limits::default(),
            environment: Vec::new(),
            hidden: Vec::new(),
            closed: Closed::default(),
        })
    }

    /// Reads a context file of the user below the folder, limited to the size of images.
    pub(crate) fn read_file(&self, text: &str) -> Result<Vec<u8>, String> {
        let spot = self.spot(text).map_err(|refused| refused.to_string())?;
        let path = spot.path().ok_or("it is the folder itself")?;
        let opened = beneath::file(&self.root, path, Links::Follow).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let read = opened.file.take(self.limits.image + 1).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.len() as u64 > self.limits.image {
            return Err(format!("it has more than {} bytes", self.limits.image));
        }
        Ok(bytes)
    }

    /// Parses a path.
    pub fn spot(&self, text: &str) -> Result<Spot, PathRefused> {
        spot(text, &self.directory)
    }
}

impl Spot {
    /// The path, unless it is the folder itself.
    pub fn path(&self) -> Option<&TreePath> {
        match self {
            Self::Root => None,
            Self::Below(path) => Some(path),
        }
    }
}

/// Parses a path in the folder `directory`.
pub(crate) fn spot(text: &str, directory: &Path) -> Result<Spot, PathRefused> {
    let outside = || PathRefused::Outside(shortened(text));
    let written = Path::new(text);
    // Check for `..` before stripping the prefix, because it may lead out of it.
    if written.components().any(|part| part == Component::ParentDir) {
        return Err(PathRefused::Upwards(shortened(text)));
    }
    let inner =
        if written.is_absolute() { written.strip_prefix(directory).map_err(|_| outside())? } else { written };
    let names: Vec<&[u8]> = inner
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.as_encoded_bytes()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return Ok(Spot::Root);
    }
    TreePath::new(&names.join(&b'/'))
        .map(Spot::Below)
        .map_err(|error| PathRefused::Bad(shortened(text), error))
}

/// Shortens a text for messages.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_the_folder_or_is_refused() {
        let check = |text: &str, expected: Option<&str>| {
            let found = spot(text, Path::new("/home/ada/project"));
            match (&found, expected) {
                (Ok(Spot::Root), Some("")) | (Err(_), None) => {}
                (Ok(Spot::Below(path)), Some(expected)) if path.to_string() == expected => {}
                _ => panic!("{text:?} gave {found:?}, not {expected:?}"),
            }
        };
        for root in ["", ".", "./", "/home/ada/project", "/home/ada/project/", "/home/ada/./project/."] {
            check(root, Some(""));
        }
        check("src/main.rs", Some("src/main.rs"));
        check("./src//main.rs/", Some("src/main.rs"));
        check("/home/ada/project/src/main.rs", Some("src/main.rs"));
        check("a\nb", Some("a\nb"));
        check("~/x", Some("~/x"));
        check("...", Some("..."));
        for outside in [
            "..",
            "../x",
            "src/../../x",
            "src/..",
            "/",
            "/etc/passwd",
            "/home/ada/project2/x",
            "/home/ada/project/../x",
            "//etc/passwd",
            ".git",
            ".git/config",
            "a/.GIT/hooks/pre-commit",
            ".git./x",
            "git~1/config",
            ".g\u{200c}it/config",
            ".retake-tmp-1",
            "a\0b",
        ] {
            check(outside, None);
        }
        check(&"a".repeat(256), None);
        check(&"a/".repeat(3000), None);
        check(&"../".repeat(100_000), None);
    }
}
