//! Every kind of difference between two folders.

use super::*;

/// Moves a folder from one shape to another, back, and forward again.
#[track_caller]
fn check<const N: usize, const M: usize>(before: [(&str, TestNode); N], after: [(&str, TestNode); M]) {
    let (before, after) = (shape(before), shape(after));
    for plain in [false, true] {
        let mut fixture = Fixture::new();
        fixture.write(&before);
        let open = if plain { OpenRoot::open_plain } else { OpenRoot::open };
        let root = open(&fixture.root()).expect("a folder");
        for (from, to) in [(&before, &after), (&after, &before), (&before, &after)] {
            let steps = fixture.steps(from, to);
            let report = fixture.apply_to(&root, &steps).expect("no failure");
            for result in &report.results {
                assert!(matches!(result.outcome, Outcome::Written | Outcome::Removed), "{result:?}");
            }
            assert_eq!(report.results.len(), steps.len());
            assert_eq!(fixture.read(), whole(to));
            let again = fixture.apply_to(&root, &steps).expect("no failure");
            assert!(again.results.iter().all(|result| result.outcome == Outcome::Already), "{again:?}");
        }
    }
}

fn with_mode(mode: u16) -> TestNode {
    TestNode::File(b"x".to_vec(), mode)
}

#[test]
fn files_links_and_folders_are_added_changed_and_removed() {
    check([], []);
    check([], [("a", f("1"))]);
    check([("a", f("1"))], [("a", f("2"))]);
    check([("a", f("1")), ("b", f("2"))], [("a", f("2")), ("b", f("1"))]);
    check([("a", l("x"))], [("a", l("y"))]);
    check([("empty", d())], []);
    check([("d/e/f", f("1"))], [("d/e/g", f("1")), ("d/h", l("e"))]);
    check([("a/b/c/d", f("deep"))], []);
    check([], [("a", TestNode::File(vec![7; PART as usize * 2 + 5], 0o644))]);
    check([], [("a", TestNode::File(vec![7; PART as usize * 2 + 6], 0o644))]);
    let bytes = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    check([("a", f("1"))], [("a", TestNode::File(bytes, 0o644))]);
    check([], [("a", TestNode::File(vec![7; PART as usize], 0o600))]);
    check([("a", f(""))], [("a", f("no longer empty"))]);
}

#[test]
fn files_links_and_folders_replace_each_other() {
    check([("a", f("1"))], [("a", l("b"))]);
    check([("a", f("1"))], [("a/b", f("2"))]);
    check([("a", l("/etc"))], [("a/b/c", f("2")), ("a/d", l("b"))]);
    check([("a", d())], [("a", l("nowhere"))]);
    check([("a/b", f("1")), ("a/c/d", f("2"))], [("a/b/d", f("1")), ("a/c", f("2"))]);
}

#[test]
fn modes_are_exact_whatever_the_umask() {
    check([("a", with_mode(0o644))], [("a", with_mode(0o755))]);
    check([("a", with_mode(0o777))], [("a", with_mode(0o000))]);
    check([], [("a", with_mode(0o666)), ("b", with_mode(0o777))]);
    check([("d", d())], [("d", TestNode::Folder(0o700))]);
    check([], [("d", TestNode::Folder(0o555)), ("d/e", TestNode::Folder(0o500)), ("d/e/f", f("1"))]);
    check(
        [("d", TestNode::Folder(0o555)), ("d/a", f("1"))],
        [("d", TestNode::Folder(0o555)), ("d/a", f("2"))],
    );
    check([], [("d", TestNode::Folder(0o777))]);
}

#[test]
fn content_is_preserved_byte_for_byte() {
    check([("a", f("one\r\ntwo\r\n"))], [("a", f("one\r\ntwo"))]);
    check([("a", f("\u{feff}bom\n"))], [("a", TestNode::File(vec![0, 0xff, b'\r', 0, b'\n'], 0o644))]);
}

#[test]
fn an_empty_tree_can_be_restored() {
    check([("a", f("1")), ("b/c", f("2")), ("d", d())], []);
}

#[test]
fn many_files_in_many_folders_are_written() {
    let mut fixture = Fixture::new();
    let mut many = Shape::new();
    for folder in 0..40 {
        for file in 0..30 {
            let path = format!("top/{folder}/in/{file}").into_bytes();
            many.insert(path, f(&format!("{folder} {file}")));
        }
    }
    let few = shape([("other", f("1"))]);
    fixture.write(&few);
    let steps = fixture.steps(&few, &many);
    assert!(fixture.apply(&steps).is_ok());
    assert_eq!(fixture.read(), whole(&many));
    let steps = fixture.steps(&many, &few);
    assert!(fixture.apply(&steps).is_ok());
    assert_eq!(fixture.read(), few);
}

#[test]
fn concurrent_changes_are_preserved() {
    let mut fixture = Fixture::new();
    let before = shape([("a", f("1")), ("b", f("1")), ("c", f("1")), ("e", l("x")), ("m", f("1"))]);
    let after = shape([("a", f("2")), ("c", f("2")), ("n", f("2")), ("e", l("y")), ("m", with_mode(0o600))]);
    let steps = fixture.steps(&before, &after);
    let now =
        shape([("a", f("mine")), ("b", f("mine")), ("n", f("mine")), ("e", f("mine")), ("m", f("mine"))]);
    fixture.write(&now);
    let outcomes = fixture.outcomes(&steps);
    for path in ["a", "b", "c", "e", "m", "n"] {
        assert!(matches!(outcomes[path], Outcome::Kept(_)), "{path}: {:?}", outcomes[path]);
    }
    assert_eq!(outcomes["c"], Outcome::Kept(DiskNode::Nothing));
    assert_eq!(fixture.read(), now);
}

#[test]
fn a_folder_with_ignored_content_stays() {
    let mut fixture = Fixture::new();
    let before = shape([("d/a", f("1")), ("d/e/b", f("1"))]);
    fixture.write(&before);
    fixture.write(&shape([("d/target/output", f("built"))]));
    let steps = fixture.steps(&before, &Shape::new());
    let outcomes = fixture.outcomes(&steps);
    assert_eq!(outcomes["d"], Outcome::Skipped(SkipReason::NotEmpty));
    assert_eq!(outcomes["d/e"], Outcome::Removed);
    assert_eq!(fixture.read(), whole(&shape([("d/target/output", f("built"))])));
    // Removed files return into the folder that stayed.
    let steps = fixture.steps(&Shape::new(), &before);
    let outcomes = fixture.outcomes(&steps);
    assert_eq!((&outcomes["d"], &outcomes["d/e/b"]), (&Outcome::Already, &Outcome::Written));
}

#[test]
fn a_hard_linked_file_is_not_written_through() {
    let mut fixture = Fixture::new();
    let before = shape([("a", f("1")), ("m", f("1"))]);
    fixture.write(&before);
    for name in ["a", "m"] {
        std::fs::hard_link(fixture.at(name), fixture.place.path().join(name)).expect("a second name");
    }
    let steps = fixture.steps(&before, &shape([("a", f("2")), ("m", TestNode::File(b"1".to_vec(), 0o600))]));
    assert!(fixture.apply(&steps).is_ok());
    for name in ["a", "m"] {
        let other = fixture.place.path().join(name);
        assert_eq!(std::fs::read(&other).expect("a file"), b"1");
        assert_eq!(other.metadata().expect("a file").mode() & 0o777, 0o644);
    }
    assert_eq!(fixture.at("m").metadata().expect("a file").mode() & 0o777, 0o600);
}

#[test]
fn missing_parent_folders_are_created() {
    let mut fixture = Fixture::new();
    let after = shape([("a/b/c", f("1"))]);
    let steps: Vec<Difference> = fixture.steps(&Shape::new(), &after).into_iter().skip(2).collect();
    assert_eq!(fixture.outcomes(&steps)["a/b/c"], Outcome::Written);
    assert_eq!(fixture.read(), whole(&after));
}

#[test]
fn a_cached_file_is_not_read() {
    let mut fixture = Fixture::new();
    let before = shape([("a", f("1"))]);
    let steps = fixture.steps(&before, &shape([("a", f("2"))]));
    fixture.write(&before);
    // Old enough for its time to reveal every later write.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options()
        .write(true)
        .open(fixture.at("a"))
        .and_then(|file| file.set_modified(old))
        .expect("a writable file");
    let asked = std::cell::Cell::new(0);
    let unchanged = |path: &TreePath, identity: &Identity| {
        asked.set(asked.get() + 1);
        path.to_string() == "a" && identity.size == 1
    };
    let root = OpenRoot::open(&fixture.root()).expect("a folder");
    let report = apply(&Request {
        root: &root,
        steps: &steps,
        objects: &fixture.objects,
        token: &Token::new("t").expect("a token"),
        unchanged: Some(&unchanged),
        progress: None,
        cancel: &AtomicBool::new(false),
        all_or_nothing: false,
    });
    assert_eq!(report.expect("no failure").results[0].outcome, Outcome::Written);
    assert_eq!(asked.get(), 1);
}

#[test]
fn duplicate_paths_are_refused() {
    let mut fixture = Fixture::new();
    let mut steps = fixture.steps(&Shape::new(), &shape([("a", f("1"))]));
    steps.push(steps[0].clone());
    assert!(matches!(fixture.apply(&steps), Err(ApplyError { cause: Cause::Twice(_), .. })));
    assert_eq!(fixture.read(), Shape::new());
}

#[test]
fn invalid_tokens_are_refused() {
    for text in ["", "a/b", "..", "a b", "\n", &"a".repeat(65)] {
        assert_eq!(Token::new(text), Err(InvalidTokenError), "{text:?}");
    }
}

#[test]
fn special_mode_bits_stay_with_unchanged_content() {
    let mut fixture = Fixture::new();
    let before = shape([("d", TestNode::Folder(0o755)), ("f", TestNode::File(b"1".to_vec(), 0o755))]);
    let after = shape([("d", TestNode::Folder(0o700)), ("f", TestNode::File(b"1".to_vec(), 0o700))]);
    let other = shape([("d", TestNode::Folder(0o700)), ("f", TestNode::File(b"2".to_vec(), 0o700))]);
    fixture.write(&before);
    set_mode(&fixture.at("d"), 0o3755);
    set_mode(&fixture.at("f"), 0o4755);
    let mode =
        |fixture: &Fixture, path: &str| fixture.at(path).metadata().expect("it is there").mode() & 0o7777;
    let steps = fixture.steps(&before, &after);
    fixture.apply(&steps).expect("no failure");
    assert_eq!((mode(&fixture, "d"), mode(&fixture, "f")), (0o3700, 0o4700));
    // New content must not inherit setuid.
    let steps = fixture.steps(&after, &other);
    fixture.apply(&steps).expect("no failure");
    assert_eq!((mode(&fixture, "d"), mode(&fixture, "f")), (0o3700, 0o700));
}
