//! Decides whether the index differs from the checked-out commit.
//!
//! Hashes the folders of the index like `git write-tree` and compares the result with the tree of the commit. This
//! reads only one object of the repository: the commit.

use super::index::{Entry, Index};
use super::locate::Repository;
use super::objects::{ObjectDatabase, id_of};
use super::refs::Head;
use super::sha1;

/// Limit on the depth of folders.
const MAX_DEPTH: usize = 256;

/// Returns whether anything is staged; `None` if the commit cannot be read.
pub(super) fn staged(repository: &Repository, head: &Head, index: &Index) -> Option<bool> {
    let Some(commit) = &head.commit else {
        // A branch without a commit has no tree: every entry of the index is new.
        return head.branch.as_ref().map(|_| !index.entries.is_empty());
    };
    let committed = ObjectDatabase::open(&repository.common).tree_of_commit(&id_of(commit)?)?;
    Some(tree(&index.entries, 0, 0)? != committed)
}

/// Hash of the folder that contains these entries, whose path has `prefix` bytes.
fn tree(entries: &[Entry], prefix: usize, depth: usize) -> Option<[u8; 20]> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let path = first.path.get(prefix..)?;
        let (name, count, mode, id) = match path.iter().position(|byte| *byte == b'/') {
            None => (path, 1, first.mode, first.name),
            Some(end) => {
                let folder = &first.path[..=prefix + end];
                let count = rest.iter().take_while(|entry| entry.path.starts_with(folder)).count();
                (&path[..end], count, 0o40_000, tree(&rest[..count], folder.len(), depth + 1)?)
            }
        };
        bytes.extend(format!("{mode:o} ").into_bytes());
        bytes.extend(name);
        bytes.push(0);
        bytes.extend(id);
        rest = &rest[count..];
    }
    Some(sha1::tree(&bytes))
}
