//! A real Postgres server for tests: in a folder of its own, on a Unix socket, stopped at the end.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A server. A machine without Postgres fails the test: a skipped one would look like a passed one.
pub struct PostgresServer {
    folder: TempDir,
    settings: Vec<String>,
}

impl PostgresServer {
    /// Starts a server with settings such as `fsync=off`.
    pub fn start(settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("retake-postgres-").tempdir().expect("a folder");
        let settings = settings.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect();
        let server = Self { folder, settings };
        server.run("start");
        server
    }

    /// The address of the database `hub`, or of another one.
    pub fn address(&self, database: &str) -> String {
        let socket = self.folder.path().join("socket");
        format!("postgres://hub@{}/{database}", socket.display().to_string().replace('/', "%2F"))
    }

    /// The folder of the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process of the server.
    pub fn process(&self) -> u32 {
        let file = self.folder.path().join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).expect("a running server");
        text.lines().next().and_then(|line| line.trim().parse().ok()).expect("a process id")
    }

    /// Starts it again after it was killed.
    pub fn resume(&self) {
        self.run("resume");
    }

    fn run(&self, action: &str) {
        let done = self.command(action).args(&self.settings).output().expect("bash");
        assert!(
            done.status.success(),
            "scripts/postgres {action}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn command(&self, action: &str) -> Command {
        let script: PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "..", "..", "scripts", "postgres"].iter().collect();
        let mut command = Command::new(script);
        command.arg(action).arg(self.folder.path());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ = self.command("stop").output();
    }
}
