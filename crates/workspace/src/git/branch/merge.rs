//! The trees of a commit: the recorded files over those of the parent.
//!
//! ```text
//!   recorded   parent             commit
//!   a.rs       a.rs               the recorded one
//!   b.rs       –                  the recorded one          added
//!   –          c.rs               –                         removed
//!   –          .env   excluded    that of the parent        kept
//!   lib/…      lib    submodule   that of the parent
//! ```

use std::collections::{BTreeMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use retake_model::object::{ObjectError, Objects, load};
use retake_model::tree::{Excluded, Node, PART, SnapshotRoot, Tree, read_piece};

use super::super::objects::{ObjectDatabase, ObjectId, ObjectKind, digits_of};
use super::super::sha1::{self, ObjectHash};
use super::{BranchError, BranchReport, NewContent, NewObject, OmittedPath, tree_id};

const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_000;
const FOLDER: u32 = 0o40_000;
const SUBMODULE: u32 = 0o160_000;
/// Limit on the depth of folders.
const MAX_DEPTH: usize = 512;
/// Limit on the listed paths.
const MAX_LISTED: usize = 100;
/// Larger attribute files are not read.
const ATTRIBUTES_LIMIT: u64 = 1024 * 1024;

/// An entry of a tree of git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    id: ObjectId,
}

type Entries = BTreeMap<Vec<u8>, Entry>;

pub(super) struct Merge<'a> {
    objects: &'a dyn Objects,
    database: &'a ObjectDatabase,
    root: &'a SnapshotRoot,
    excluded: Excluded,
    progress: &'a mut dyn FnMut(u64),
    files: u64,
    known: HashSet<ObjectId>,
    pub(super) new: Vec<NewObject>,
    pub(super) report: BranchReport,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        objects: &'a dyn Objects,
        database: &'a ObjectDatabase,
        root: &'a SnapshotRoot,
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Self, ObjectError> {
        let excluded = root.excluded.map(|id| load(objects, id)).transpose()?.unwrap_or_default();
        let (known, new, report) = (HashSet::new(), Vec::new(), BranchReport::default());
        Ok(Self { objects, database, root, excluded, progress, files: 0, known, new, report })
    }

    /// The tree of the commit, with the recorded files in the folder `prefix`.
    pub(super) fn commit_tree(
        &mut self,
        prefix: &Path,
        parent: Option<ObjectId>,
    ) -> Result<ObjectId, BranchError> {
        let names: Vec<Vec<u8>> = prefix.iter().map(|name| name.as_bytes().to_vec()).collect();
        let tree = self.below(&names, parent)?;
        match tree {
            Some(tree) => Ok(tree),
            None => Ok(self.add_tree(&Entries::new())),
        }
    }

    /// The tree with the recorded files below these names; `None` if it is empty.
    fn below(
        &mut self,
        names: &[Vec<u8>],
        parent: Option<ObjectId>,
    ) -> Result<Option<ObjectId>, BranchError> {
        let Some((name, rest)) = names.split_first() else {
            let tree = Tree::load(self.objects, tree_id(self.root))?;
            return self.folder(&tree, parent, &mut Vec::new(), 0);
        };
        let mut entries = self.entries(parent)?;
        let inner = entries.get(name).filter(|entry| entry.mode == FOLDER).map(|entry| entry.id);
        match self.below(rest, inner)? {
            Some(id) => entries.insert(name.clone(), Entry { mode: FOLDER, id }),
            None => entries.remove(name),
        };
        Ok(self.finish(&entries))
    }

    /// One folder: its recorded entries, and those of the parent that are not recorded.
    fn folder(
        &mut self,
        tree: &Tree,
        parent: Option<ObjectId>,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<Option<ObjectId>, BranchError> {
        if depth > MAX_DEPTH {
            self.leave_out(path, "nested too deep");
            return Ok(None);
        }
        let mut old = self.entries(parent)?;
        let mut entries = Entries::new();
        for entry in tree.entries() {
            let (name, start) = (entry.name.bytes(), path.len());
            push(path, name);
            let before = old.remove(name);
            let new = self.entry(name, &entry.node, before, path, depth)?;
            path.truncate(start);
            if let Some(new) = new {
                entries.insert(name.to_vec(), new);
            }
        }
        for (name, before) in old {
            let start = path.len();
            push(path, &name);
            if let Some(kept) = self.unrecorded(before, path, depth)? {
                entries.insert(name, kept);
            }
            path.truncate(start);
        }
        Ok(self.finish(&entries))
    }

    /// A recorded entry; `None` if git cannot store it.
    fn entry(
        &mut self,
        name: &[u8],
        node: &Node,
        before: Option<Entry>,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<Option<Entry>, BranchError> {
        if let Some(submodule) = before.filter(|before| before.mode == SUBMODULE) {
            self.leave_out(path, "inside a submodule, which stays at its commit");
            return Ok(Some(submodule));
        }
        let is_link = matches!(node, Node::Link { .. });
        if is_refused(name, is_link) {
            self.leave_out(path, "git refuses this name");
            return Ok(None);
        }
        if let Node::Folder { tree, .. } = node {
            let tree = Tree::load(self.objects, *tree)?;
            let inner = before.filter(|before| before.mode == FOLDER);
            if let (Some(file), None) = (before, inner) {
                self.count_removed(file, depth)?;
            }
            let id = self.folder(&tree, inner.map(|before| before.id), path, depth + 1)?;
            return Ok(id.map(|id| Entry { mode: FOLDER, id }));
        }
        let after = self.file(node, before)?;
        match before {
            Some(before) if before.mode == FOLDER => {
                self.count_removed(before, depth)?;
                self.report.added += 1;
            }
            Some(before) => self.report.changed += u64::from(before != after),
            None => self.report.added += 1,
        }
        if name == b".gitattributes" {
            self.report.unconverted |= self.has_conversions(node)?;
        }
        Ok(Some(after))
    }

    /// An entry of the parent that is not recorded: kept if it is excluded, removed otherwise.
    fn unrecorded(
        &mut self,
        before: Entry,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<Option<Entry>, BranchError> {
        if before.mode == SUBMODULE || self.excluded.covers(path) {
            if before.mode != SUBMODULE {
                self.report.kept_count += 1;
                if self.report.kept.len() < MAX_LISTED {
                    self.report.kept.push(String::from_utf8_lossy(path).into_owned());
                }
            }
            return Ok(Some(before));
        }
        let inside = [path.as_slice(), b"/"].concat();
        let next = self.excluded.0.partition_point(|left| left.path < inside);
        let has_excluded = self.excluded.0.get(next).is_some_and(|left| left.path.starts_with(&inside));
        if before.mode == FOLDER && has_excluded {
            let id = self.folder(&Tree::default(), Some(before.id), path, depth + 1)?;
            return Ok(id.map(|id| Entry { mode: FOLDER, id }));
        }
        self.count_removed(before, depth)?;
        Ok(None)
    }

    fn count_removed(&mut self, entry: Entry, depth: usize) -> Result<(), BranchError> {
        match entry.mode {
            FOLDER if depth <= MAX_DEPTH => {
                for inner in self.entries(Some(entry.id))?.into_values() {
                    self.count_removed(inner, depth + 1)?;
                }
            }
            _ => self.report.removed += 1,
        }
        Ok(())
    }

    /// The blob of a file or link.
    fn file(&mut self, node: &Node, before: Option<Entry>) -> Result<Entry, BranchError> {
        self.files += 1;
        (self.progress)(self.files);
        let (mode, id) = match node {
            Node::File { size, mode, .. } => {
                let mut hash = ObjectHash::new("blob", *size);
                for piece in pieces(self.objects, node) {
                    hash.update(&piece?);
                }
                (if mode & 0o100 == 0 { FILE } else { PROGRAM }, hash.finish())
            }
            Node::Link { target } => (LINK, sha1::blob(target)),
            Node::Folder { .. } => unreachable!("folders are trees"),
        };
        // Most files are as in the parent.
        if before.is_none_or(|before| before.id != id) {
            let content = match node {
                Node::Link { target } => NewContent::Bytes(target.clone()),
                _ => NewContent::File(node.clone()),
            };
            self.add(id, ObjectKind::Blob, content);
        }
        Ok(Entry { mode, id })
    }

    fn has_conversions(&self, node: &Node) -> Result<bool, BranchError> {
        let bytes = read_piece(self.objects, node, 0..ATTRIBUTES_LIMIT)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let converts = |word: &str| {
            let keys = ["filter=", "eol=", "text=", "working-tree-encoding="];
            word == "text" || keys.iter().any(|key| word.starts_with(key))
        };
        Ok(lines.flat_map(|line| line.split_whitespace().skip(1)).any(converts))
    }

    /// The entries of a tree of the repository.
    fn entries(&self, tree: Option<ObjectId>) -> Result<Entries, BranchError> {
        let Some(id) = tree else { return Ok(Entries::new()) };
        let unreadable = || BranchError::Unreadable { kind: "tree", id: digits_of(&id) };
        match self.database.read(&id) {
            Some((ObjectKind::Tree, bytes)) => parse(&bytes).ok_or_else(unreadable),
            _ => Err(unreadable()),
        }
    }

    fn finish(&mut self, entries: &Entries) -> Option<ObjectId> {
        (!entries.is_empty()).then(|| self.add_tree(entries))
    }

    fn add_tree(&mut self, entries: &Entries) -> ObjectId {
        let bytes = encode(entries);
        let id = sha1::tree(&bytes);
        self.add(id, ObjectKind::Tree, NewContent::Bytes(bytes));
        id
    }

    /// Adds an object, unless the repository has it.
    fn add(&mut self, id: ObjectId, kind: ObjectKind, content: NewContent) {
        if self.known.insert(id) && !self.database.contains(&id) {
            self.new.push(NewObject { id, kind, content });
        }
    }

    fn leave_out(&mut self, path: &[u8], reason: &'static str) {
        self.report.omitted_count += 1;
        if self.report.omitted.len() < MAX_LISTED {
            self.report
                .omitted
                .push(OmittedPath { path: String::from_utf8_lossy(path).into_owned(), reason });
        }
    }
}

/// The bytes of a file in pieces.
pub(super) fn pieces<'a>(
    objects: &'a dyn Objects,
    node: &'a Node,
) -> impl Iterator<Item = Result<Vec<u8>, ObjectError>> + 'a {
    let size = match node {
        Node::File { size, .. } => *size,
        _ => 0,
    };
    let starts = (0..size).step_by(PART as usize);
    starts.map(move |start| read_piece(objects, node, start..(start + PART).min(size)))
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend(name);
}

/// Names that `git fsck` complains about, because they would be dangerous on some system.
fn is_refused(name: &[u8], is_link: bool) -> bool {
    let lower = name.to_ascii_lowercase();
    let trimmed = lower.trim_ascii_end();
    let trimmed = trimmed.strip_suffix(b".").unwrap_or(trimmed);
    matches!(trimmed, b".git" | b"git~1" | b"." | b".." | b"")
        || (is_link && matches!(trimmed, b".gitmodules" | b".gitattributes" | b".gitignore" | b".mailmap"))
        || name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// Parses a tree: mode, name, id of each entry.
fn parse(bytes: &[u8]) -> Option<Entries> {
    let mut entries = Entries::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(str::from_utf8(&rest[..space]).ok()?, 8).ok()?;
        let after = &rest[space + 1..];
        let end = after.iter().position(|byte| *byte == 0)?;
        let id = after.get(end + 1..end + 21)?.try_into().ok()?;
        entries.insert(after[..end].to_vec(), Entry { mode, id });
        rest = &after[end + 21..];
    }
    Some(entries)
}

/// Encodes a tree. Git sorts folders as if their names ended with a slash.
fn encode(entries: &Entries) -> Vec<u8> {
    let mut sorted: Vec<(Vec<u8>, &Vec<u8>, &Entry)> = entries
        .iter()
        .map(|(name, entry)| {
            let slash: &[u8] = if entry.mode == FOLDER { b"/" } else { b"" };
            ([name, slash].concat(), name, entry)
        })
        .collect();
    sorted.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let mut bytes = Vec::new();
    for (_, name, entry) in sorted {
        bytes.extend(format!("{:o} ", entry.mode).into_bytes());
        bytes.extend(name);
        bytes.push(0);
        bytes.extend(entry.id);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_sorted_as_git_sorts_them() {
        let entry = |mode| Entry { mode, id: [7; 20] };
        let entries: Entries =
            [(b"a".to_vec(), entry(FOLDER)), (b"a.b".to_vec(), entry(FILE)), (b"a0".to_vec(), entry(LINK))]
                .into();
        let bytes = encode(&entries);
        let names = [&b"100644 a.b\0"[..], b"40000 a\0", b"120000 a0\0"];
        let expected: Vec<u8> = names.iter().flat_map(|name| [name, &[7; 20][..]].concat()).collect();
        assert_eq!(bytes, expected);
        assert_eq!(parse(&bytes), Some(entries));
        for wrong in [&b"100644"[..], b"100644 a", b"100644 a\0x", b"x a\0"] {
            assert_eq!(parse(wrong), None);
        }
    }

    #[test]
    fn dangerous_names_are_refused() {
        for name in [".git", ".GIT", ".git ", ".git.", "git~1"] {
            assert!(is_refused(name.as_bytes(), false), "{name}");
        }
        assert!(is_refused(b".gitmodules", true) && !is_refused(b".gitmodules", false));
        assert!(!is_refused(b".gitignore", false) && !is_refused(b"git", false) && !is_refused(b"a.", false));
    }
}
