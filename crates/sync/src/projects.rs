//! Which project is which on another machine.
//!
//! ```text
//!   an id      in the file .retake-project, which the user may commit, or linked by the user
//!   git        address of the remote, first commit, and folder in the repository
//!   otherwise  the id that the project has on this machine: others recognize it when they link it
//! ```
//!
//! A path or a name alone identifies nothing. Where several projects of this machine match, a person decides.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use retake_model::id::ProjectId;
use retake_workspace::folder::path_from_text;
use retake_workspace::git;
use serde::{Deserialize, Serialize};

use crate::remote::ProjectKey;

/// The file with the id of a project.
pub const ID_FILE: &str = ".retake-project";
const LONGEST_ID: usize = 64;

/// How other machines recognize the projects of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectTable {
    /// By the id of the project on this machine.
    #[serde(default)]
    pub projects: BTreeMap<String, ProjectLink>,
}

/// What a person decided for a project, and what was read from its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectLink {
    /// The id that a person linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Keys of other machines' projects that a person linked with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<ProjectKey>,
    /// Whether the files of the project are sent.
    #[serde(default)]
    pub files: bool,
    /// What identifies its repository, for the address that git has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<CachedOrigin>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CachedOrigin {
    address: String,
    path: String,
    remote: String,
    root_commit: String,
    folder: String,
}

/// A project of this machine, as the store knows it.
#[derive(Clone, Copy, Debug)]
pub struct LocalProject<'row> {
    /// The project.
    pub id: ProjectId,
    /// The path of its folder as text; empty if it was forgotten.
    pub path: &'row str,
    /// The address of its repository.
    pub remote: Option<&'row str>,
}

impl ProjectTable {
    /// What a person decided for a project.
    pub fn link(&self, project: ProjectId) -> ProjectLink {
        self.projects.get(&project.to_string()).cloned().unwrap_or_default()
    }

    /// The same, to change it.
    pub fn link_mut(&mut self, project: ProjectId) -> &mut ProjectLink {
        self.projects.entry(project.to_string()).or_default()
    }

    /// How other machines recognize a project. Remembers what it read from the repository.
    pub fn key_of(&mut self, project: LocalProject<'_>) -> ProjectKey {
        let folder = path_from_text(project.path);
        let link = self.link_mut(project.id);
        let known = link.origin.as_ref().is_some_and(|origin| {
            Some(origin.address.as_str()) == project.remote && origin.path == project.path
        });
        if !known && !project.path.is_empty() {
            // A repository of a folder that is not there now identifies the project as before.
            let found = git::origin(&folder).zip(project.remote);
            let found = found.map(|(origin, address)| CachedOrigin {
                address: address.to_owned(),
                path: project.path.to_owned(),
                remote: origin.remote,
                root_commit: origin.root_commit,
                folder: origin.folder,
            });
            if found.is_some() || folder.is_dir() {
                link.origin = found;
            }
        }
        let id = link.id.clone().or_else(|| if project.path.is_empty() { None } else { id_in(&folder) });
        match &link.origin {
            Some(origin) => ProjectKey {
                id,
                git_remote: Some(match origin.folder.as_str() {
                    "" => origin.remote.clone(),
                    folder => format!("{}//{folder}", origin.remote),
                }),
                root_commit: Some(origin.root_commit.clone()),
            },
            None => ProjectKey { id: id.or_else(|| Some(project.id.to_string())), ..ProjectKey::default() },
        }
    }
}

/// The id in the file of a project.
pub fn id_in(folder: &Path) -> Option<String> {
    let path = folder.join(ID_FILE);
    // A link or a pipe is not the file.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    is_id(line).then(|| line.to_owned())
}

/// Whether a text can be the id of a project.
pub fn is_id(text: &str) -> bool {
    (16..=LONGEST_ID).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The content of the file with an id.
pub fn id_file(id: &str) -> String {
    format!("# Identifies this project on all machines (retake project link). It may be committed.\n{id}\n")
}
