//! Random edits of a folder, on disk and in the model.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::folder::{FileNode, Folder};
use crate::rng::Rng;
use crate::violation::BoxError;

use super::merge::{VALUES_PER_TEXT, text, values};

const TEXTS: [&str; 6] = ["a.txt", "b.txt", "docs/c.txt", "docs/d.txt", "docs/deep/e.txt", "other/f.txt"];
const BINARIES: [&str; 2] = ["picture.bin", "docs/sound.bin"];
const LINKS: [&str; 2] = ["link", "docs/link"];
const FOLDERS: [&str; 2] = ["empty", "docs/empty"];

/// The initial files.
pub(super) fn beginning() -> Folder {
    let mut files = Folder::default();
    for path in TEXTS.iter().take(4) {
        put(&mut files, Path::new(path), FileNode::file(text(&[0; VALUES_PER_TEXT])));
    }
    files
}

/// One random edit of content, permissions, names or links.
pub(super) fn edit(files: &mut Folder, rng: &mut Rng) {
    let pick = |rng: &mut Rng, names: &[&str]| PathBuf::from(names[rng.index(names.len())]);
    match rng.below(12) {
        0..=5 => {
            let path = pick(rng, &TEXTS);
            let (old, mode) = match files.0.get(&path) {
                Some(FileNode::File { bytes, mode }) => (values(bytes).unwrap_or_default(), *mode),
                _ => ([0; VALUES_PER_TEXT], 0o644),
            };
            let mut new = old;
            new[rng.index(VALUES_PER_TEXT)] = rng.below(4);
            put(files, &path, FileNode::File { bytes: text(&new), mode });
        }
        6 => {
            let path = pick(rng, &BINARIES);
            let version = rng.below(5);
            // One of them is large enough to be stored in chunks.
            let length: u64 = if version == 4 { 25_000 } else { 1 };
            let bytes: Vec<u8> =
                (0..length).flat_map(|number| [0, (version + number * number) as u8, 255]).collect();
            put(files, &path, FileNode::file(bytes));
        }
        7 => {
            let path = pick(rng, &LINKS);
            put(files, &path, FileNode::Link(["a.txt", "b.txt", "nowhere"][rng.index(3)].into()));
        }
        8 => {
            let path = pick(rng, &FOLDERS);
            if rng.once_in(2) { remove(files, &path) } else { put(files, &path, FileNode::Folder(0o755)) }
        }
        9 => {
            let path = pick(rng, &TEXTS);
            if let Some(FileNode::File { mode, .. }) = files.0.get_mut(&path) {
                *mode = [0o644, 0o755, 0o600][rng.index(3)];
            }
        }
        10 => {
            let all: Vec<PathBuf> = files.0.keys().cloned().collect();
            if let Some(path) = rng.pick(&all) {
                remove(files, path);
            }
        }
        _ => {
            let (from, to) = (pick(rng, &TEXTS), pick(rng, &TEXTS));
            if let Some(thing) = files.0.remove(&from) {
                put(files, &to, thing);
            }
        }
    }
}

/// Restores old content of a random file, or deletes it.
pub(super) fn revert(files: &mut Folder, past: Option<&Folder>, rng: &mut Rng) {
    let names: Vec<&str> = TEXTS.iter().chain(&BINARIES).copied().collect();
    let path = PathBuf::from(names[rng.index(names.len())]);
    match past.and_then(|past| past.0.get(&path)) {
        Some(thing) => put(files, &path, thing.clone()),
        None => remove(files, &path),
    }
}

fn put(files: &mut Folder, path: &Path, thing: FileNode) {
    for above in path.ancestors().skip(1).filter(|above| above.as_os_str() != "") {
        files.0.entry(above.to_owned()).or_insert(FileNode::Folder(0o755));
    }
    files.0.insert(path.to_owned(), thing);
}

fn remove(files: &mut Folder, path: &Path) {
    files.0.retain(|found, _| !found.starts_with(path));
}

/// Writes the model's files to disk, changing only paths that differ.
pub(super) fn write(top: &Path, before: &Folder, after: &Folder) -> Result<(), BoxError> {
    let differences = before.differences(after);
    for difference in differences.iter().rev() {
        let path = top.join(difference.path);
        match (difference.left, difference.right) {
            (Some(FileNode::Folder(_)), None) => fs::remove_dir(path)?,
            (Some(FileNode::File { .. }), Some(FileNode::File { .. })) | (None, _) => {}
            (Some(_), _) => fs::remove_file(path)?,
        }
    }
    for difference in &differences {
        let path = top.join(difference.path);
        match difference.right {
            None => {}
            Some(FileNode::Folder(_)) => fs::create_dir(path)?,
            Some(FileNode::Link(target)) => symlink(target, path)?,
            Some(FileNode::File { bytes, mode }) => {
                fs::write(&path, bytes)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
            }
        }
    }
    Ok(())
}
