//! Finds the `retake` program that tests run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program could not be found or built.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The variable names no file.
    #[error("RETAKE_PROGRAM is {}, which does not exist; build it with `cargo build --package retake`", .0.display())]
    Missing(PathBuf),
    /// This process is not in a target folder.
    #[error("{} is not in a target folder; set RETAKE_PROGRAM to a built `retake`", .0.display())]
    NoTargetFolder(PathBuf),
    /// Cargo failed to build it.
    #[error("`cargo build --package retake` failed; build it, and set RETAKE_PROGRAM to it")]
    NotBuilt,
    /// Cargo could not be started.
    #[error("`retake` cannot be built: {0}")]
    Io(#[from] std::io::Error),
}

/// The program, found once per process.
///
/// # Panics
/// If it cannot be found or built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| find().unwrap_or_else(|error| panic!("{error}")))
}

/// Finds the program. Cargo builds it for the tests of its own crate and names it in a variable. For other tests
/// `RETAKE_PROGRAM` names one that was just built; otherwise it is built here, which takes longer, since a separate build
/// selects other features of its dependencies.
pub fn find() -> Result<PathBuf, ProgramError> {
    let by_runner = ["CARGO_BIN_EXE_retake", "NEXTEST_BIN_EXE_retake"].into_iter().find_map(std::env::var_os);
    if let Some(built) = by_runner {
        return Ok(built.into());
    }
    match std::env::var_os("RETAKE_PROGRAM").map(PathBuf::from) {
        Some(built) if built.exists() => Ok(built),
        Some(missing) => Err(ProgramError::Missing(missing)),
        None => build(),
    }
}

/// Builds the program into the target folder of this process.
fn build() -> Result<PathBuf, ProgramError> {
    let own = std::env::current_exe()?;
    // Test programs are one folder below the others.
    let folder = own
        .ancestors()
        .find(|folder| folder.ends_with("debug") || folder.ends_with("release"))
        .ok_or_else(|| ProgramError::NoTargetFolder(own.clone()))?;
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--locked", "--package", "retake", "--bin", "retake"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.ends_with("release") {
        build.arg("--release");
    }
    if build.status()?.success() { Ok(folder.join("retake")) } else { Err(ProgramError::NotBuilt) }
}
