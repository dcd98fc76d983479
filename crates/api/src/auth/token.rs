//! The token: a secret in a file that only its owner can read.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use retake_surface::{Code, Failure};

/// Prefix of every token, so that scanners recognise a leaked one.
const PREFIX: &str = "retake_";
const SECRET_BYTES: usize = 32;
const PRIVATE_MODE: u32 = 0o600;
/// Maximum size of a token file.
const MAX_FILE_BYTES: u64 = 200;

/// The secret that grants access to the API.
#[derive(Clone)]
pub struct Token(String);

/// The file that contains the token.
#[derive(Clone, Debug)]
pub struct TokenFile(PathBuf);

/// Why there is no valid token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Reading or writing the file failed.
    #[error("the token file {}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// Others can read the file.
    #[error("other users can read the token file {}; run `chmod 600` on it, then `retake serve token --rotate`", .0.display())]
    NotPrivate(PathBuf),
    /// The file does not contain a token.
    #[error("{} does not contain a token; `retake serve token --rotate` writes a new one", .0.display())]
    NotAToken(PathBuf),
    /// The system has no random numbers.
    #[error("cannot get random numbers from the system: {0}")]
    Random(getrandom::Error),
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        Self::new(Code::Storage, error)
    }
}

/// For how long there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenUnavailable {
    /// Until a new token is written.
    Permanent,
    /// Possibly temporary: too many open files, or a disk error.
    Temporary,
}

impl TokenError {
    /// For how long there is no token.
    pub(super) fn unavailability(&self) -> TokenUnavailable {
        match self {
            Self::NotPrivate(_) | Self::NotAToken(_) => TokenUnavailable::Permanent,
            Self::File { error, .. } if error.kind() == ErrorKind::NotFound => TokenUnavailable::Permanent,
            Self::File { .. } | Self::Random(_) => TokenUnavailable::Temporary,
        }
    }
}

impl Token {
    /// Generates a random token.
    pub fn generate() -> Result<Self, TokenError> {
        Ok(Self(format!("{PREFIX}{}", secret()?)))
    }

    /// The text of the token.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, given: &str) -> bool {
        // Hashing first hides the length; hashes compare in constant time.
        blake3::hash(given.as_bytes()) == blake3::hash(self.0.as_bytes())
    }

    /// An identifier of the token that does not reveal it.
    pub fn hash(&self) -> [u8; 32] {
        *blake3::hash(self.0.as_bytes()).as_bytes()
    }
}

impl TokenFile {
    /// The token file at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the token, or creates one.
    pub fn read_or_create(&self) -> Result<Token, TokenError> {
        match self.read() {
            Err(TokenError::File { error, .. }) if error.kind() == ErrorKind::NotFound => {
                let made = self.write(&Token::generate()?, |from, to| std::fs::hard_link(from, to));
                match made {
                    // Another process was first; use its token.
                    Err(TokenError::File { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {}
                    other => other?,
                }
                self.read()
            }
            other => other,
        }
    }

    /// Replaces the token; the old one becomes invalid.
    pub fn rotate(&self) -> Result<Token, TokenError> {
        let token = Token::generate()?;
        self.write(&token, |from, to| std::fs::rename(from, to))?;
        Ok(token)
    }

    /// Reads the token.
    pub fn read(&self) -> Result<Token, TokenError> {
        let failed = |error| TokenError::File { path: self.0.clone(), error };
        let mut file = File::open(&self.0).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if facts.permissions().mode() & 0o077 != 0 {
            return Err(TokenError::NotPrivate(self.0.clone()));
        }
        let mut text = String::new();
        Read::take(&mut file, MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        let text = text.trim();
        if text.len() < PREFIX.len() + SECRET_BYTES || !text.starts_with(PREFIX) {
            return Err(TokenError::NotAToken(self.0.clone()));
        }
        Ok(Token(text.to_owned()))
    }

    /// Writes a temporary file, syncs it, and moves it into place.
    fn write(
        &self,
        token: &Token,
        place: impl Fn(&Path, &Path) -> std::io::Result<()>,
    ) -> Result<(), TokenError> {
        let aside = self.0.with_extension(format!("new-{}", std::process::id()));
        let written = || -> std::io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE_MODE).open(&aside)?;
            file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
            writeln!(file, "{}", token.0)?;
            file.sync_all()?;
            place(&aside, &self.0)?;
            // Sync the folder: a replaced token must not reappear after a power cut.
            match self.0.parent() {
                Some(folder) => File::open(folder)?.sync_all(),
                None => Ok(()),
            }
        };
        let written = written();
        // Already gone after a rename; unneeded after a link or a failure.
        let _ = std::fs::remove_file(&aside);
        written.map_err(|error| TokenError::File { path: self.0.clone(), error })
    }
}

/// A random secret of letters and digits.
pub(super) fn secret() -> Result<String, TokenError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_created_once_and_replaced_by_rotation() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TokenFile::at(folder.path().join("token"));
        let first = file.read_or_create().expect("made");
        assert!(file.read_or_create().expect("read").is(first.secret()));
        let mode = std::fs::metadata(file.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = file.rotate().expect("rotated");
        assert!(!file.read().expect("read").is(first.secret()));
        assert!(file.read().expect("read").is(second.secret()));
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1, "no temporary file remains");
    }

    #[test]
    fn a_file_without_a_private_token_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TokenFile::at(folder.path().join("token"));
        file.rotate().expect("made");
        let set = |mode| std::fs::set_permissions(file.path(), Permissions::from_mode(mode)).expect("set");
        set(0o644);
        assert!(matches!(file.read(), Err(TokenError::NotPrivate(_))));
        set(0o600);
        for text in ["", "retake_", "password", "retake_short"] {
            std::fs::write(file.path(), text).expect("written");
            assert!(matches!(file.read(), Err(TokenError::NotAToken(_))), "{text:?}");
        }
    }
}
