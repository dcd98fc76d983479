//! Every kind of difference between two folders.

use super::*;

/// Moves a folder from one shape to another, back, and forward again.
#[track_caller]
fn check<const N: usize, const M: usize>(before: [(&str, Thing); N], after: [(&str, Thing); M]) {
    let (before, after) = (shape(before), shape(after));
    for plain in [false, true] {
        let mut lab = Lab::new();
        lab.write(&before);
        let open = if plain { OpenRoot::open_plain } else { OpenRoot::open };
        let root = open(&lab.root()).expect("a folder");
        for (from, to) in [(&before, &after), (&after, &before), (&before, &after)] {
            let steps = lab.steps(from, to);
            let report = lab.apply_to(&root, &steps).expect("no failure");
            for result in &report.results {
                assert!(matches!(result.outcome, Outcome::Written | Outcome::Removed), "{result:?}");
            }
            assert_eq!(report.results.len(), steps.len());
            assert_eq!(lab.read(), whole(to));
            let again = lab.apply_to(&root, &steps).expect("no failure");
            assert!(again.results.iter().all(|result| result.outcome == Outcome::Already), "{again:?}");
        }
    }
}

fn with_mode(mode: u16) -> Thing {
    Thing::File(b"x".to_vec(), mode)
}

#[test]
fn files_links_and_folders_come_change_and_go() {
    check([], []);
    check([], [("a", f("1"))]);
    check([("a", f("1"))], [("a", f("2"))]);
    check([("a", f("1")), ("b", f("2"))], [("a", f("2")), ("b", f("1"))]);
    check([("a", l("x"))], [("a", l("y"))]);
    check([("empty", d())], []);
    check([("d/e/f", f("1"))], [("d/e/g", f("1")), ("d/h", l("e"))]);
    check([("a/b/c/d", f("deep"))], []);
    check([], [("a", Thing::File(vec![7; PART as usize * 2 + 5], 0o644))]);
    check([], [("a", Thing::File(vec![7; PART as usize], 0o600))]);
    check([("a", f(""))], [("a", f("no longer empty"))]);
}

#[test]
fn one_kind_of_thing_becomes_another() {
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
    check([("d", d())], [("d", Thing::Folder(0o700))]);
    check([], [("d", Thing::Folder(0o555)), ("d/e", Thing::Folder(0o500)), ("d/e/f", f("1"))]);
    check([("d", Thing::Folder(0o555)), ("d/a", f("1"))], [("d", Thing::Folder(0o555)), ("d/a", f("2"))]);
    check([], [("d", Thing::Folder(0o777))]);
}

#[test]
fn bytes_are_kept_as_they_are() {
    check([("a", f("one\r\ntwo\r\n"))], [("a", f("one\r\ntwo"))]);
    check([("a", f("\u{feff}bom\n"))], [("a", Thing::File(vec![0, 0xff, b'\r', 0, b'\n'], 0o644))]);
}

#[test]
fn an_empty_tree_can_be_restored() {
    check([("a", f("1")), ("b/c", f("2")), ("d", d())], []);
}

#[test]
fn many_files_in_many_folders() {
    let mut lab = Lab::new();
    let mut many = Shape::new();
    for folder in 0..40 {
        for file in 0..30 {
            let path = format!("top/{folder}/in/{file}").into_bytes();
            many.insert(path, f(&format!("{folder} {file}")));
        }
    }
    let few = shape([("other", f("1"))]);
    lab.write(&few);
    let steps = lab.steps(&few, &many);
    assert!(lab.apply(&steps).is_ok());
    assert_eq!(lab.read(), whole(&many));
    let steps = lab.steps(&many, &few);
    assert!(lab.apply(&steps).is_ok());
    assert_eq!(lab.read(), few);
}

#[test]
fn what_somebody_changed_since_is_kept() {
    let mut lab = Lab::new();
    let before = shape([("a", f("1")), ("b", f("1")), ("c", f("1")), ("e", l("x")), ("m", f("1"))]);
    let after = shape([("a", f("2")), ("c", f("2")), ("n", f("2")), ("e", l("y")), ("m", with_mode(0o600))]);
    let steps = lab.steps(&before, &after);
    let now =
        shape([("a", f("mine")), ("b", f("mine")), ("n", f("mine")), ("e", f("mine")), ("m", f("mine"))]);
    lab.write(&now);
    let outcomes = lab.outcomes(&steps);
    for path in ["a", "b", "c", "e", "m", "n"] {
        assert!(matches!(outcomes[path], Outcome::Kept(_)), "{path}: {:?}", outcomes[path]);
    }
    assert_eq!(outcomes["c"], Outcome::Kept(Found::Nothing));
    assert_eq!(lab.read(), now);
}

#[test]
fn a_folder_with_ignored_content_stays() {
    let mut lab = Lab::new();
    let before = shape([("d/a", f("1")), ("d/e/b", f("1"))]);
    lab.write(&before);
    lab.write(&shape([("d/target/output", f("built"))]));
    let steps = lab.steps(&before, &Shape::new());
    let outcomes = lab.outcomes(&steps);
    assert_eq!(outcomes["d"], Outcome::Skipped(Skip::NotEmpty));
    assert_eq!(outcomes["d/e"], Outcome::Removed);
    assert_eq!(lab.read(), whole(&shape([("d/target/output", f("built"))])));
    // Removed files return into the folder that stayed.
    let steps = lab.steps(&Shape::new(), &before);
    let outcomes = lab.outcomes(&steps);
    assert_eq!((&outcomes["d"], &outcomes["d/e/b"]), (&Outcome::Already, &Outcome::Written));
}

#[test]
fn a_file_with_several_names_is_not_written_through() {
    let mut lab = Lab::new();
    let before = shape([("a", f("1")), ("m", f("1"))]);
    lab.write(&before);
    for name in ["a", "m"] {
        std::fs::hard_link(lab.at(name), lab.place.path().join(name)).expect("a second name");
    }
    let steps = lab.steps(&before, &shape([("a", f("2")), ("m", Thing::File(b"1".to_vec(), 0o600))]));
    assert!(lab.apply(&steps).is_ok());
    for name in ["a", "m"] {
        let other = lab.place.path().join(name);
        assert_eq!(std::fs::read(&other).expect("a file"), b"1");
        assert_eq!(other.metadata().expect("a file").mode() & 0o777, 0o644);
    }
    assert_eq!(lab.at("m").metadata().expect("a file").mode() & 0o777, 0o600);
}

#[test]
fn folders_on_the_way_are_made() {
    let mut lab = Lab::new();
    let after = shape([("a/b/c", f("1"))]);
    let steps: Vec<Difference> = lab.steps(&Shape::new(), &after).into_iter().skip(2).collect();
    assert_eq!(lab.outcomes(&steps)["a/b/c"], Outcome::Written);
    assert_eq!(lab.read(), whole(&after));
}

#[test]
fn a_file_that_is_known_is_not_read() {
    let mut lab = Lab::new();
    let before = shape([("a", f("1"))]);
    let steps = lab.steps(&before, &shape([("a", f("2"))]));
    lab.write(&before);
    // Old enough for its time to reveal every later write.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options()
        .write(true)
        .open(lab.at("a"))
        .and_then(|file| file.set_modified(old))
        .expect("ours");
    let asked = std::cell::Cell::new(0);
    let unchanged = |path: &TreePath, identity: &Identity| {
        asked.set(asked.get() + 1);
        path.to_string() == "a" && identity.size == 1
    };
    let root = OpenRoot::open(&lab.root()).expect("a folder");
    let report = apply(&Request {
        root: &root,
        steps: &steps,
        objects: &lab.objects,
        token: &Token::new("t").expect("a token"),
        unchanged: Some(&unchanged),
        progress: None,
        cancel: &AtomicBool::new(false),
    });
    assert_eq!(report.expect("no failure").results[0].outcome, Outcome::Written);
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_path_is_named_once() {
    let mut lab = Lab::new();
    let mut steps = lab.steps(&Shape::new(), &shape([("a", f("1"))]));
    steps.push(steps[0].clone());
    assert!(matches!(lab.apply(&steps), Err(ApplyError { cause: Cause::Twice(_), .. })));
    assert_eq!(lab.read(), Shape::new());
}

#[test]
fn a_token_cannot_lead_elsewhere() {
    for text in ["", "a/b", "..", "a b", "\n", &"a".repeat(65)] {
        assert_eq!(Token::new(text), Err(NotAToken), "{text:?}");
    }
}

#[test]
fn bits_that_are_not_held_stay_where_the_content_stays() {
    let mut lab = Lab::new();
    let before = shape([("d", Thing::Folder(0o755)), ("f", Thing::File(b"1".to_vec(), 0o755))]);
    let after = shape([("d", Thing::Folder(0o700)), ("f", Thing::File(b"1".to_vec(), 0o700))]);
    let other = shape([("d", Thing::Folder(0o700)), ("f", Thing::File(b"2".to_vec(), 0o700))]);
    lab.write(&before);
    set_mode(&lab.at("d"), 0o3755);
    set_mode(&lab.at("f"), 0o4755);
    let mode = |lab: &Lab, path: &str| lab.at(path).metadata().expect("it is there").mode() & 0o7777;
    let steps = lab.steps(&before, &after);
    lab.apply(&steps).expect("no failure");
    assert_eq!((mode(&lab, "d"), mode(&lab, "f")), (0o3700, 0o4700));
    // New content must not inherit setuid.
    let steps = lab.steps(&after, &other);
    lab.apply(&steps).expect("no failure");
    assert_eq!((mode(&lab, "d"), mode(&lab, "f")), (0o3700, 0o700));
}
