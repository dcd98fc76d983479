//! Writes trees into new folders.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::apply::tests::{Fixture, Shape, TestNode, d, f, l, read, shape, whole};

fn lay(
    fixture: &Fixture,
    tree: ContentId,
    unchanged: &(dyn Fn(&TreePath, &Identity, ContentId) -> bool + Sync),
) -> Result<(MaterialiseReport, Shape), MaterialiseError> {
    let target = tempfile::tempdir().expect("a temporary folder");
    let root = OpenRoot::open(&fixture.root()).expect("a folder");
    let done = materialise(&Request {
        target: &OpenRoot::open(target.path()).expect("a folder"),
        tree,
        objects: &fixture.objects,
        copy_source: Some(CopySource { root: &root, unchanged }),
        progress: None,
        cancel: &AtomicBool::new(false),
    });
    let found = read(target.path());
    done.map(|done| (done, found.clone())).inspect_err(|_| assert_eq!(found, Shape::new()))
}

fn example() -> Shape {
    let mut example = shape([
        ("a", f("1")),
        ("empty", f("")),
        ("run", TestNode::File(b"#!".to_vec(), 0o755)),
        ("private", TestNode::File(b"p".to_vec(), 0o600)),
        ("link", l("../../etc/passwd")),
        ("nothing", d()),
        ("closed", TestNode::Folder(0o555)),
        ("closed/inner/b", f("2")),
        ("large", TestNode::File(vec![9; 9 << 20], 0o644)),
    ]);
    for file in 0..200 {
        example.insert(format!("many/{}/{file}", file % 7).into_bytes(), f(&file.to_string()));
    }
    example
}

#[test]
fn a_worktree_is_filled_from_the_project_and_the_store() {
    let mut fixture = Fixture::new();
    let example = example();
    let tree = fixture.tree(&example);
    let (done, found) = lay(&fixture, tree, &|_, _, _| true).expect("no failure");
    assert_eq!(found, whole(&example));
    assert_eq!((done.shared + done.copied, done.links), (0, 1), "nothing is nearby");

    fixture.write(&example);
    let (done, found) = lay(&fixture, tree, &|_, _, _| true).expect("no failure");
    assert_eq!(found, whole(&example));
    assert_eq!((done.shared + done.copied, done.written), (206, 0));

    let (done, found) = lay(&fixture, tree, &|path, _, _| path.to_string() != "a").expect("no failure");
    assert_eq!(found, whole(&example));
    assert_eq!(done.written, 1);
}

#[test]
fn content_that_differs_in_the_project_comes_from_the_store() {
    let mut fixture = Fixture::new();
    let example = example();
    let tree = fixture.tree(&example);
    fixture.write(&example);
    // Another size, another type, missing, and reached through a link: none of them is copied.
    std::fs::write(fixture.at("a"), "longer").expect("a file");
    std::fs::remove_file(fixture.at("run")).expect("a file");
    std::fs::rename(fixture.at("many"), fixture.at("moved")).expect("a folder");
    std::os::unix::fs::symlink("moved", fixture.at("many")).expect("a link");
    let (done, found) = lay(&fixture, tree, &|_, _, _| true).expect("no failure");
    assert_eq!(found, whole(&example));
    assert_eq!(done.written, 202);
}

#[test]
fn a_failed_copy_leaves_nothing() {
    let mut fixture = Fixture::new();
    let tree = fixture.tree(&example());
    let nothing = retake_model::object::MemoryObjects::default();
    let lost = Fixture { objects: nothing, ..Fixture::new() };
    assert!(matches!(lay(&lost, tree, &|_, _, _| true), Err(MaterialiseError::Content(_))));

    let target = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(target.path().join("mine"), "1").expect("a file");
    let root = OpenRoot::open(target.path()).expect("a folder");
    let request = |cancel| Request {
        target: &root,
        tree,
        objects: &fixture.objects,
        copy_source: None,
        progress: None,
        cancel,
    };
    let go = AtomicBool::new(false);
    assert!(matches!(materialise(&request(&go)), Err(MaterialiseError::NotEmpty)));
    std::fs::remove_file(target.path().join("mine")).expect("a writable file");
    let stop = AtomicBool::new(true);
    assert!(matches!(materialise(&request(&stop)), Err(MaterialiseError::Cancelled)));
    assert_eq!(read(target.path()), Shape::new());
}
