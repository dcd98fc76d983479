//! Rounds of a machine with a remote: locks, threads that fail, and which projects are the same.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use retake_model::id::ThreadId;
use retake_sync::config::Remotes;
use retake_sync::remote::{FolderRemote, ProjectKey};
use retake_sync::session::{Retry, Session};
use retake_sync::watch::watch;
use retake_timeline::{Rules, SeededClock, Timeline};

const THREAD: ThreadId = ThreadId::from_bytes([3; 16]);

fn with_session(work: impl FnOnce(&Session<'_>, &Path)) {
    let base = tempfile::tempdir().expect("a temporary folder");
    let (store, folder) = (base.path().join("store"), base.path().join("remote"));
    let clock = Arc::new(SeededClock::new(1));
    let timeline = Timeline::open_with(&store, Rules::default(), clock).expect("a store");
    let remotes = Remotes::of_store(&store);
    let remote = FolderRemote::create_in_folder(&folder).expect("a remote");
    work(&Session { timeline: &timeline, remotes: &remotes, name: "home", remote: &remote }, &folder);
}

#[test]
fn a_process_that_waits_for_changes_leaves_the_lock_to_others() {
    with_session(|session, _| {
        let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (mut waits, mut is_free) = (false, false);
        std::thread::scope(|scope| {
            let is_stopped = || stop.load(Ordering::Relaxed);
            let mut each = |_| {
                rounds.fetch_add(1, Ordering::Relaxed);
            };
            scope.spawn(move || watch(session, Duration::MAX, &is_stopped, &mut each));
            for _ in 0..500 {
                if rounds.load(Ordering::Relaxed) > 0 {
                    waits = session.remotes.try_watch("home").is_ok_and(|lock| lock.is_none());
                    is_free = session.remotes.try_lock("home").is_ok_and(|lock| lock.is_some());
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::Relaxed);
        });
        // The control: the other process was there.
        assert!(waits);
        assert!(is_free);
    });
}

#[test]
fn a_new_thread_that_fails_is_tried_again_after_a_pause() {
    with_session(|session, folder| {
        let heads = folder.join("threads").join(THREAD.to_string()).join("heads");
        fs::create_dir_all(&heads).expect("a folder");
        fs::write(heads.join(format!("{:020}", 1)), "{}").expect("a damaged head");
        fs::create_dir_all(folder.join("moved")).expect("a folder");
        fs::write(folder.join(format!("moved/{THREAD}-{:020}", 1)), "").expect("news");
        let links = session.remotes.links("home");
        for (now, retry, tries, is_tried) in [
            (0, Retry::Due, 1, true),
            (1_000, Retry::Due, 1, false),
            (2_500, Retry::Due, 2, true),
            (3_000, Retry::Due, 2, false),
            (3_001, Retry::Now, 3, true),
        ] {
            let round = session.round(retry, now, &mut |_, _| {}).expect("a round");
            assert_eq!(!round.threads.is_empty(), is_tried, "at {now}");
            assert_eq!(links.get(THREAD).pending.map(|pending| pending.tries), Some(tries), "at {now}");
        }
    });
}

#[test]
fn projects_match_by_id_unless_their_first_commits_differ() {
    let key = |id: Option<&str>, remote: Option<&str>, commit: Option<&str>| ProjectKey {
        id: id.map(str::to_owned),
        git_remote: remote.map(str::to_owned),
        root_commit: commit.map(str::to_owned),
    };
    let check = |left: &ProjectKey, right: &ProjectKey, expected: bool| {
        assert_eq!((left.matches(right), right.matches(left)), (expected, expected), "{left:?} {right:?}");
    };
    let one = key(Some("id"), Some("host/one"), Some("c1"));
    check(&one, &key(Some("id"), Some("host/two"), Some("c1")), true);
    check(&one, &key(Some("id"), None, None), true);
    check(&one, &key(None, Some("host/one"), Some("c1")), true);
    // A template with a committed id.
    check(&one, &key(Some("id"), Some("host/two"), Some("c2")), false);
    check(&one, &key(Some("other"), Some("host/one"), Some("c1")), false);
    check(&one, &key(None, Some("host/two"), Some("c1")), false);
}
