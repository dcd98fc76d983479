//! Programs that write to a file or folder after it was moved aside: their changes survive, and the move does not fail.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write as _;

use super::*;

/// Applies steps and runs an action once everything to be removed was moved aside.
fn apply_and(fixture: &Fixture, steps: &[Difference], act: impl Fn()) -> Report {
    let acted = Cell::new(false);
    let progress = |now: Progress| {
        // The first report of this phase with a count comes after the last removal.
        if now.phase == Phase::Moving && now.done > 0 && !acted.replace(true) {
            act();
        }
    };
    let root = OpenRoot::open(&fixture.root()).expect("a folder");
    let report = apply(&Request {
        root: &root,
        steps,
        objects: &fixture.objects,
        token: &Token::new("test").expect("a token"),
        unchanged: None,
        progress: Some(&progress),
        cancel: &AtomicBool::new(false),
        all_or_nothing: false,
    });
    assert!(acted.get(), "nothing was done meanwhile");
    report.expect("changes by others are no error")
}

fn outcome_of<'report>(report: &'report Report, path: &str) -> &'report Outcome {
    let found = report.results.iter().find(|result| result.path.to_string() == path);
    &found.expect("a step").outcome
}

/// A program that has the file open and writes to it.
fn writer(fixture: &Fixture, path: &str) -> impl Fn() {
    let file = File::options().append(true).open(fixture.at(path)).expect("a file");
    move || (&file).write_all(b" and more").expect("written")
}

#[test]
fn a_file_written_during_the_move_returns_with_its_folder() {
    let before = shape([("d/e/a", f("1")), ("d/e/b", f("2")), ("z", f("3"))]);
    let after = shape([("z", f("3"))]);
    let mut fixture = Fixture::new();
    let steps = fixture.steps(&before, &after);
    fixture.write(&before);
    set_mode(&fixture.at("d/e"), 0o750);
    let mut steps = steps;
    for step in &mut steps {
        if let (true, Some(Node::Folder { mode, .. })) = (step.path.to_string() == "d/e", &mut step.before) {
            *mode = 0o750;
        }
    }
    let report = apply_and(&fixture, &steps, writer(&fixture, "d/e/a"));
    let left = shape([("d/e", TestNode::Folder(0o750)), ("d/e/a", f("1 and more")), ("z", f("3"))]);
    assert_eq!(fixture.read(), whole(&left));
    assert_eq!(report.left, []);
    assert!(matches!(outcome_of(&report, "d/e/a"), Outcome::Kept(_)));
    assert_eq!(*outcome_of(&report, "d/e/b"), Outcome::Removed);
    assert_eq!(*outcome_of(&report, "d/e"), Outcome::Skipped(SkipReason::NotEmpty));
    assert_eq!(*outcome_of(&report, "d"), Outcome::Skipped(SkipReason::NotEmpty));
}

#[test]
fn a_file_written_during_the_move_returns_to_a_removed_folder() {
    for after in [shape([("d", d()), ("z", f("4"))]), shape([("d/a", f("2")), ("z", f("4"))])] {
        let before = shape([("d/a", f("1")), ("z", f("3"))]);
        let mut fixture = Fixture::new();
        let steps = fixture.steps(&before, &after);
        fixture.write(&before);
        let write = writer(&fixture, "d/a");
        let report = apply_and(&fixture, &steps, || {
            write();
            fs::remove_dir_all(fixture.at("d")).expect("a removal");
        });
        assert_eq!(fixture.read(), whole(&shape([("d/a", f("1 and more")), ("z", f("4"))])));
        assert_eq!(report.left, []);
        assert!(matches!(outcome_of(&report, "d/a"), Outcome::Kept(_)));
    }
}

#[test]
fn a_file_written_during_the_move_stays_aside_if_its_path_is_taken() {
    let replaced = [
        // A file replaces a folder.
        (shape([("d/a", f("1")), ("z", f("3"))]), shape([("d", f("2")), ("z", f("4"))]), "d/a"),
        // A folder replaces a file.
        (shape([("a", f("1")), ("z", f("3"))]), shape([("a/b", f("2")), ("z", f("4"))]), "a"),
    ];
    for (before, after, path) in replaced {
        let mut fixture = Fixture::new();
        let steps = fixture.steps(&before, &after);
        fixture.write(&before);
        let report = apply_and(&fixture, &steps, writer(&fixture, path));
        let [left] = &report.left[..] else { panic!("one is kept aside: {:?}", report.left) };
        assert_eq!(left.path.as_ref().map(ToString::to_string).as_deref(), Some(path));
        assert_eq!(fs::read_to_string(fixture.at(&left.file)).expect("it is there"), "1 and more");
        let aside = fixture.at(&left.file);
        fs::remove_dir_all(aside.parent().expect("a folder")).expect("a removal");
        assert_eq!(fixture.read(), whole(&after));
    }
}

#[test]
fn a_file_created_during_the_move_returns_with_its_folder() {
    let before = shape([("d/a", f("1")), ("z", f("3"))]);
    let mut fixture = Fixture::new();
    let steps = fixture.steps(&before, &shape([("z", f("4"))]));
    fixture.write(&before);
    let folder = File::open(fixture.at("d")).expect("a folder");
    // A program that works in the folder finds it wherever it is.
    let make = || {
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let made =
            rustix::fs::openat(&folder, "late", flags, Mode::from_raw_mode(0o644)).expect("a new file");
        File::from(made).write_all(b"late").expect("written");
    };
    let report = apply_and(&fixture, &steps, make);
    assert_eq!(fixture.read(), whole(&shape([("d/late", f("late")), ("z", f("4"))])));
    assert_eq!(*outcome_of(&report, "d"), Outcome::Skipped(SkipReason::NotEmpty));
    assert_eq!(*outcome_of(&report, "d/a"), Outcome::Removed);
}

#[test]
fn a_file_created_late_is_merged_into_a_recreated_folder() {
    let before = shape([("d/a", f("1")), ("z", f("3"))]);
    let mut fixture = Fixture::new();
    let steps = fixture.steps(&before, &shape([("z", f("4"))]));
    fixture.write(&before);
    let folder = File::open(fixture.at("d")).expect("a folder");
    let make = || {
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let made =
            rustix::fs::openat(&folder, "late", flags, Mode::from_raw_mode(0o644)).expect("a new file");
        File::from(made).write_all(b"late").expect("written");
        fs::create_dir(fixture.at("d")).expect("a folder");
        fs::write(fixture.at("d/new"), "new").expect("a file");
    };
    let report = apply_and(&fixture, &steps, make);
    assert_eq!(fixture.read(), whole(&shape([("d/late", f("late")), ("d/new", f("new")), ("z", f("4"))])));
    assert_eq!(report.left, []);
}

#[test]
fn an_entry_whose_replacement_cannot_be_placed_returns() {
    // A file that becomes a folder, and a folder that becomes a file.
    let before = shape([("a", f("1")), ("flat", f("old")), ("deep/in", f("2"))]);
    let after = shape([("a", f("new")), ("flat/in", f("3")), ("deep", f("4"))]);
    let mut fixture = Fixture::new();
    let steps = fixture.steps(&before, &after);
    fixture.write(&before);
    let stage = fixture.root().join(".retake-tmp-test-2");
    let report = apply_and(&fixture, &steps, || {
        for staged in fs::read_dir(&stage).expect("the temporary folder").flatten() {
            if !staged.file_name().to_string_lossy().starts_with(['r', 'x']) {
                fs::rename(staged.path(), fixture.root().with_file_name(staged.file_name()))
                    .expect("a way out");
            }
        }
    });
    for path in ["flat", "deep"] {
        assert!(matches!(outcome_of(&report, path), Outcome::Skipped(_)), "{report:?}");
    }
    assert_eq!(fs::read(fixture.at("flat")).expect("a file"), b"old");
    assert!(fixture.at("deep").is_dir(), "the folder stays, as the report says");
}
