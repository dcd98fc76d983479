//! The folder and the limits of tool calls.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use retake_model::path::{InvalidPathError, TreePath};
use retake_workspace::apply::OpenRoot;

use super::denied_paths::DeniedPaths;
use super::openat::{self, SymlinkPolicy};

/// The context of tool calls: the open folder, limits, environment.
#[derive(Debug)]
pub struct ToolContext {
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
    pub denied_paths: DeniedPaths,
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
pub enum ToolPath {
    /// The folder.
    Root,
    /// A path below it.
    Below(TreePath),
}

/// Why a path is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is absolute and outside the folder.
    #[error("{0:?} is outside the project folder. Use a path relative to the project folder.")]
    Outside(String),
    /// It contains `..`.
    #[error("{0:?} contains `..`. Use a path from the project folder down.")]
    Upwards(String),
    /// It is otherwise invalid.
    #[error("{0:?} is not a path that tools may use: {1}.")]
    Bad(String, InvalidPathError),
    /// A rule denies it.
    #[error("{0:?} is denied to this tool by a rule of the user. Continue without it.")]
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

impl ToolContext {
    /// Opens a folder, with an empty environment.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            root: OpenRoot::open(directory)?,
            directory: directory.canonicalize()?,
            limits: Limits::default(),
            environment: Vec::new(),
            hidden: Vec::new(),
            denied_paths: DeniedPaths::default(),
        })
    }

    /// Reads a context file of the user below the folder, limited to the size of images.
    pub(crate) fn read_file(&self, text: &str) -> Result<Vec<u8>, String> {
        let tool_path = self.tool_path(text).map_err(|refused| refused.to_string())?;
        let path = tool_path.path().ok_or("it is the folder itself")?;
        let opened =
            openat::file(&self.root, path, SymlinkPolicy::Follow).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let read = opened.file.take(self.limits.image + 1).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.len() as u64 > self.limits.image {
            return Err(format!("it has more than {} bytes", self.limits.image));
        }
        Ok(bytes)
    }

    /// Parses a path.
    pub fn tool_path(&self, text: &str) -> Result<ToolPath, PathError> {
        tool_path(text, &self.directory)
    }
}

impl ToolPath {
    /// The path, unless it is the folder itself.
    pub fn path(&self) -> Option<&TreePath> {
        match self {
            Self::Root => None,
            Self::Below(path) => Some(path),
        }
    }
}

/// Parses a path in the folder `directory`.
pub(crate) fn tool_path(text: &str, directory: &Path) -> Result<ToolPath, PathError> {
    let outside = || PathError::Outside(shorten(text));
    let written = Path::new(text);
    // Check for `..` before stripping the prefix, because it may lead out of it.
    if written.components().any(|part| part == Component::ParentDir) {
        return Err(PathError::Upwards(shorten(text)));
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
        return Ok(ToolPath::Root);
    }
    TreePath::new(&names.join(&b'/'))
        .map(ToolPath::Below)
        .map_err(|error| PathError::Bad(shorten(text), error))
}

/// Shortens a text for messages.
pub(super) fn shorten(text: &str) -> String {
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
    fn a_path_outside_the_folder_is_refused() {
        let check = |text: &str, expected: Option<&str>| {
            let found = tool_path(text, Path::new("/home/ada/project"));
            match (&found, expected) {
                (Ok(ToolPath::Root), Some("")) | (Err(_), None) => {}
                (Ok(ToolPath::Below(path)), Some(expected)) if path.to_string() == expected => {}
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
