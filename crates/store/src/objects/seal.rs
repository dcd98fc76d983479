//! Sealing: encrypts the previous content of excluded files that tools replace.
//!
//! ```text
//!   ~/.local/share/retake/        the store: encrypted parts, and digests made with a key
//!   ~/.local/share/retake.key     the key: 32 random bytes, mode 0600, beside the store and not in it
//! ```
//!
//! A copy of the store (a backup, a disk sent for repair) contains nothing readable of those files. The key is
//! created when the first file is sealed. Three keys are derived from it: one encrypts (ChaCha20-Poly1305), one makes
//! the digests for comparing versions, one makes the nonces. A nonce is a keyed hash of path, content and part
//! number: the same content at the same path is the same object (so a repeated plan is the same plan), and no nonce
//! is used for two different texts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use retake_model::content::{ContentId, Kind};
use retake_model::object::{NewObject, Objects};
use retake_model::sealed::SealedFile;
use retake_model::tree::PART;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::location::{Permissions, sync_folder};
use crate::{Store, StoreError};

/// The first byte of each sealed part: the encryption format.
const FORMAT_VERSION: u8 = 1;
const KEY_BYTES: usize = 32;

/// Seals and opens files.
pub struct Sealer {
    encryption: LessSafeKey,
    digests: [u8; KEY_BYTES],
    nonces: [u8; KEY_BYTES],
}

/// Why sealed bytes could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenSealedError {
    #[error("its bytes are sealed, and the key file {} is missing; put it back from a backup and try again", .0.display())]
    NoKey(PathBuf),
    /// The key file cannot be used.
    #[error("its bytes are sealed, and the key file {} cannot be used: {reason}; restore it from a backup and try again", path.display())]
    InvalidKey { path: PathBuf, reason: String },
    /// The bytes were sealed with another key, or altered.
    #[error("its bytes were sealed with another key than the one in use, or are damaged")]
    OtherKey,
    /// The sealed bytes are not in this store: exports leave them out.
    #[error("its sealed bytes are not in this store; exports leave them out")]
    Missing,
}

impl Store {
    /// The path of the key: next to the store's folder, so that a copy of the store does not contain it.
    pub fn key_file(&self) -> PathBuf {
        let folder = fs::canonicalize(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let mut name = folder.file_name().unwrap_or_default().to_owned();
        name.push(".key");
        folder.with_file_name(name)
    }

    /// A sealer with the existing key; `None` if there is no key.
    pub fn sealer(&self) -> Result<Option<Sealer>, StoreError> {
        let path = self.key_file();
        read_key(&path).map_err(|error| StoreError::File { path, error })
    }

    /// A sealer for opening files, or why nothing can be opened.
    pub fn sealer_for_opening(&self) -> Result<Sealer, OpenSealedError> {
        let path = self.key_file();
        match read_key(&path) {
            Ok(Some(sealer)) => Ok(sealer),
            Ok(None) => Err(OpenSealedError::NoKey(path)),
            Err(error) => Err(OpenSealedError::InvalidKey { path, reason: error.to_string() }),
        }
    }

    /// A sealer with the existing key or a new one. The key is durable before this returns, so that a power cut
    /// cannot destroy the key of sealed files.
    pub fn sealer_or_create(&self) -> Result<Sealer, StoreError> {
        let path = self.key_file();
        let fail = |error| StoreError::File { path: path.clone(), error };
        if let Some(sealer) = read_key(&path).map_err(fail)? {
            return Ok(sealer);
        }
        make_key(&path).map_err(fail)?;
        read_key(&path).map_err(fail)?.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))
    }
}

fn read_key(path: &Path) -> io::Result<Option<Sealer>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    (&mut file).take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let key: [u8; KEY_BYTES] = bytes
        .try_into()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it does not contain a key of 32 bytes"))?;
    Ok(Some(Sealer::new(&key)))
}

/// Creates a key, unless another process is faster.
fn make_key(path: &Path) -> io::Result<()> {
    let mut key = [0; KEY_BYTES];
    fill(&mut key)?;
    let mut suffix = [0; 8];
    fill(&mut suffix)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{:016x}", u64::from_le_bytes(suffix)));
    let aside = path.with_file_name(name);
    let made = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(Permissions::FILE).open(&aside)?;
        file.write_all(&key)?;
        file.sync_all()?;
        // A hard link does not overwrite: the first key wins.
        match fs::hard_link(&aside, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    })();
    let _ = fs::remove_file(&aside);
    made?;
    path.parent().map_or(Ok(()), sync_folder)
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    SystemRandom::new().fill(bytes).map_err(|_| io::Error::other("the system provided no random bytes"))
}

impl Sealer {
    fn new(key: &[u8; KEY_BYTES]) -> Self {
        let encryption = blake3::derive_key("retake 2026-11 sealed files: encryption", key);
        let encryption =
            UnboundKey::new(&CHACHA20_POLY1305, &encryption).expect("the key has the right length");
        Self {
            encryption: LessSafeKey::new(encryption),
            digests: blake3::derive_key("retake 2026-11 sealed files: digests", key),
            nonces: blake3::derive_key("retake 2026-11 sealed files: nonces", key),
        }
    }

    /// The keyed digest for comparing bytes.
    pub fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.digests, bytes).as_bytes()
    }

    /// Seals a file. The caller stores the parts.
    pub fn seal(&self, path: &[u8], bytes: &[u8], mode: u16) -> io::Result<(SealedFile, Vec<NewObject>)> {
        let mut file =
            SealedFile { parts: Vec::new(), digest: self.digest(bytes), size: bytes.len() as u64, mode };
        let mut objects = Vec::new();
        for (number, part) in bytes.chunks(PART as usize).enumerate() {
            let bound = associated_data(path, &file.digest, number);
            let mut nonce = [0; NONCE_LEN];
            nonce.copy_from_slice(&blake3::keyed_hash(&self.nonces, &bound).as_bytes()[..NONCE_LEN]);
            let mut sealed = part.to_vec();
            let bound = Aad::from(bound);
            self.encryption
                .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut sealed)
                .map_err(|_| io::Error::other("the bytes could not be encrypted"))?;
            let bytes = [&[FORMAT_VERSION][..], &nonce, &sealed].concat();
            let id = ContentId::of(Kind::Sealed, &bytes);
            file.parts.push(id);
            objects.push(NewObject { id, kind: Kind::Sealed, bytes: bytes.into() });
        }
        Ok((file, objects))
    }

    /// Opens a sealed file.
    pub fn open(
        &self,
        objects: &(impl Objects + ?Sized),
        path: &[u8],
        file: &SealedFile,
    ) -> Result<Vec<u8>, OpenSealedError> {
        let mut bytes = Vec::new();
        for (number, part) in file.parts.iter().enumerate() {
            let stored = objects.bytes(Kind::Sealed, *part).map_err(|_| OpenSealedError::Missing)?;
            let (nonce, sealed) = match &*stored {
                // The placeholder where an import brought no bytes.
                [] => return Err(OpenSealedError::Missing),
                [FORMAT_VERSION, rest @ ..] => rest.split_first_chunk().ok_or(OpenSealedError::OtherKey)?,
                _ => return Err(OpenSealedError::OtherKey),
            };
            let mut sealed = sealed.to_vec();
            let bound = Aad::from(associated_data(path, &file.digest, number));
            let opened =
                self.encryption.open_in_place(Nonce::assume_unique_for_key(*nonce), bound, &mut sealed);
            bytes.extend_from_slice(opened.map_err(|_| OpenSealedError::OtherKey)?);
        }
        // Also checked for an empty file, whose digest depends on the key.
        if self.digest(&bytes) == file.digest { Ok(bytes) } else { Err(OpenSealedError::OtherKey) }
    }
}

/// The associated data of a part: it opens only in its own place.
fn associated_data(path: &[u8], digest: &[u8; 32], number: usize) -> Vec<u8> {
    [&digest[..], &(number as u64).to_le_bytes(), path].concat()
}

#[cfg(test)]
mod tests {
    use retake_model::object::MemoryObjects;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let place = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&place.path().join("store")).expect("a store");
        (place, store)
    }

    #[test]
    fn sealed_bytes_open_only_with_their_key_and_path() {
        let (place, store) = store();
        assert!(store.sealer().expect("a key lookup").is_none());
        let sealer = store.sealer_or_create().expect("a key");
        assert_eq!(store.key_file(), place.path().canonicalize().expect("a folder").join("store.key"));
        for bytes in [&b""[..], b"TOKEN=secret", &vec![7; PART as usize + 1]] {
            let (file, objects) = sealer.seal(b".env", bytes, 0o600).expect("sealed");
            let mut memory = MemoryObjects::default();
            memory.insert_all(objects.clone());
            assert!(objects.iter().all(|object| !contains(&object.bytes, b"TOKEN") || bytes.is_empty()));
            // Reading the key again gives the same key.
            let again = store.sealer().expect("a key lookup").expect("a key");
            assert_eq!(again.open(&memory, b".env", &file).as_deref(), Ok(bytes));
            if !bytes.is_empty() {
                assert_eq!(again.open(&memory, b"other", &file), Err(OpenSealedError::OtherKey));
                assert_eq!(
                    again.open(&MemoryObjects::default(), b".env", &file),
                    Err(OpenSealedError::Missing)
                );
            }
            let other = Sealer::new(&[1; KEY_BYTES]);
            assert_eq!(other.open(&memory, b".env", &file), Err(OpenSealedError::OtherKey));
            // The same bytes at the same path are the same object; at another path they are not.
            let (second, _) = sealer.seal(b".env", bytes, 0o600).expect("sealed");
            assert_eq!(second, file);
            let (elsewhere, _) = sealer.seal(b"other", bytes, 0o600).expect("sealed");
            assert!(bytes.is_empty() || elsewhere.parts != file.parts);
        }
    }

    #[test]
    fn a_key_is_private_created_once_and_must_be_complete() {
        use std::os::unix::fs::PermissionsExt;
        let (_place, store) = store();
        std::thread::scope(|scope| {
            let digests: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| store.sealer_or_create().expect("a key").digest(b"x")))
                .collect();
            let digests: Vec<_> = digests.into_iter().map(|made| made.join().expect("no panic")).collect();
            assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
        });
        let mode = fs::metadata(store.key_file()).expect("a key file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(store.key_file(), "short").expect("a writable key file");
        assert!(store.sealer().is_err() && store.sealer_or_create().is_err());
        assert!(matches!(store.sealer_for_opening(), Err(OpenSealedError::InvalidKey { .. })));
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }
}
