//! The folder that calls work in, and what they may use up.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use retake_model::path::{BadPath, TreePath};
use retake_workspace::apply::OpenRoot;

use super::beneath::{self, Links};
use super::closed::Closed;

/// The folder that calls work in, held open, with what goes along.
#[derive(Debug)]
pub struct Room {
    /// The folder.
    pub root: OpenRoot,
    /// Where it is. Only for what has to be a path: absolute paths that a model names are compared with it.
    pub directory: PathBuf,
    /// What calls may use up.
    pub limits: Limits,
    /// What commands find in their environment, before names that look like keys are taken out.
    pub environment: Vec<(OsString, OsString)>,
    /// More names that commands must not see, such as those that the user's config reads keys from.
    pub hidden: Vec<String>,
    /// Paths that rules deny, from [`Policy::closed`](crate::approval::Policy::closed).
    pub closed: Closed,
}

/// What calls may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest text that a model is given, in characters.
    pub text: usize,
    /// The longest line in it, in characters.
    pub line: usize,
    /// How many lines `read` gives unless told otherwise.
    pub lines: usize,
    /// How many names `list` and `glob` give.
    pub names: usize,
    /// The largest file that is edited or searched, in bytes.
    pub file: u64,
    /// The largest image, in bytes.
    pub image: u64,
    /// How much of what a command writes is kept, in bytes.
    pub whole: usize,
    /// How long a command runs unless told otherwise.
    pub time: Duration,
    /// How long it may be told to run.
    pub longest_time: Duration,
    /// How long a command that is out of time has to stop by itself before it is killed.
    pub grace: Duration,
    /// The same for a command that a person stops: it is over within 200 milliseconds.
    pub interrupted_grace: Duration,
}

/// Something in the folder, or the folder itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The folder itself.
    Root,
    /// Something in it.
    Below(TreePath),
}

/// Why a path is not one that a tool goes to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefused {
    /// It is absolute, and leads elsewhere.
    #[error("{0:?} is outside the project folder. Use a path relative to the project folder.")]
    Outside(String),
    /// It goes up.
    #[error("{0:?} contains `..`. Use a path from the project folder down.")]
    Upwards(String),
    /// It is no path for other reasons.
    #[error("{0:?} is not a path that tools may use: {1}.")]
    Bad(String, BadPath),
    /// A rule of the user's closes it.
    #[error("{0:?} is closed to this tool by a rule of the user's. Do without it.")]
    Closed(String),
    /// A file is needed.
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
    /// The room in the folder at that path, with an empty environment.
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

    /// All of a file that a user named, which is below the folder and no larger than an image may be.
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

    /// What a text means as a path in this room.
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

/// What a text means as a path in the folder at `directory`.
pub(crate) fn spot(text: &str, directory: &Path) -> Result<Spot, PathRefused> {
    let outside = || PathRefused::Outside(shortened(text));
    let written = Path::new(text);
    // Before anything is cut off: what leads up may lead anywhere, whatever stands before it.
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

/// Enough of a text to recognise it by.
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
