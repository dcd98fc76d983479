//! Replacing single files that snapshots exclude, where something without a copy is in their place.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use retake_model::path::TreePath;
use retake_workspace::apply::{
    OpenRoot, Outcome, PlainFile, Replaced, Replacement, StampedFile, Token, replace_plain,
};
use tempfile::TempDir;

const TOKEN: &str = "00000000000000000000000001";

fn replace(root: &Path, wanted: &PlainFile, is_stored: bool) -> Replaced {
    let (open, path) = (OpenRoot::open(root).expect("a folder"), TreePath::new(b"d/.env").expect("a path"));
    let expected = |now: &StampedFile| now.0 != PlainFile::Nothing;
    let token = Token::new(TOKEN).expect("a token");
    let replacement = Replacement {
        root: &open,
        path: &path,
        expected: &expected,
        is_stored,
        wanted,
        token: &token,
        number: 0,
        largest: 100,
    };
    replace_plain(&replacement).expect("a replacement")
}

/// Puts something without a copy at a path.
type Obstacle = fn(&Path);

fn obstacles() -> [(&'static str, Obstacle); 4] {
    [
        ("folder", |path| {
            fs::create_dir(path).expect("a folder");
            fs::write(path.join("inside"), "mine").expect("a file");
        }),
        ("link", |path| symlink("elsewhere", path).expect("a link")),
        ("pipe", |path| {
            let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(made.success());
        }),
        ("large file", |path| fs::write(path, "x".repeat(1_000)).expect("a file")),
    ]
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("d")).expect("a folder");
    folder
}

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root.join("d"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_has_no_copy_is_moved_aside_and_never_deleted() {
    let file = PlainFile::File { bytes: b"K=1".to_vec(), mode: 0o600 };
    for (name, put) in obstacles() {
        for (wanted, outcome) in [(&file, Outcome::Written), (&PlainFile::Nothing, Outcome::Removed)] {
            let folder = folder();
            put(&folder.path().join("d/.env"));
            fs::write(folder.path().join("d/.env.retake-aside"), "older").expect("a file");
            let replaced = replace(folder.path(), wanted, false);
            assert_eq!(replaced.outcome, outcome, "{name}");
            assert_eq!(replaced.aside.as_deref(), Some("d/.env.retake-aside-2"), "{name}");
            let there = fs::read_to_string(folder.path().join("d/.env")).ok();
            assert_eq!(there.is_some(), *wanted == file, "{name}");
            assert!(!names(folder.path()).iter().any(|name| name.starts_with(".retake-tmp")), "{name}");
            let aside = folder.path().join("d/.env.retake-aside-2");
            assert!(aside.symlink_metadata().is_ok(), "{name}");
            if name == "folder" {
                assert_eq!(fs::read_to_string(aside.join("inside")).expect("it is kept"), "mine");
            }
        }
    }
    // Control: what the store has a copy of is deleted.
    let folder = folder();
    fs::write(folder.path().join("d/.env"), "K=2").expect("a file");
    assert_eq!(replace(folder.path(), &file, true), Replaced { outcome: Outcome::Written, aside: None });
    assert_eq!(names(folder.path()), [".env"]);
}

/// A version of the program that could not delete a folder left it at its temporary path.
#[test]
fn a_replacement_that_stopped_at_a_folder_is_finished() {
    let file = PlainFile::File { bytes: b"K=1".to_vec(), mode: 0o600 };
    for (name, put) in obstacles() {
        let folder = folder();
        put(&folder.path().join(format!("d/.retake-tmp-{TOKEN}-b0")));
        fs::write(folder.path().join("d/.env"), "K=1").expect("a file");
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(folder.path().join("d/.env"), mode).expect("our file");
        let replaced = replace(folder.path(), &file, false);
        assert_eq!(replaced.outcome, Outcome::Already, "{name}");
        assert_eq!(replaced.aside.as_deref(), Some("d/.env.retake-aside"), "{name}");
        assert_eq!(names(folder.path()), [".env", ".env.retake-aside"], "{name}");
    }
}
