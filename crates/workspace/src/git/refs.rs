//! Resolves `HEAD` to a branch and a commit.
//!
//! Anyone may have written the name in the file, and it becomes part of a path, so only names that git itself accepts
//! are resolved. Repositories with reftables have an invalid name in `HEAD` on purpose; for these, branch and commit
//! are unknown.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::read::{self, Links};

/// Longer than any reference that git writes.
const REFERENCE_LIMIT: usize = 4 * 1024;
/// Enough for half a million references.
const PACKED_LIMIT: u64 = 64 * 1024 * 1024;
/// Git follows the same number of steps.
const MAX_DEPTH: usize = 5;

/// The checked-out branch and commit.
#[derive(Default)]
pub(super) struct Head {
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
}

/// Content of a reference.
enum Reference {
    /// Name of another reference.
    Symbolic(Vec<u8>),
    /// A commit.
    Commit(String),
    /// The reference does not exist here.
    Absent,
    /// The file is not a reference.
    Malformed,
}

/// Reads the checked-out branch and commit.
pub(super) fn head(git: &Path, common: &Path) -> Head {
    let mut name = match read_loose(&git.join("HEAD")) {
        Reference::Symbolic(name) => name,
        Reference::Commit(commit) => {
            return Head { branch: None, commit: Some(commit) };
        }
        Reference::Absent | Reference::Malformed => return Head::default(),
    };
    for _ in 0..MAX_DEPTH {
        if !is_valid_name(&name) {
            return Head::default();
        }
        let folder = if is_of_one_work_tree(&name) { git } else { common };
        let commit = match read_loose(&folder.join(OsStr::from_bytes(&name))) {
            Reference::Symbolic(next) => {
                name = next;
                continue;
            }
            Reference::Commit(commit) => Some(commit),
            Reference::Absent => read_packed(common, &name),
            Reference::Malformed => None,
        };
        let branch = name.strip_prefix(b"refs/heads/").and_then(|short| str::from_utf8(short).ok());
        return Head { branch: branch.map(str::to_owned), commit };
    }
    Head::default()
}

/// The commit of a reference.
pub(super) fn resolve(git: &Path, common: &Path, name: &[u8]) -> Option<String> {
    let mut name = name.to_vec();
    for _ in 0..MAX_DEPTH {
        if !is_valid_name(&name) {
            return None;
        }
        let folder = if is_of_one_work_tree(&name) { git } else { common };
        match read_loose(&folder.join(OsStr::from_bytes(&name))) {
            Reference::Symbolic(next) => name = next,
            Reference::Commit(commit) => return Some(commit),
            Reference::Absent => return read_packed(common, &name),
            Reference::Malformed => return None,
        }
    }
    None
}

fn read_loose(path: &Path) -> Reference {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Reference::Absent;
    };
    if metadata.is_dir() {
        // `refs/heads/a` is a folder if only `a/b` is loose; `a` itself may still be packed.
        return Reference::Absent;
    }
    if metadata.is_symlink() {
        // Before symbolic references, git used symbolic links, which were never followed as files.
        return match fs::read_link(path) {
            Ok(target) if target.as_os_str().as_bytes().starts_with(b"refs/") => {
                Reference::Symbolic(target.into_os_string().as_bytes().to_vec())
            }
            _ => Reference::Malformed,
        };
    }
    let Some(bytes) = read::read_limited(path, Links::Refuse, REFERENCE_LIMIT) else {
        return Reference::Malformed;
    };
    match bytes.strip_prefix(b"ref:") {
        Some(name) => Reference::Symbolic(name.trim_ascii().to_vec()),
        None => first_word(&bytes).and_then(as_commit).map_or(Reference::Malformed, Reference::Commit),
    }
}

fn first_word(bytes: &[u8]) -> Option<&[u8]> {
    bytes.split(u8::is_ascii_whitespace).next()
}

fn as_commit(word: &[u8]) -> Option<String> {
    let digits = matches!(word.len(), 40 | 64) && word.iter().all(u8::is_ascii_hexdigit);
    digits.then(|| String::from_utf8_lossy(word).to_ascii_lowercase())
}

/// Whether git accepts the name for a branch.
pub(super) fn is_valid_branch(name: &str) -> bool {
    name != "HEAD"
        && name != "@"
        && !name.starts_with('-')
        && is_valid_name(format!("refs/heads/{name}").as_bytes())
}

/// A branch that has this name, or that needs a folder of this name, or a file where this one needs a folder.
pub(super) fn branch_in_the_way(common: &Path, name: &str) -> Option<String> {
    let prefix = "refs/heads/";
    let full = format!("{prefix}{name}");
    let file_at = |name: &str| fs::symlink_metadata(common.join(name)).is_ok_and(|found| !found.is_dir());
    let above =
        || full.match_indices('/').map(|(end, _)| &full[..end]).filter(|above| above.len() > prefix.len());
    let loose = std::iter::once(full.as_str()).chain(above()).find(|name| file_at(name)).map(str::to_owned);
    let below = || first_file_below(&common.join(&full), 0).map(|below| format!("{full}/{below}"));
    let packed = || {
        let file = read::open(&common.join("packed-refs"), Links::Follow)?;
        read::find_line(file, PACKED_LIMIT, REFERENCE_LIMIT, |line| {
            let start = line.iter().position(|byte| *byte == b' ')? + 1;
            let found = str::from_utf8(&line[start..]).ok()?;
            let is_part =
                |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'));
            let is_in_the_way =
                found == full || is_part(found, &full) || found.starts_with(prefix) && is_part(&full, found);
            is_in_the_way.then(|| found.to_owned())
        })
    };
    loose.or_else(below).or_else(packed).map(|found| found.strip_prefix(prefix).unwrap_or(&found).to_owned())
}

/// The path of a reference below a folder; folders without one are not in the way.
fn first_file_below(folder: &Path, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH || !fs::symlink_metadata(folder).ok()?.is_dir() {
        return None;
    }
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().ok()?.is_dir() {
            first_file_below(&entry.path(), depth + 1).map(|below| format!("{name}/{below}"))
        } else {
            Some(name)
        }
    })
}

/// Whether the branch is checked out somewhere, perhaps without a commit yet.
pub(super) fn is_checked_out(git: &Path, common: &Path, name: &str) -> bool {
    let worktrees =
        fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted = format!("refs/heads/{name}");
    worktrees.chain([git.to_owned(), common.to_owned()]).any(|folder| {
        matches!(read_loose(&folder.join("HEAD")), Reference::Symbolic(name) if name == wanted.as_bytes())
    })
}

fn read_packed(common: &Path, name: &[u8]) -> Option<String> {
    let file = read::open(&common.join("packed-refs"), Links::Follow)?;
    read::find_line(file, PACKED_LIMIT, REFERENCE_LIMIT, |line| {
        let (commit, rest) = line.split_at_checked(line.len().checked_sub(name.len() + 1)?)?;
        (rest[0] == b' ' && &rest[1..] == name).then(|| as_commit(commit)).flatten()
    })
}

fn is_of_one_work_tree(name: &[u8]) -> bool {
    [&b"refs/bisect/"[..], b"refs/worktree/", b"refs/rewritten/"].iter().any(|start| name.starts_with(start))
}

/// The rules of `git check-ref-format`, for names below `refs/`.
fn is_valid_name(name: &[u8]) -> bool {
    let forbidden = |byte: &u8| {
        *byte < b' ' || matches!(byte, b' ' | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\' | 0x7f)
    };
    let part_is_valid =
        |part: &[u8]| !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock");
    let has = |pair: &[u8; 2]| name.array_windows().any(|window| window == pair);
    name.starts_with(b"refs/")
        && name.len() < REFERENCE_LIMIT
        && !name.iter().any(forbidden)
        && !has(b"..")
        && !has(b"@{")
        && !name.ends_with(b".")
        && name.split(|byte| *byte == b'/').all(part_is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_names_follow_the_rules_of_git() {
        for name in ["try", "retake/second-try", "a.b", "ü"] {
            assert!(is_valid_branch(name), "{name:?}");
        }
        for name in ["", "HEAD", "@", "-f", "a b", "a..b", "/a", "a/", "a.lock", "../a", "a/./b", "a\nb"] {
            assert!(!is_valid_branch(name), "{name:?}");
        }
    }

    #[test]
    fn reference_names_follow_the_rules_of_git() {
        for name in ["refs/heads/main", "refs/heads/a/b", "refs/heads/@", "refs/heads/ü", "refs/heads/a.b"] {
            assert!(is_valid_name(name.as_bytes()), "{name:?}");
        }
        for name in [
            "",
            "HEAD",
            "refs",
            "refs/",
            "/etc/passwd",
            "refs//a",
            "refs/heads/",
            "refs/heads/../../x",
            "refs/heads/.invalid",
            "refs/heads/a..b",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a.",
            "refs/heads/a\\b",
            "refs/heads/a b",
            "refs/heads/a\0b",
            "refs/heads/a\nb",
            "refs/heads/a@{1}",
            "refs/heads/a~1",
            "refs/heads/a^",
            "refs/heads/a:b",
            "refs/heads/\u{1b}[31m",
        ] {
            assert!(!is_valid_name(name.as_bytes()), "{name:?}");
        }
    }
}
