//! Other programs that change the same folder concurrently.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::*;

/// Busy-waits: these races are shorter than any sleep.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Restores repeatedly while a folder is swapped with a link to the outside; returns whether anything outside changed.
fn is_led_outside(rounds: usize, mut restore: impl FnMut(&Fixture, usize)) -> bool {
    let fixture = Fixture::within(&fast());
    let outside = fixture.place.path().join("outside");
    std::fs::create_dir_all(outside.join("sub")).expect("a folder");
    for name in ["file", "gone", "sub/file"] {
        std::fs::write(outside.join(name), "canary").expect("a file");
    }
    let canary = read(&outside);
    fixture.write(&shape([("d/file", f("0")), ("d/sub/file", f("0"))]));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, aside) = (fixture.at("d"), fixture.at("aside"));
            let mut turn = 0;
            while !stop.load(Ordering::Relaxed) {
                turn += 1;
                if std::fs::rename(&folder, &aside).is_ok() {
                    let _ = std::os::unix::fs::symlink(&outside, &folder);
                    spin(Duration::from_micros(turn % 40));
                    let _ = std::fs::remove_file(&folder);
                    let _ = std::fs::rename(&aside, &folder);
                }
                spin(Duration::from_micros(turn % 60));
            }
        });
        for round in 0..rounds {
            restore(&fixture, round);
            if read(&outside) != canary {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    read(&outside) != canary
}

#[test]
fn a_folder_swapped_for_a_link_is_not_followed() {
    let mut fixture = Fixture::new();
    let shapes = [
        shape([("d/file", f("0")), ("d/sub/file", f("0"))]),
        shape([("d/file", f("1")), ("d/new/a", f("1")), ("d/gone", f("1"))]),
        shape([("d/file", TestNode::File(b"1".to_vec(), 0o600)), ("d/sub", l("file"))]),
    ];
    let mut steps = Vec::new();
    for from in &shapes {
        for to in &shapes {
            steps.push(fixture.steps(from, to));
        }
    }
    let led = is_led_outside(6000, |raced, round| {
        let root = OpenRoot::open(&raced.root()).expect("a folder");
        // Any outcome is fine (kept, skipped, failed), as long as nothing outside changes.
        let _ = fixture.apply_to(&root, &steps[round % steps.len()]);
    });
    assert!(!led);
}

#[test]
fn restoring_by_path_would_escape_the_folder() {
    // Control: the unsafe method must be caught by the same check.
    let led = is_led_outside(200_000, |fixture, round| {
        let file = fixture.at("d/file");
        if file.parent().is_some_and(|folder| folder.symlink_metadata().is_ok_and(|found| found.is_dir())) {
            let _ = std::fs::write(file, round.to_string());
        }
    });
    assert!(led);
}

/// Changes a file at some point during a restore; the last write must survive.
fn check_last_write(before: &Shape, after: &Shape, write: impl Fn(&Path, &str) + Sync) {
    let mut fixture = Fixture::within(&fast());
    let steps = fixture.steps(before, after);
    let root = OpenRoot::open(&fixture.root()).expect("a folder");
    let mut kept = 0;
    for round in 0..2500 {
        let _ = std::fs::remove_file(fixture.at("a"));
        fixture.write(before);
        let text = format!("mine {round}");
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                spin(Duration::from_micros(round % 250));
                write(&fixture.at("a"), &text);
            });
            fixture.apply_to(&root, &steps).expect("no failure")
        });
        kept += usize::from(matches!(report.results[0].outcome, Outcome::Kept(_)));
        assert_eq!(std::fs::read_to_string(fixture.at("a")).expect("a file"), text, "{report:?}");
        assert_eq!(fixture.read().len(), 1, "nothing is left aside");
    }
    // Both orders must have occurred for the test to mean anything.
    assert!(kept > 0);
}

fn replace(path: &Path, text: &str) {
    let aside = path.with_extension("aside");
    std::fs::write(&aside, text).expect("a file");
    std::fs::rename(&aside, path).expect("a free path");
}

fn rewrite(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
}

#[test]
fn the_last_write_to_a_replaced_file_is_preserved() {
    let (before, after) = (shape([("a", f("1"))]), shape([("a", f("2"))]));
    check_last_write(&before, &after, rewrite);
    check_last_write(&before, &after, replace);
}

#[test]
fn the_last_write_to_a_removed_file_is_preserved() {
    let before = shape([("a", f("1"))]);
    check_last_write(&before, &Shape::new(), rewrite);
    check_last_write(&before, &Shape::new(), replace);
}

#[test]
fn a_program_that_never_stops_writing_loses_nothing() {
    let mut fixture = Fixture::within(&fast());
    let (before, after) = (shape([("a", f("1"))]), shape([("a", f("2"))]));
    let (there, back) = (fixture.steps(&before, &after), fixture.steps(&after, &before));
    let root = OpenRoot::open(&fixture.root()).expect("a folder");
    fixture.write(&before);
    let stop = AtomicBool::new(false);
    let last = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                count += 1;
                let write = if count % 2 == 0 { rewrite } else { replace };
                write(&fixture.at("a"), &format!("mine {count}"));
            }
            count
        });
        for round in 0..4000 {
            let steps = if round % 2 == 0 { &there } else { &back };
            let report = fixture.apply_to(&root, steps).expect("no failure");
            assert_eq!(report.left, []);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("the writer does not panic")
    });
    assert_eq!(std::fs::read_to_string(fixture.at("a")).expect("a file"), format!("mine {last}"));
}
