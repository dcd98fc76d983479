//! Wrong clocks: nothing written with them counts as damage.

use std::sync::Arc;

use crate::exchange::{elsewhere, export, import};
use crate::support::{PROJECT, World};
use retake_model::entry::EntryVersion;
use retake_model::time::Timestamp;
use retake_timeline::{
    Caller, Clock, Command, ImportMode, InsertPosition, NewThread, Rules, SeededClock, Timeline,
};

/// A clock that does not advance.
struct Stopped(i64, SeededClock);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }

    fn random(&self) -> [u8; 10] {
        self.1.random()
    }
}

#[test]
fn a_clock_before_1970_or_after_9999_damages_nothing() {
    for millis in [i64::MIN, -86_400_000, -1, 253_402_207_201_000, 253_402_300_800_000, i64::MAX] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(Stopped(millis, SeededClock::new(1)));
        let timeline = Timeline::open_with(folder.path(), Rules::default(), clock).expect("a store");
        let new = NewThread::in_project(PROJECT).titled("Fix");
        let thread = timeline.create_thread(new, Caller::human()).expect("a thread").thread;
        let world = World { folder, timeline, thread };
        world.say("User", "one");
        world.done(Command::Branch { from: world.state().active, at: Some(world.entry(1)), name: None });
        world.undo().expect("an undo");
        world.another();
        world.done(Command::Delete);
        world.done(Command::Restore);
        let head = world.read().head(thread).expect("a head").operation;
        assert!(head.time.is_plausible_clock_time(), "{millis}: {}", head.time.millis());
        let verified = world.timeline.store().verify(&mut |_| {}).expect("verified");
        assert!(verified.is_clean(), "{millis}: {:?}", verified.problems);
        let (_folder, other) = elsewhere();
        import(export(&world.timeline, thread), &other, ImportMode::Same).expect("an import");
    }
}

#[test]
fn a_wrong_time_of_one_operation_does_not_date_those_after_it() {
    let (now, year) = (1_800_000_000_000, 365 * 24 * 60 * 60 * 1000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = |millis| {
        let clock = Arc::new(Stopped(millis, SeededClock::new(millis as u64)));
        Timeline::open_with(folder.path(), Rules::default(), clock).expect("a store")
    };
    let new = NewThread::in_project(PROJECT).titled("Fix");
    let thread = open(now).create_thread(new, Caller::human()).expect("a thread").thread;
    let say = |timeline: &Timeline| {
        let take = timeline.read().expect("a reader").state(thread).expect("a state").active;
        let entry = EntryVersion::from_text("User", "one", timeline.now());
        let command = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
        timeline.change(thread, command, Caller::human()).expect("a change");
        timeline.read().expect("a reader").head(thread).expect("a head").operation
    };
    let ahead = say(&open(now + year));
    let right = say(&open(now + 1_000));
    assert_eq!((ahead.version, ahead.time.millis()), (2, now + year));
    assert_eq!((right.version, right.time.millis()), (3, now + 1_000));
    let timeline = open(now + 2_000);
    let row = timeline.read().expect("a reader").thread(thread).expect("a thread");
    assert_eq!(row.summary.updated.millis(), now + 1_000);
    let verified = timeline.store().verify(&mut |_| {}).expect("verified");
    assert!(verified.is_clean(), "{:?}", verified.problems);
}
