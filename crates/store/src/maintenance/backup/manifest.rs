//! The list of the files of a backup, with their sizes and hashes: `backup.json`.
//!
//! It is written last, and its own hash stands in front of it, so that a whole backup is recognised without trust in
//! any of its files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use blake3::Hash;
use retake_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{BackupError, COPY_BUFFER, failed};
use crate::location::open_private;

/// The version of this file's format.
const FORMAT: u32 = 1;

/// What a backup consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    /// The version of the program that wrote it.
    pub(super) program: String,
    pub(super) created: Timestamp,
    /// The format of the database.
    pub(super) schema: i64,
    /// The sequence number of the last operation.
    pub(super) sequence: i64,
    pub(super) files: Vec<ListedFile>,
    /// The key beside the backup.
    pub(super) key: Option<KeyFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListedFile {
    pub(super) path: String,
    pub(super) bytes: u64,
    blake3: String,
}

/// The hash of the key, which is random: it reveals nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyFile {
    blake3: String,
}

/// The file: the hash of the text of the list, and the list.
#[derive(Serialize, Deserialize)]
struct Sealed {
    blake3: String,
    backup: Box<RawValue>,
}

impl Manifest {
    pub(super) fn new(program: &str, created: Timestamp) -> Self {
        let program = program.to_owned();
        Self { format: FORMAT, program, created, schema: 0, sequence: 0, files: Vec::new(), key: None }
    }

    pub(super) fn add(&mut self, name: &Path, bytes: u64, hash: Hash) {
        let path = name.to_string_lossy().into_owned();
        self.files.push(ListedFile { path, bytes, blake3: hash.to_hex().to_string() });
    }

    pub(super) fn path(backup: &Path) -> PathBuf {
        backup.join("backup.json")
    }

    pub(super) fn write(&self, backup: &Path) -> Result<(), BackupError> {
        let path = Self::path(backup);
        let list = serde_json::value::to_raw_value(self).expect("a manifest is plain data");
        let blake3 = blake3::hash(list.get().as_bytes()).to_hex().to_string();
        let text = serde_json::to_vec(&Sealed { blake3, backup: list }).expect("a manifest is plain data");
        let mut file = open_private(&path)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed(&path))?;
        Ok(())
    }

    pub(super) fn read(backup: &Path) -> Result<Self, BackupError> {
        let path = Self::path(backup);
        let refuse =
            |reason: &str| BackupError::NotABackup { path: backup.to_owned(), reason: reason.to_owned() };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Err(refuse("its list of files, backup.json, is missing"));
            }
            Err(error) => return Err(failed(&path)(error).into()),
        };
        let damaged = || refuse("its list of files, backup.json, is damaged");
        let sealed: Sealed = serde_json::from_slice(&text).map_err(|_| damaged())?;
        if blake3::hash(sealed.backup.get().as_bytes()).to_hex().as_str() != sealed.blake3 {
            return Err(damaged());
        }
        let manifest: Self = serde_json::from_str(sealed.backup.get())
            .map_err(|_| refuse("a newer Retake wrote its list of files; update this program"))?;
        if manifest.format > FORMAT {
            return Err(refuse("a newer Retake wrote its list of files; update this program"));
        }
        Ok(manifest)
    }
}

impl ListedFile {
    pub(super) fn has_hash(&self, hash: Hash) -> bool {
        hash.to_hex().as_str() == self.blake3
    }
}

impl KeyFile {
    pub(super) fn of(key: &[u8]) -> Self {
        Self { blake3: blake3::hash(key).to_hex().to_string() }
    }
}

/// The size and the hash of a file.
pub(super) fn hash_file(path: &Path, advance: &mut dyn FnMut(u64)) -> io::Result<(u64, Hash)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; COPY_BUFFER];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((bytes, hasher.finalize())),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
                advance(read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
