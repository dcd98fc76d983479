//! Concurrent callers: each gets its result, whatever happens to the jobs of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use retake_store::{Store, StoreError, WriteError, WriteTransaction};

#[test]
fn a_panicking_job_does_not_affect_later_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("a new store");
    let panicking = |_: &WriteTransaction<'_>| -> Result<(), ()> { panic!("on purpose") };
    for _ in 0..3 {
        let Err(WriteError::Store(failed)) = store.write(panicking) else { panic!("it panicked") };
        assert!(matches!(&failed, StoreError::Panicked(text) if text == "on purpose"), "{failed:?}");
        assert!(failed.to_string().contains("bug") && !failed.to_string().contains("disk"), "{failed}");
        assert_eq!(store.write(|_| Ok::<_, ()>(7)).expect("the next job succeeds"), 7);
    }
}

#[test]
fn jobs_batched_with_a_panicking_one_are_executed() {
    const CALLERS: u64 = 12;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("a new store");
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let store = &store;
            scope.spawn(move || {
                for number in 0..100 {
                    let panics = (caller + number) % 4 == 0;
                    let answer = store.write(move |_| {
                        assert!(!panics, "job {number} of caller {caller}");
                        Ok::<_, ()>(number)
                    });
                    match answer {
                        Ok(value) => assert!(!panics && value == number),
                        Err(WriteError::Store(StoreError::Panicked(text))) => {
                            assert!(panics && text == format!("job {number} of caller {caller}"), "{text}");
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    let problems = store.verify(&mut |_| {}).expect("verification runs").problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn every_caller_gets_its_own_result() {
    const CALLERS: u64 = 12;
    const JOBS: u64 = 200;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("a new store");
    let at_once = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (store, at_once) = (&store, &at_once);
            scope.spawn(move || {
                for number in 0..JOBS {
                    let at_once = Arc::clone(at_once);
                    let answer = store.write(move |_| {
                        assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0, "two jobs run at once");
                        at_once.fetch_sub(1, Ordering::SeqCst);
                        if number % 3 == 0 { Err(number) } else { Ok(caller * JOBS + number) }
                    });
                    match answer {
                        Ok(value) => assert_eq!(value, caller * JOBS + number),
                        Err(WriteError::Refused(refused)) => assert_eq!((refused, number % 3), (number, 0)),
                        Err(WriteError::Store(error)) => panic!("{error}"),
                    }
                }
            });
        }
    });
}
