//! Compiling the library, once for each version of its source.
//!
//! The file is named after its source, so a changed source gives another file, and a file that exists is right.
//! It is compiled under a name of its own and then renamed: of several processes that start at once each may
//! compile it, and none ever loads a half-written one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

const SOURCE: &str = include_str!("../../shim/faults.c");
const OPTIONS: &[&str] = &["-O2", "-Wall", "-shared", "-fPIC", "-x", "c", "-"];
const LIBRARIES: &[&str] = &["-ldl", "-pthread"];

/// Tells the threads of one process apart.
static TURN: AtomicU64 = AtomicU64::new(0);

/// The compiled library.
#[derive(Clone, Debug)]
pub struct Shim {
    library: PathBuf,
}

/// The library cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// There is no C compiler to make it with.
    #[error("cannot run the C compiler {compiler:?}, which the fault harness needs")]
    NoCompiler {
        /// The command that was tried.
        compiler: String,
        /// Why it did not start.
        source: io::Error,
    },
    /// The compiler refused it.
    #[error("the fault library does not compile:\n{messages}")]
    Refused {
        /// What the compiler said.
        messages: String,
    },
    /// It cannot be put where it belongs.
    #[error("cannot write the fault library to {}", path.display())]
    Unwritable {
        /// Where that is.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Shim {
    /// The library, compiled beside the running program, which is inside the target folder.
    pub fn build() -> Result<Self, ShimError> {
        let unwritable = |source| ShimError::Unwritable { path: PathBuf::new(), source };
        let program = std::env::current_exe().map_err(unwritable)?;
        Self::build_in(program.parent().unwrap_or(Path::new(".")))
    }

    /// The library, compiled into that folder unless it is there already.
    pub fn build_in(folder: &Path) -> Result<Self, ShimError> {
        let library = folder.join(format!("faults-{:016x}.so", fingerprint()));
        if library.is_file() {
            return Ok(Self { library });
        }
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let unfinished = library.with_extension(format!("{}-{turn}.unfinished", std::process::id()));
        let result = compile(&unfinished).and_then(|()| {
            std::fs::rename(&unfinished, &library)
                .map_err(|source| ShimError::Unwritable { path: library.clone(), source })
        });
        if result.is_err() {
            // It may never have been made; the error that is reported is the one that matters.
            let _ = std::fs::remove_file(&unfinished);
        }
        result.map(|()| Self { library })
    }

    /// Where the library is.
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
    // A compiler that stops reading early says why on its error output, which is read below.
    let _ = child.stdin.take().expect("it was asked for").write_all(SOURCE.as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    Err(ShimError::Refused { messages: String::from_utf8_lossy(&output.stderr).into_owned() })
}
