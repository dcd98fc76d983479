//! Finds the commit that the program is built from, for `retake --version`.
//!
//! A distributor may give it in `RETAKE_COMMIT`; in a checkout git knows it; `git archive` writes it into `commit.txt`.
//! Without any of them the version has no commit.

use std::path::Path;
use std::process::Command;

/// Enough digits to be unique in any repository of this size.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit.txt");
    println!("cargo::rerun-if-env-changed=RETAKE_COMMIT");
    let commit = std::env::var("RETAKE_COMMIT")
        .ok()
        .and_then(|text| plain(&text))
        .or_else(of_checkout)
        .or_else(|| plain(&std::fs::read_to_string("commit.txt").ok()?));
    let suffix = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=RETAKE_VERSION={}{suffix}", env!("CARGO_PKG_VERSION"));
}

/// The commit of the checkout that this file is part of. The program is built again when HEAD moves, and not otherwise.
fn of_checkout() -> Option<String> {
    // A copy of the source below another repository is not of that repository's commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        let path = path.trim();
        // A path that is not there would make cargo build again every time.
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    plain(&git(&["rev-parse", "HEAD"])?)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

/// The first digits of a commit, or nothing if the text is no commit: in a checkout `commit.txt` holds a placeholder.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let is_commit = text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.chars().take(DIGITS).collect())
}
