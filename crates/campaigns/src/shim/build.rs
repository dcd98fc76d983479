//! Compiles the library once per version of its source.
//!
//! The file is named after a hash of its source, so an existing file is always current. It is compiled under a unique
//! name and then renamed: concurrent processes never load a partial file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

const SOURCE: &str = include_str!("../../shim/faults.c");
const OPTIONS: &[&str] = &["-O2", "-Wall", "-shared", "-fPIC", "-x", "c", "-"];
const LIBRARIES: &[&str] = &["-ldl", "-pthread"];

/// Distinguishes the threads of one process.
static BUILD_COUNTER: AtomicU64 = AtomicU64::new(0);

/// The compiled library.
#[derive(Clone, Debug)]
pub struct Shim {
    library: PathBuf,
}

/// The library cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// No C compiler.
    #[error("cannot run the C compiler {compiler:?}, which the fault harness needs")]
    NoCompiler {
        /// The command.
        compiler: String,
        /// The cause.
        source: io::Error,
    },
    /// The compiler failed.
    #[error("the fault library does not compile:\n{messages}")]
    Refused {
        /// Its messages.
        messages: String,
    },
    /// The library cannot be written.
    #[error("cannot write the fault library to {}", path.display())]
    Unwritable {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Shim {
    /// Compiles the library next to the running program, in the target folder.
    pub fn build() -> Result<Self, ShimError> {
        let unwritable = |source| ShimError::Unwritable { path: PathBuf::new(), source };
        let program = std::env::current_exe().map_err(unwritable)?;
        Self::build_in(program.parent().unwrap_or(Path::new(".")))
    }

    /// Compiles the library in this folder, unless it exists.
    pub fn build_in(folder: &Path) -> Result<Self, ShimError> {
        let library = folder.join(format!("faults-{:016x}.so", fingerprint()));
        if library.is_file() {
            return Ok(Self { library });
        }
        let turn = BUILD_COUNTER.fetch_add(1, Ordering::Relaxed);
        let unfinished = library.with_extension(format!("{}-{turn}.unfinished", std::process::id()));
        let result = compile(&unfinished).and_then(|()| {
            std::fs::rename(&unfinished, &library)
                .map_err(|source| ShimError::Unwritable { path: library.clone(), source })
        });
        if result.is_err() {
            // It may not exist; the original error is reported.
            let _ = std::fs::remove_file(&unfinished);
        }
        result.map(|()| Self { library })
    }

    /// The path of the library.
    pub fn library(&self) -> &Path {
        &self.library
    }
}

fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    (SOURCE, OPTIONS, LIBRARIES, std::env::consts::ARCH).hash(&mut hasher);
    hasher.finish()
}

fn compile(library: &Path) -> Result<(), ShimError> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let failed = |source| ShimError::NoCompiler { compiler: compiler.clone(), source };
    let mut child = Command::new(&compiler)
        .arg("-o")
        .arg(library)
        .args(OPTIONS)
        .args(LIBRARIES)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // A compiler that stops reading early reports the cause on its error output, which is read below.
    let _ = child.stdin.take().expect("it was asked for").write_all(SOURCE.as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    Err(ShimError::Refused { messages: String::from_utf8_lossy(&output.stderr).into_owned() })
}
