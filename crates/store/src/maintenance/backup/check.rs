//! Checks a backup without changing it: every file against the list, then everything in the database.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use retake_model::time::Timestamp;
use serde::Serialize;

use super::manifest::{KeyFile, ListedFile, Manifest, hash_file};
use super::{BackupError, BackupProgress, failed};
use crate::location::runtime_database;
use crate::maintenance::verify::MaintenanceProgress;
use crate::open::connect_immutable;
use crate::schema::CURRENT;
use crate::{OpenError, Store, StoreError, VerifyReport};

/// The result of checking a backup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackupCheck {
    pub path: PathBuf,
    pub created: Timestamp,
    /// The version of the program that wrote it.
    pub program: String,
    pub files: u64,
    pub bytes: u64,
    pub key: BackupKeyState,
    /// Differences between the files and their list.
    pub file_problems: Vec<BackupProblem>,
    /// A problem of the runtime database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_database_problem: Option<String>,
    /// The check of the content; `None` if damage prevents it.
    pub store: Option<VerifyReport>,
}

/// The key for sealed files, beside the backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupKeyState {
    /// Nothing was ever sealed.
    NotNeeded,
    Present,
    /// It is stored elsewhere, or lost.
    Missing,
    /// Another key is in its place.
    Different,
}

/// A difference between a file and the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum BackupProblem {
    Missing {
        path: String,
    },
    /// Its bytes are not those that were written.
    Changed {
        path: String,
    },
    /// The backup was written without it.
    Unexpected {
        path: String,
    },
    /// The database cannot be opened.
    Unreadable {
        message: String,
    },
}

impl std::fmt::Display for BackupProblem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { path } => write!(formatter, "the file {path} is missing"),
            Self::Changed { path } => write!(formatter, "the file {path} has changed since it was written"),
            Self::Unexpected { path } => {
                write!(formatter, "the file {path} was added later; a backup that was opened is a store")
            }
            Self::Unreadable { message } => write!(formatter, "the database cannot be opened: {message}"),
        }
    }
}

impl BackupCheck {
    /// Whether everything is there and intact. The key may be stored elsewhere.
    pub fn is_clean(&self) -> bool {
        self.file_problems.is_empty()
            && self.runtime_database_problem.is_none()
            && self.key != BackupKeyState::Different
            && self.store.as_ref().is_some_and(VerifyReport::is_clean)
    }
}

impl Store {
    /// Checks a backup and writes nothing, not even beside it.
    pub fn verify_backup(
        backup: &Path,
        on_files: &mut dyn FnMut(BackupProgress),
        on_store: &mut dyn FnMut(MaintenanceProgress),
    ) -> Result<BackupCheck, BackupError> {
        let manifest = Manifest::read(backup)?;
        let mut file_problems = check_files(backup, &manifest, on_files)?;
        if manifest.schema != CURRENT && file_problems.is_empty() {
            return Err(BackupError::OtherFormat { found: manifest.schema, wanted: CURRENT });
        }
        let store = match content(backup, &manifest, on_store) {
            Ok(verified) => Some(verified),
            Err(OpenError::Store(error)) if file_problems.is_empty() && !error.is_damage() => {
                return Err(error.into());
            }
            Err(error) => {
                file_problems.push(BackupProblem::Unreadable { message: error.to_string() });
                None
            }
        };
        Ok(BackupCheck {
            path: backup.to_owned(),
            created: manifest.created,
            program: manifest.program.clone(),
            files: manifest.files.len() as u64,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            key: key_state(backup, &manifest),
            file_problems,
            runtime_database_problem: runtime_problem(backup),
            store,
        })
    }
}

fn check_files(
    backup: &Path,
    manifest: &Manifest,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<Vec<BackupProblem>, BackupError> {
    let total = manifest.files.iter().map(|file| file.bytes).sum();
    let mut done = 0;
    let mut problems = Vec::new();
    for file in &manifest.files {
        problems.extend(check_file(backup, file, &mut |bytes| {
            done += bytes;
            progress(BackupProgress { done, total });
        })?);
    }
    let listed: HashSet<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    for found in all_files(backup)? {
        let path = found.strip_prefix(backup).unwrap_or(&found).to_string_lossy().into_owned();
        if !listed.contains(path.as_str()) && found != Manifest::path(backup) {
            problems.push(BackupProblem::Unexpected { path });
        }
    }
    Ok(problems)
}

fn check_file(
    backup: &Path,
    file: &ListedFile,
    advance: &mut dyn FnMut(u64),
) -> Result<Option<BackupProblem>, BackupError> {
    let path = backup.join(&file.path);
    // A link could lead anywhere, and the backup consists of files.
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {}
        _ => return Ok(Some(BackupProblem::Missing { path: file.path.clone() })),
    }
    let (bytes, hash) = hash_file(&path, advance).map_err(failed(&path))?;
    let same = bytes == file.bytes && file.has_hash(hash);
    Ok((!same).then(|| BackupProblem::Changed { path: file.path.clone() }))
}

fn all_files(folder: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let mut waiting = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let is_folder = entry.file_type().map_err(failed(&folder))?.is_dir();
            if is_folder { waiting.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    Ok(found)
}

/// Everything in the database and the packs.
fn content(
    backup: &Path,
    manifest: &Manifest,
    progress: &mut dyn FnMut(MaintenanceProgress),
) -> Result<VerifyReport, OpenError> {
    let store = Store::open_immutable(backup)?;
    let verified = store.verify(progress)?;
    let last = store.read()?.queries().last_sequence()?;
    if last == manifest.sequence || !verified.is_clean() {
        return Ok(verified);
    }
    Err(StoreError::Damaged(format!("its log ends at {last} instead of {}", manifest.sequence)).into())
}

fn key_state(backup: &Path, manifest: &Manifest) -> BackupKeyState {
    let Some(expected) = &manifest.key else { return BackupKeyState::NotNeeded };
    let backup = fs::canonicalize(backup).unwrap_or_else(|_| backup.to_owned());
    let mut name = backup.file_name().unwrap_or_default().to_owned();
    name.push(".key");
    match fs::read(backup.with_file_name(name)) {
        Ok(key) if KeyFile::of(&key) == *expected => BackupKeyState::Present,
        Ok(_) => BackupKeyState::Different,
        Err(_) => BackupKeyState::Missing,
    }
}

/// SQLite's check of the runtime database; none if it was left out.
fn runtime_problem(backup: &Path) -> Option<String> {
    let path = runtime_database(backup);
    if !path.exists() {
        return None;
    }
    let check = || -> Result<String, StoreError> {
        Ok(connect_immutable(&path)?.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?)
    };
    match check() {
        Ok(answer) if answer == "ok" => None,
        Ok(answer) => Some(answer),
        Err(error) => Some(error.to_string()),
    }
}
