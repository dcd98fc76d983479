//! Patterns of the options: always captured, never captured, and likely secrets.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::options::{Options, SECRETS};
use super::workspace::OpenError;
use crate::pattern;

/// Compiled patterns. Paths begin with a slash and the name of an entry of the root.
#[derive(Debug)]
pub(super) struct Globs {
    include: Gitignore,
    exclude: Gitignore,
    secrets: Gitignore,
    /// Literal prefixes of `include` patterns with a slash: the names before the first wildcard, and whether something
    /// may match further down.
    literal_prefixes: Vec<Vec<String>>,
    /// Changes whenever a result might.
    pub(super) fingerprint: [u8; 16],
}

impl Globs {
    pub(super) fn compile(options: &Options) -> Result<Self, OpenError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"rules 1");
        for list in [&options.include, &options.exclude, &options.secrets] {
            hasher.update(&(list.len() as u64).to_le_bytes());
            for pattern in list {
                hasher.update(&(pattern.len() as u64).to_le_bytes());
                hasher.update(pattern.as_bytes());
            }
        }
        for pattern in SECRETS {
            hasher.update(pattern.as_bytes());
            hasher.update(b"\n");
        }
        hasher.update(&options.largest_file.to_le_bytes());
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        let secrets = SECRETS.iter().copied().chain(options.secrets.iter().map(String::as_str));
        Ok(Self {
            include: compile(options.include.iter().map(String::as_str))?,
            exclude: compile(options.exclude.iter().map(String::as_str))?,
            secrets: compile(secrets)?,
            literal_prefixes: options.include.iter().filter_map(|pattern| literal_prefix(pattern)).collect(),
            fingerprint,
        })
    }

    pub(super) fn includes(&self, path: &Path, is_folder: bool) -> bool {
        !self.include.is_empty() && matches!(self.include.matched(path, is_folder), Match::Ignore(_))
    }

    /// Returns whether any pattern includes something.
    pub(super) fn has_included(&self) -> bool {
        !self.include.is_empty()
    }

    pub(super) fn excludes(&self, path: &Path, is_folder: bool) -> bool {
        !self.exclude.is_empty() && matches!(self.exclude.matched(path, is_folder), Match::Ignore(_))
    }

    pub(super) fn is_secret(&self, path: &Path, is_folder: bool) -> bool {
        matches!(self.secrets.matched(path, is_folder), Match::Ignore(_))
    }

    /// Returns whether something below an excluded folder may be included.
    pub(super) fn may_contain_included(&self, path: &Path) -> bool {
        self.literal_prefixes.iter().any(|literal_prefix| {
            let mut names = path.iter().skip(1);
            literal_prefix.iter().zip(&mut names).all(|(left, right)| left.as_str() == right)
        })
    }
}

fn compile<'patterns>(patterns: impl Iterator<Item = &'patterns str>) -> Result<Gitignore, OpenError> {
    let mut builder = GitignoreBuilder::new("/");
    for pattern in patterns {
        let fail = |reason: String| OpenError::Pattern { pattern: pattern.to_owned(), reason };
        pattern::check(pattern).map_err(|error| fail(error.to_string()))?;
        builder.add_line(None, pattern).map_err(|error| fail(error.to_string()))?;
    }
    builder.build().map_err(|error| OpenError::Pattern { pattern: String::new(), reason: error.to_string() })
}

/// The literal names that a pattern with a slash begins with.
fn literal_prefix(pattern: &str) -> Option<Vec<String>> {
    let pattern = pattern.trim_end_matches('/');
    let anchored = pattern.contains('/') && !pattern.starts_with("**/");
    let plain = |name: &&str| !name.contains(['*', '?', '[', '\\', '{']);
    let names = pattern.trim_start_matches('/').split('/').take_while(plain).map(str::to_owned);
    anchored.then(|| names.collect())
}
