//! Wrong clocks: nothing written with them counts as damage.

use std::sync::Arc;

use crate::exchange::{elsewhere, export, import};
use crate::support::{PROJECT, World};
use retake_model::time::Timestamp;
use retake_timeline::{Caller, Clock, Command, ImportMode, NewThread, Rules, SeededClock, Timeline};

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
