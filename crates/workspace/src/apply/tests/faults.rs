//! Failures, cancellations and crashes at every point.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::Ordering;

use super::*;

/// Two shapes with every kind of difference.
fn shapes() -> (Shape, Shape) {
    let before = shape([
        ("changed", f("1")),
        ("mode", f("m")),
        ("gone", f("1")),
        ("old/a", f("1")),
        ("old/b/c", f("1")),
        ("shut", TestNode::Folder(0o500)),
        ("shut/x", f("1")),
        ("was-file", f("1")),
        ("was-folder/y", f("1")),
        ("was-link", l("changed")),
    ]);
    let after = shape([
        ("changed", f("2")),
        ("mode", TestNode::File(b"m".to_vec(), 0o700)),
        ("new/a", f("2")),
        ("new/closed", TestNode::Folder(0o500)),
        ("new/closed/c", f("2")),
        ("alone", f("2")),
        ("shut", TestNode::Folder(0o555)),
        ("shut/x", f("2")),
        ("was-file/z", f("2")),
        ("was-folder", f("2")),
        ("was-link", l("alone")),
    ]);
    (before, after)
}

/// Applies steps and runs an action at each progress report.
fn apply_with(
    fixture: &Fixture,
    root: &OpenRoot,
    steps: &[Difference],
    observe: &dyn Fn(usize, &AtomicBool),
) -> Result<Report, ApplyError> {
    let cancel = AtomicBool::new(false);
    let count = Cell::new(0);
    let progress = |_: Progress| {
        count.set(count.get() + 1);
        observe(count.get(), &cancel);
    };
    apply(&Request {
        root,
        steps,
        objects: &fixture.objects,
        token: &Token::new("test").expect("a token"),
        unchanged: None,
        progress: Some(&progress),
        cancel: &cancel,
        all_or_nothing: false,
    })
}

#[test]
fn a_cancel_at_any_point_restores_everything() {
    let (before, after) = shapes();
    for plain in [false, true] {
        let mut stopped = 0;
        for point in 1.. {
            let mut fixture = Fixture::within(&fast());
            fixture.write(&before);
            let steps = fixture.steps(&before, &after);
            let open = if plain { OpenRoot::open_plain } else { OpenRoot::open };
            let root = open(&fixture.root()).expect("a folder");
            let done = apply_with(&fixture, &root, &steps, &|count, cancel| {
                cancel.store(count >= point, Ordering::Relaxed);
            });
            let Err(error) = done else { break };
            assert!(matches!(error.cause, Cause::Cancelled));
            assert_eq!(error.not_put_back, [], "point {point}");
            assert_eq!(fixture.read(), whole(&before), "point {point}");
            stopped += 1;
        }
        assert!(stopped > 15, "{stopped} points");
    }
}

#[test]
fn a_move_interrupted_at_any_point_can_be_finished_or_reverted() {
    let (before, after) = shapes();
    std::panic::set_hook(Box::new(|_| {}));
    for plain in [false, true] {
        let mut crashed = 0;
        for point in 1.. {
            let mut over = false;
            for (from, to) in [(&before, &after), (&after, &before)] {
                let mut fixture = Fixture::within(&fast());
                fixture.write(&before);
                let steps = fixture.steps(&before, &after);
                let open = if plain { OpenRoot::open_plain } else { OpenRoot::open };
                let root = open(&fixture.root()).expect("a folder");
                let done = catch_unwind(AssertUnwindSafe(|| {
                    apply_with(&fixture, &root, &steps, &|count, _| assert!(count < point))
                }));
                over |= done.is_ok();
                let steps = fixture.steps(from, to);
                let report = fixture.apply_to(&root, &steps).expect("no failure");
                assert_eq!(report.left, []);
                assert_eq!(fixture.read(), whole(to), "point {point}");
                crashed += 1;
            }
            if over {
                break;
            }
        }
        assert!(crashed > 30, "{crashed} points");
    }
    let _ = std::panic::take_hook();
}

/// Found by `campaigns files kill`: a removed folder came back with wrong permissions.
#[test]
fn a_folder_that_a_crash_left_writable_is_still_removed() {
    let (before, after) =
        (shape([("open", d()), ("shut", TestNode::Folder(0o500)), ("a", f("1"))]), shape([("a", f("2"))]));
    for (aside, name) in [(true, "open"), (true, "shut"), (false, "shut")] {
        let mut fixture = Fixture::new();
        fixture.write(&before);
        let steps = fixture.steps(&before, &after);
        let index = steps.iter().position(|step| step.path.to_string() == name).expect("a removal");
        set_mode(&fixture.at(name), 0o700);
        if aside {
            std::fs::create_dir(fixture.at(".retake-tmp-test-2")).expect("a folder");
            std::fs::rename(fixture.at(name), fixture.at(&format!(".retake-tmp-test-2/r{index}")))
                .expect("it moves");
        }
        fixture.apply(&steps).expect("it is finished");
        assert_eq!(fixture.read(), after, "{name}");
    }
}

/// Found by `campaigns files errors`: an empty folder whose parent was already gone was kept as someone's change.
#[test]
fn an_empty_folder_without_a_path_does_not_stay_aside() {
    let (before, after) = (shape([("top", d()), ("top/below", d()), ("a", f("1"))]), shape([("a", f("2"))]));
    let mut fixture = Fixture::new();
    fixture.write(&before);
    let steps = fixture.steps(&before, &after);
    let index = steps.iter().position(|step| step.path.to_string() == "top/below").expect("a removal");
    std::fs::create_dir(fixture.at(".retake-tmp-test-2")).expect("a folder");
    std::fs::rename(fixture.at("top/below"), fixture.at(&format!(".retake-tmp-test-2/r{index}")))
        .expect("it moves");
    std::fs::remove_dir(fixture.at("top")).expect("it is empty");
    let report = fixture.apply(&steps).expect("it is finished");
    assert_eq!((fixture.read(), report.left), (after, Vec::new()));
}

#[test]
fn files_set_aside_by_a_crash_are_restored() {
    let check = |aside: &str, now: Option<&str>, expected: &str, left: usize| {
        let mut fixture = Fixture::new();
        let steps = fixture.steps(&shape([("a", f("1"))]), &shape([("a", f("2"))]));
        let folder = fixture.at(".retake-tmp-test-2");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join(aside), "mine").expect("a file");
        if let Some(now) = now {
            std::fs::write(fixture.at("a"), now).expect("a file");
            set_mode(&fixture.at("a"), 0o644);
        }
        let report = fixture.apply(&steps).expect("no failure");
        assert_eq!(std::fs::read_to_string(fixture.at("a")).expect("a file"), expected, "{aside} {now:?}");
        assert_eq!(report.left.len(), left, "{aside} {now:?}");
        for left in report.left {
            assert_eq!(std::fs::read(fixture.at(&left.file)).expect("a file"), b"mine");
        }
        assert!(!folder.exists());
    };
    check("x0", Some("2"), "mine", 0);
    check("x0", Some("1"), "mine", 0);
    check("x0", None, "mine", 0);
    check("r0", None, "mine", 0);
    check("x0", Some("newer"), "newer", 1);
    check("r0", Some("newer"), "newer", 1);
    check("x77", Some("1"), "2", 1);
}

/// A small file system in memory, unmounted on drop.
struct SmallFileSystem(tempfile::TempDir);

impl SmallFileSystem {
    fn mount(size: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: a file system is mounted by root only");
            return None;
        }
        let place = tempfile::tempdir().expect("a temporary folder");
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(place.path()).status();
        assert!(mounted.is_ok_and(|status| status.success()), "root can mount a file system");
        Some(Self(place))
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    let Some(small) = SmallFileSystem::mount("1m") else { return };
    for files in [1, 30] {
        let mut fixture = Fixture::within(small.0.path());
        let (before, mut after) = shapes();
        for file in 0..files {
            let bytes = vec![b'x'; 3 * 1024 * 1024 / files];
            after.insert(format!("large/{file}").into_bytes(), TestNode::File(bytes, 0o644));
        }
        fixture.write(&before);
        let steps = fixture.steps(&before, &after);
        let error = fixture.apply(&steps).expect_err("the disk is full");
        let Cause::Path { source, .. } = &error.cause else { panic!("{error:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(error.not_put_back, []);
        assert_eq!(fixture.read(), whole(&before));
    }
}

#[test]
fn a_path_with_missing_content_is_unchanged() {
    let mut fixture = Fixture::new();
    let before = shape([("a", f("1")), ("b", f("1"))]);
    fixture.write(&before);
    let mut steps = fixture.steps(&before, &shape([("a", f("2")), ("b", f("2"))]));
    steps[0].after = Some(Node::file(ContentId::of(Kind::Blob, b"nowhere"), 7, 0o644));
    let outcomes = fixture.outcomes(&steps);
    assert_eq!(outcomes["a"], Outcome::Skipped(SkipReason::ContentMissing));
    assert_eq!(outcomes["b"], Outcome::Written);
    assert_eq!(fixture.read(), shape([("a", f("1")), ("b", f("2"))]));
}

#[test]
fn an_entry_whose_replacement_cannot_be_written_stays_with_everything_below_it() {
    let mut fixture = Fixture::new();
    let before = shape([("b", f("1")), ("deep/further/in", f("2")), ("deep/in", f("3")), ("flat", f("4"))]);
    fixture.write(&before);
    let after = shape([("b", f("new")), ("deep", f("5")), ("flat/in", f("6"))]);
    let mut steps = fixture.steps(&before, &after);
    for step in steps.iter_mut().filter(|step| step.path.to_string() == "deep") {
        step.after = Some(Node::file(ContentId::of(Kind::Blob, b"nowhere"), 7, 0o644));
    }
    let outcomes = fixture.outcomes(&steps);
    for path in ["deep", "deep/further", "deep/further/in", "deep/in"] {
        assert_eq!(outcomes[path], Outcome::Skipped(SkipReason::ContentMissing), "{path}");
    }
    assert_eq!(outcomes["flat/in"], Outcome::Written);
    let left =
        shape([("b", f("new")), ("deep/further/in", f("2")), ("deep/in", f("3")), ("flat/in", f("6"))]);
    assert_eq!(fixture.read(), whole(&left));
}

#[test]
fn a_missing_root_is_an_error() {
    let mut fixture = Fixture::new();
    let steps = fixture.steps(&Shape::new(), &shape([("a", f("1"))]));
    let root = OpenRoot::open(&fixture.root()).expect("a folder");
    std::fs::remove_dir(fixture.root()).expect("it is empty");
    assert!(matches!(fixture.apply_to(&root, &steps), Err(ApplyError { cause: Cause::Root(_), .. })));
    assert!(OpenRoot::open(&fixture.root()).is_err());
}

#[test]
fn permissions_do_not_stop_the_owner() {
    const PLACE: &str = "RETAKE_TEST_USER_PLACE";
    if std::env::var_os(PLACE).is_none() && rustix::process::geteuid().is_root() {
        // Runs the same test again as an unprivileged user.
        let place = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).expect("root may");
        let name = "apply::tests::faults::permissions_do_not_stop_the_owner";
        let again = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(std::env::current_exe().expect("this test"))
            .args([name, "--exact"])
            .env(PLACE, place.path())
            .output()
            .expect("setpriv is there");
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
        assert!(String::from_utf8_lossy(&again.stdout).contains("1 passed"));
        return;
    }
    let place = std::env::var_os(PLACE).map_or_else(std::env::temp_dir, PathBuf::from);
    let mut fixture = Fixture::within(&place);
    let (before, after) = shapes();
    fixture.write(&before);
    let steps = fixture.steps(&before, &after);
    assert!(fixture.apply(&steps).is_ok());
    assert_eq!(fixture.read(), whole(&after));
    let steps = fixture.steps(&after, &before);
    assert!(fixture.apply(&steps).is_ok());
    assert_eq!(fixture.read(), whole(&before));

    // An unreadable file cannot be compared, and so is not replaced.
    let mut fixture = Fixture::within(&place);
    let before = shape([("a", TestNode::File(b"1".to_vec(), 0o000)), ("b", f("1"))]);
    fixture.write(&before);
    let steps = fixture.steps(&before, &shape([("a", f("2")), ("b", f("2"))]));
    let outcomes = fixture.outcomes(&steps);
    assert_eq!(outcomes["a"], Outcome::Skipped(SkipReason::Denied));
    assert_eq!(outcomes["b"], Outcome::Written);

    set_mode(&fixture.root(), 0o500);
    let steps = fixture.steps(&shape([("b", f("2"))]), &shape([("b", f("1"))]));
    let error = fixture.apply(&steps).expect_err("the root may not be written");
    assert!(matches!(error.cause, Cause::Root(_)));
    set_mode(&fixture.root(), 0o700);
}

#[test]
fn a_request_that_is_all_or_nothing_deletes_nothing_if_the_system_denies_one_path() {
    let check = |name: &'static str, all_or_nothing: bool, expected: &[&str]| {
        let mut fixture = Fixture::new();
        let before = shape([("a", f("1")), ("deep/b", f("1")), ("mixed/c", f("1")), ("z", f("1"))]);
        fixture.write(&before);
        let steps = fixture.steps(&before, &Shape::new());
        std::fs::write(fixture.root().join("mixed/ignored"), "mine").expect("a writable folder");
        let root = OpenRoot::open_denying(&fixture.root(), name.as_bytes()).expect("a folder");
        let applied = apply(&Request {
            root: &root,
            steps: &steps,
            objects: &fixture.objects,
            token: &Token::new("test").expect("a token"),
            unchanged: None,
            progress: None,
            cancel: &AtomicBool::new(false),
            all_or_nothing,
        });
        match applied {
            Ok(report) => {
                let skipped: Vec<String> =
                    report.skipped().iter().map(|(path, reason)| format!("{path}: {reason}")).collect();
                let denied = if name.is_empty() {
                    Vec::new()
                } else {
                    vec![format!("deep/{name}: permission denied")]
                };
                assert_eq!(skipped, denied);
            }
            Err(ApplyError { cause: Cause::Skipped(skipped), not_put_back }) => {
                assert!(all_or_nothing && not_put_back.is_empty());
                assert_eq!(describe_skipped(&skipped), format!("deep/{name} (permission denied)"));
            }
            Err(error) => panic!("{error:?}"),
        }
        let left: Vec<String> =
            fixture.read().into_keys().map(|path| String::from_utf8(path).expect("text")).collect();
        assert_eq!(left, expected, "{name:?}, {all_or_nothing}");
    };
    let all = ["a", "deep", "deep/b", "mixed", "mixed/c", "mixed/ignored", "z"];
    check("b", true, &all);
    check("b", false, &["deep", "deep/b", "mixed", "mixed/ignored"]);
    // A folder with other files in it does not count.
    check("", true, &["mixed", "mixed/ignored"]);
}
