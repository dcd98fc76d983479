//! Names and shapes crafted to escape the root.

use std::process::Command;

use retake_model::tree::TreeNode;

use super::*;

/// A root next to a folder that nothing may change.
fn with_outside() -> (Fixture, Shape) {
    let fixture = Fixture::new();
    let outside = fixture.place.path().join("outside");
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(outside.join("file"), "canary").expect("a file");
    let seen = read(&outside);
    (fixture, seen)
}

fn outside(fixture: &Fixture) -> Shape {
    read(&fixture.place.path().join("outside"))
}

#[test]
fn names_that_escape_the_folder_are_refused() {
    for name in ["..", ".", "", "a/b", "/etc", ".git", ".GIT", "git~1", ".g\u{200c}it", ".retake-tmp-x"] {
        let mut bytes = vec![0x81, 0x82];
        assert!(FileName::new(name.as_bytes()).is_err(), "{name:?}");
        // One entry of a crafted tree: its name, and a link.
        minicbor_bytes(&mut bytes, name.as_bytes());
        bytes.extend([0x82, 0x01, 0x81]);
        minicbor_bytes(&mut bytes, b"target");
        assert!(retake_model::content::decode::<TreeNode>(&bytes).is_err(), "{name:?}");
    }
}

#[test]
fn data_of_version_control_systems_is_neither_written_nor_removed() {
    for name in [".hg", ".SVN", ".jj", ".bzr", "CVS", "cvs.", "_darcs"] {
        let mut fixture = Fixture::new();
        let inside = fixture.tree(&shape([("hgrc", f("[hooks]"))]));
        let plain = fixture.tree(&shape([("a", f("1"))]));
        let plain = Tree::load(&fixture.objects, plain).expect("captured");
        // As an import or an older version may have stored it.
        let mut bytes = vec![0x81, 0x82];
        minicbor_bytes(&mut bytes, name.as_bytes());
        bytes.extend([0x82, 0x01, 0x81]);
        minicbor_bytes(&mut bytes, b"target");
        let old: TreeNode = retake_model::content::decode(&bytes).expect("it can be read");
        let both = plain.with(&old.entries()[0].name, Some(Node::Folder { tree: inside, mode: 0o755 }));
        let base = fixture.objects.clone();
        let mut additions = Additions::new(&base);
        let id = both.add_to(&mut additions);
        fixture.objects.insert_all(additions.into_new());
        let empty = fixture.tree(&shape([]));
        let brought = differences(&fixture.objects, Some(empty), Some(id)).expect("captured");
        let outcomes = fixture.outcomes(&brought);
        assert_eq!(outcomes[&format!("{name}/hgrc")], Outcome::Skipped(SkipReason::Repository), "{name}");
        assert_eq!(outcomes["a"], Outcome::Written);
        assert_eq!(fixture.read(), shape([("a", f("1"))]), "{name}");

        fixture.write(&shape([(&format!("{name}/hgrc"), f("[hooks]"))]));
        let removed = differences(&fixture.objects, Some(id), Some(empty)).expect("captured");
        assert_eq!(
            fixture.outcomes(&removed)[&format!("{name}/hgrc")],
            Outcome::Skipped(SkipReason::Repository)
        );
        assert_eq!(std::fs::read(fixture.at(name).join("hgrc")).expect("it stays"), b"[hooks]");
    }
}

fn minicbor_bytes(bytes: &mut Vec<u8>, text: &[u8]) {
    assert!(text.len() < 24, "a short head is enough here");
    bytes.push(0x40 + u8::try_from(text.len()).expect("short"));
    bytes.extend(text);
}

#[test]
fn links_are_not_followed() {
    let check = |target: &str| {
        let (mut fixture, seen) = with_outside();
        let before = shape([("d/file", f("1")), ("d/gone", f("1")), ("d/sub/x", f("1"))]);
        let after = shape([("d/file", f("2")), ("d/new", f("2")), ("d/more/y", f("2"))]);
        let steps = fixture.steps(&before, &after);
        std::os::unix::fs::symlink(target, fixture.at("d")).expect("a link");
        let outcomes = fixture.outcomes(&steps);
        for path in ["d/file", "d/new", "d/more/y"] {
            assert_eq!(outcomes[path], Outcome::Skipped(SkipReason::InTheWay), "{target} {path}");
        }
        assert_eq!(outside(&fixture), seen);
        assert_eq!(fixture.read(), shape([("d", l(target))]));
    };
    check("../outside");
    check("d");
    check("nowhere");
    check(".");
}

#[test]
fn a_link_and_paths_below_it_are_not_written_together() {
    let (mut fixture, seen) = with_outside();
    let mut steps = fixture.steps(&Shape::new(), &shape([("a", l("../outside"))]));
    let below = fixture.steps(&Shape::new(), &shape([("a/file", f("evil")), ("a/new", f("evil"))]));
    steps.extend(below.into_iter().filter(|step| step.path.names().len() == 2));
    let outcomes = fixture.outcomes(&steps);
    assert_eq!(outcomes["a"], Outcome::Written);
    assert_eq!(outcomes["a/file"], Outcome::Skipped(SkipReason::InTheWay));
    assert_eq!(outside(&fixture), seen);
}

#[test]
fn special_files_are_unchanged() {
    let mut fixture = Fixture::new();
    let before = shape([("pipe", f("1")), ("socket", f("1")), ("device", f("1"))]);
    let steps = fixture.steps(&before, &shape([("pipe", f("2")), ("device", l("x"))]));
    let made = Command::new("mkfifo").arg(fixture.at("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let _socket = std::os::unix::net::UnixListener::bind(fixture.at("socket")).expect("a socket");
    let device = Command::new("mknod").arg(fixture.at("device")).args(["c", "1", "3"]).status();
    let outcomes = fixture.outcomes(&steps);
    assert_eq!(outcomes["pipe"], Outcome::Kept(DiskNode::Special));
    assert_eq!(outcomes["socket"], Outcome::Kept(DiskNode::Special));
    if device.is_ok_and(|status| status.success()) {
        assert_eq!(outcomes["device"], Outcome::Kept(DiskNode::Special));
    }
}

#[test]
fn special_characters_in_names_are_preserved() {
    let mut fixture = Fixture::new();
    let mut odd = Shape::new();
    let long = [b'n'; 255];
    for name in
        [&b"\xff\xfe"[..], b"new\nline", b"-rf", b"*", b"a\\b", b"con", b" ", "e\u{301}".as_bytes(), &long]
    {
        odd.insert(name.to_vec(), f("odd"));
    }
    // Equal to some file systems, different here.
    for name in ["Twin", "twin", "TWIN/a", "tWIN/a"] {
        odd.insert(name.as_bytes().to_vec(), f(name));
    }
    let steps = fixture.steps(&Shape::new(), &odd);
    assert!(fixture.apply(&steps).is_ok());
    assert_eq!(fixture.read(), whole(&odd));
    let steps = fixture.steps(&odd, &Shape::new());
    assert!(fixture.apply(&steps).is_ok());
    assert_eq!(fixture.read(), Shape::new());
}

#[test]
fn a_path_deeper_than_the_descriptor_limit_is_written_and_removed() {
    // Building and comparing trees recurses, and the stack of a test is small.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(check_deep_path);
    thread.expect("a thread").join().expect("no failure");
}

fn check_deep_path() {
    let mut fixture = Fixture::within(&fast());
    let mut path = b"d/".repeat(1099);
    path.push(b'f');
    let deep = Shape::from([(path, f("deep"))]);
    for plain in [false, true] {
        let open = if plain { OpenRoot::open_plain } else { OpenRoot::open };
        let root = open(&fixture.root()).expect("a folder");
        for (from, to) in [(&Shape::new(), &deep), (&deep, &Shape::new())] {
            let steps = fixture.steps(from, to);
            assert_eq!(steps.len(), 1100);
            let report = fixture.apply_to(&root, &steps).expect("no failure");
            assert!(
                report
                    .results
                    .iter()
                    .all(|result| { matches!(result.outcome, Outcome::Written | Outcome::Removed) })
            );
        }
        assert_eq!(fixture.read(), Shape::new());
    }
    // A failure far down leaves nothing behind.
    let mut steps = fixture.steps(&Shape::new(), &deep);
    let last = steps.last_mut().expect("the file");
    last.after = Some(Node::file(ContentId::of(Kind::Blob, b"?"), 1, 0o644));
    let report = fixture.apply(&steps).expect("no failure");
    assert_eq!(report.results[1099].outcome, Outcome::Skipped(SkipReason::ContentMissing));
    super::super::walk::remove_all(OpenRoot::open(&fixture.root()).expect("a folder").as_fd(), b"d")
        .expect("it can be removed");
}
