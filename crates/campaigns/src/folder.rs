//! The content of a folder as plain values that can be compared and restored.
//!
//! Every campaign that moves files uses this. It shares no code with the snapshots that it checks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A file, link or folder.
#[derive(Clone, PartialEq, Eq)]
pub enum FileNode {
    /// A file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link with its target.
    Link(OsString),
    /// A folder with its permissions.
    Folder(u32),
}

impl FileNode {
    /// A file with default permissions.
    pub fn file(bytes: impl Into<Vec<u8>>) -> Self {
        Self::File { bytes: bytes.into(), mode: 0o644 }
    }
}

impl fmt::Debug for FileNode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { bytes, mode } => {
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
                write!(out, "file {mode:o} of {} bytes {shown:?}", bytes.len())
            }
            Self::Link(target) => write!(out, "link to {}", target.display()),
            Self::Folder(mode) => write!(out, "folder {mode:o}"),
        }
    }
}

/// Everything below a folder, by relative path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder(pub BTreeMap<PathBuf, FileNode>);

impl Folder {
    /// Reads a folder; a missing one is empty.
    pub fn read(top: &Path) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        if top.is_dir() {
            read_into(top, Path::new(""), &mut found)?;
        }
        Ok(Self(found))
    }

    /// Makes a folder contain exactly this. The folder itself is not replaced.
    pub fn lay_out(&self, top: &Path) -> io::Result<()> {
        fs::create_dir_all(top)?;
        clear(top)?;
        for (path, thing) in &self.0 {
            let path = top.join(path);
            match thing {
                FileNode::File { bytes, mode } => {
                    fs::write(&path, bytes)?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
                }
                FileNode::Link(target) => symlink(target, &path)?,
                FileNode::Folder(_) => fs::create_dir(&path)?,
            }
        }
        // Last, innermost first: the permissions may forbid changes.
        for (path, thing) in self.0.iter().rev() {
            if let FileNode::Folder(mode) = thing {
                fs::set_permissions(top.join(path), fs::Permissions::from_mode(*mode))?;
            }
        }
        Ok(())
    }

    /// The paths that differ, with both contents.
    pub fn differences<'folders>(&'folders self, other: &'folders Self) -> Vec<Difference<'folders>> {
        let mut paths: Vec<&PathBuf> = self.0.keys().chain(other.0.keys()).collect();
        paths.sort();
        paths.dedup();
        paths
            .into_iter()
            .map(|path| Difference { path, left: self.0.get(path), right: other.0.get(path) })
            .filter(|difference| difference.left != difference.right)
            .collect()
    }

    /// Temporary files of Retake that were left behind.
    pub fn leftovers(&self) -> Vec<&Path> {
        let ours = |path: &&PathBuf| {
            path.components().any(|part| part.as_os_str().as_bytes().starts_with(b".retake-tmp"))
        };
        self.0.keys().filter(ours).map(PathBuf::as_path).collect()
    }
}

/// A path that differs.
#[derive(Debug)]
pub struct Difference<'folders> {
    /// The path.
    pub path: &'folders Path,
    /// The content in the first folder.
    pub left: Option<&'folders FileNode>,
    /// The content in the second folder.
    pub right: Option<&'folders FileNode>,
}

fn read_into(top: &Path, below: &Path, found: &mut BTreeMap<PathBuf, FileNode>) -> io::Result<()> {
    for entry in fs::read_dir(top.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        let mode = || Ok::<_, io::Error>(entry.metadata()?.permissions().mode() & 0o7777);
        if kind.is_dir() {
            found.insert(path.clone(), FileNode::Folder(mode()?));
            read_into(top, &path, found)?;
        } else if kind.is_symlink() {
            found.insert(path, FileNode::Link(fs::read_link(entry.path())?.into()));
        } else if kind.is_file() {
            found.insert(path, FileNode::File { bytes: fs::read(entry.path())?, mode: mode()? });
        }
    }
    Ok(())
}

/// Removes everything in a folder.
pub fn clear(top: &Path) -> io::Result<()> {
    for entry in fs::read_dir(top)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
