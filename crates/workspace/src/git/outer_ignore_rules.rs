//! Ignore files of the parents of a folder, up to the top of its repository.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::locate;
use super::read::{self, Links};

/// Larger files are not ignore files and are not read.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Contents of the four kinds of ignore files in one folder.
type Texts = [Option<Vec<u8>>; 4];

/// Ignore rules from the parents of a folder.
pub(crate) struct OuterIgnoreRules {
    /// Path from the top of the repository to the folder: empty, or names that each begin with a slash.
    pub(crate) prefix: Vec<u8>,
    /// Ignore files of the parents, outermost first: the folder in the form of `prefix`, and the texts of
    /// `.retakeignore`, `.ignore`, `.gitignore` and the repository's `info/exclude`.
    pub(crate) texts: Vec<(Vec<u8>, Texts)>,
}

/// Reads the ignore files of the parents. There are none without a repository.
pub(crate) fn outer_ignore_rules(folder: &Path) -> OuterIgnoreRules {
    let mut outer_ignore_rules = OuterIgnoreRules { prefix: Vec::new(), texts: Vec::new() };
    let Some(repository) = locate::locate(folder) else { return outer_ignore_rules };
    let Some(below) = repository.root.as_deref().and_then(|root| folder.strip_prefix(root).ok()) else {
        return outer_ignore_rules;
    };
    let text = |path: &Path| read::read_limited(path, Links::Refuse, MAX_BYTES);
    let exclude = text(&repository.common.join("info/exclude"));
    outer_ignore_rules.texts.push((Vec::new(), [None, None, None, exclude]));
    let mut here = repository.root.clone().unwrap_or_default();
    for name in below {
        let texts = [".retakeignore", ".ignore", ".gitignore"].map(|file| text(&here.join(file)));
        let [own, general, git] = texts;
        outer_ignore_rules.texts.push((outer_ignore_rules.prefix.clone(), [own, general, git, None]));
        outer_ignore_rules.prefix.push(b'/');
        outer_ignore_rules.prefix.extend(name.as_bytes());
        here.push(name);
    }
    outer_ignore_rules
}
