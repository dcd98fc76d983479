//! The folders of a workspace, and folders that cannot be one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::globs::Globs;
use super::options::Options;

/// Folders that are captured together: a main root and additional named ones.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Root>,
    options: CompiledOptions,
}

/// One folder of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Name; empty for the main root.
    pub name: String,
    /// Path without links.
    pub path: PathBuf,
    /// Device of its file system.
    pub(super) device: u64,
    /// Inode number.
    pub(super) inode: u64,
}

/// Options with compiled patterns.
#[derive(Debug)]
pub(super) struct CompiledOptions {
    pub(super) options: Options,
    pub(super) globs: Globs,
}

/// Why a folder cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder does not exist or is not a folder.
    #[error("{}: {error}; name an existing folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// The folder is or contains the home folder.
    #[error(
        "{} is or contains a home folder, which is far more than one project; change to the project's own folder, \
         or name it with --directory",
        path.display()
    )]
    Home {
        /// The path.
        path: PathBuf,
    },
    /// The folder belongs to the system.
    #[error("{} belongs to the system; change to the project's own folder, or name it with --directory", path.display())]
    System {
        /// The path.
        path: PathBuf,
    },
    /// Two roots have the same name, or an additional root has none.
    #[error("the root name {name:?} is already in use; choose another")]
    Name {
        /// The name.
        name: String,
    },
    /// A root is inside another.
    #[error("{} is inside {}, which is already a root; remove it from the roots", inner.display(), outer.display())]
    Inside {
        /// The inner folder.
        inner: PathBuf,
        /// The outer folder.
        outer: PathBuf,
    },
    /// A pattern of the options is invalid.
    #[error("invalid pattern {pattern:?}: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: String,
    },
}

impl Workspace {
    /// Opens a workspace with a main folder and additional named ones.
    pub fn open(main: &Path, others: &[(String, PathBuf)], options: Options) -> Result<Self, OpenError> {
        let globs = Globs::compile(&options)?;
        let mut roots: Vec<Root> = Vec::new();
        let named = others.iter().map(|(name, path)| (name.as_str(), path.as_path()));
        for (name, path) in std::iter::once(("", main)).chain(named) {
            let root = Root::at(name, path)?;
            check_folder(&root.path)?;
            if roots.iter().any(|other| other.name == name) {
                return Err(OpenError::Name { name: name.to_owned() });
            }
            for other in &roots {
                let (inner, outer) = if root.path.starts_with(&other.path) {
                    (&root.path, &other.path)
                } else if other.path.starts_with(&root.path) {
                    (&other.path, &root.path)
                } else {
                    continue;
                };
                return Err(OpenError::Inside { inner: inner.clone(), outer: outer.clone() });
            }
            roots.push(root);
        }
        Ok(Self { roots, options: CompiledOptions { options, globs } })
    }

    /// Opens a workspace of one folder with default options.
    pub fn of(folder: &Path) -> Result<Self, OpenError> {
        Self::open(folder, &[], Options::default())
    }

    /// All roots, main root first.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The main root.
    pub fn main(&self) -> &Root {
        &self.roots[0]
    }

    /// Options with which the workspace was opened.
    pub fn file_options(&self) -> &Options {
        &self.options.options
    }

    pub(super) fn options(&self) -> &CompiledOptions {
        &self.options
    }
}

impl Root {
    fn at(name: &str, path: &Path) -> Result<Self, OpenError> {
        let found = path.canonicalize().and_then(|path| Ok((fs::metadata(&path)?, path)));
        let fail = |error| OpenError::NotAFolder { path: path.to_owned(), error };
        let (metadata, path) = found.map_err(fail)?;
        if !metadata.is_dir() {
            return Err(fail(std::io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { name: name.to_owned(), path, device: metadata.dev(), inode: metadata.ino() })
    }
}

/// System folders; folders below them may be projects.
const SYSTEM_FOLDERS: &[&str] = &[
    "/",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/Volumes",
    "/bin",
    "/boot",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/private",
    "/private/tmp",
    "/private/var",
    "/root",
    "/sbin",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/usr/src",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];

/// System folders, including everything below them.
const FORBIDDEN_FOLDERS: &[&str] = &["/dev", "/proc", "/sys", "/run/systemd"];

/// Folders below those that contain ordinary files.
const MEMORY_FOLDERS: &[&str] = &["/dev/shm"];

/// Rejects folders that contain far more than a project: home folders, their parents, and system folders.
pub fn check_folder(path: &Path) -> Result<(), OpenError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    check(path, home.as_deref())
}

/// Rejects folders that contain far more than a project.
fn check(path: &Path, home: Option<&Path>) -> Result<(), OpenError> {
    // The home folder may be reached through a link.
    let homes = home.into_iter().flat_map(|home| [Some(home.to_owned()), home.canonicalize().ok()]).flatten();
    for home in homes.filter(|home| home.is_absolute() && home.parent().is_some()) {
        if home.starts_with(path) {
            return Err(OpenError::Home { path: path.to_owned() });
        }
    }
    let below = |folder: &str| path.starts_with(folder) && path != Path::new(folder);
    let system = SYSTEM_FOLDERS.iter().any(|system| path == Path::new(system))
        || (FORBIDDEN_FOLDERS.iter().any(|never| path.starts_with(never))
            && !MEMORY_FOLDERS.iter().any(|cache_data| below(cache_data)));
    if system { Err(OpenError::System { path: path.to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_cannot_be_projects_are_refused_with_a_suggestion() {
        let check = |path: &str, expected: Option<&str>| {
            let found =
                check(Path::new(path), Some(Path::new("/home/me"))).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(found, None, "{path}"),
                Some(part) => {
                    let found = found.unwrap_or_else(|| panic!("{path} is refused"));
                    assert!(found.contains(part) && found.contains("--directory"), "{path}: {found}");
                }
            }
        };
        for home in ["/", "/home", "/home/me"] {
            check(home, Some("home folder"));
        }
        for system in ["/etc", "/usr", "/proc/self", "/sys", "/tmp", "/var", "/dev/shm", "/dev/disk"] {
            check(system, Some("belongs to the system"));
        }
        for project in
            ["/home/me/project", "/tmp/project", "/etc/nginx", "/srv/site", "/home/meagain", "/dev/shm/tree"]
        {
            check(project, None);
        }
    }
}
