//! Each subject runs on SQLite and on a real Postgres, in a new database.

use std::collections::BTreeSet;

use retake_hub::access;
use retake_hub::service::Settings;
use retake_hub::threads;
use retake_hub::uploads::Part;
use retake_hub::{accounts, audit, feed, packs, search, spaces};
use retake_sync::bundle::{BundleId, decode};
use retake_sync::wire::{FeedKind, PackRow, ProblemCode, Role, SearchQuery};
use retake_testing::PostgresServer;

use crate::equipment::{Account, TestBundle, TestHub, code, next, noise, postgres, sqlite, thread};

type Subject = (&'static str, fn(&TestHub));

const SUBJECTS: &[Subject] = &[
    ("pushes form a chain", pushes_form_a_chain),
    ("one of many pushes wins", one_of_many_pushes_wins),
    ("a full space takes nothing", a_full_space_takes_nothing),
    ("a purge leaves nothing", a_purge_leaves_nothing),
    ("a deleted thread can be restored", a_deleted_thread_can_be_restored),
    ("roles and strangers", roles_and_strangers),
    ("logins need approval", logins_need_approval),
    ("a revoked token is refused", a_revoked_token_is_refused),
    ("NUL is no failure", nul_is_no_failure),
    ("every column finds threads", every_column_finds_threads),
    ("links show one page for a time", crate::sharing::links_show_one_page_for_a_time),
    ("uploads resume", uploads_resume),
    ("packs form a row", packs_form_a_row),
    ("redacted content is gone", redacted_content_is_gone),
    ("bundles that cannot be read", bundles_that_cannot_be_read),
    ("links end with what they depend on", crate::sharing::links_end_with_what_they_depend_on),
    ("support reads for a time", crate::sharing::support_reads_for_a_time),
];

fn settings() -> Settings {
    Settings { quota: 1 << 20, bundle_bytes: 1 << 24 }
}

#[test]
fn sqlite_conforms() {
    for (name, subject) in SUBJECTS {
        println!("{name}");
        subject(&TestHub::on(sqlite, settings()));
    }
}

#[test]
fn postgres_conforms() {
    let server = PostgresServer::start(&["fsync=off"]);
    let mut admin =
        ::postgres::Client::connect(&server.address("hub"), ::postgres::NoTls).expect("a connection");
    for (at, (name, subject)) in SUBJECTS.iter().enumerate() {
        println!("{name}");
        admin.batch_execute(&format!("CREATE DATABASE test_{at}")).expect("a database");
        subject(&TestHub::on(|_| postgres(&server.address(&format!("test_{at}"))), settings()));
    }
}

#[test]
fn a_database_of_a_newer_hub_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(sqlite(&folder));
    drop(sqlite(&folder));
    let connection = rusqlite::Connection::open(folder.path().join("hub.db")).expect("a database");
    connection.execute("UPDATE schema_version SET number = 1000", []).expect("a row");
    let opened = retake_hub::database::Sqlite::open(&folder.path().join("hub.db"));
    assert!(opened.is_err_and(|error| error.to_string().contains("newer")));
}

fn log(hub: &TestHub, by: &Account, space: &str, number: u8) -> Vec<retake_sync::wire::BundleRow> {
    let read = hub.hub.read(|connection| {
        let thread =
            access::thread(connection, by.credentials, (space, thread(number)), Role::Reader, hub.hub.now())?;
        threads::log(connection, &thread, 0)
    });
    read.expect("a log").bundles
}

fn bytes(hub: &TestHub, by: &Account, space: &str, bundle: (u8, u64, BundleId)) -> Vec<u8> {
    let (thread_number, number, id) = bundle;
    let body = hub.hub.read(|connection| {
        let place = (space, thread(thread_number));
        let thread = access::thread(connection, by.credentials, place, Role::Reader, hub.hub.now())?;
        threads::bundle(connection, &thread, number, id)
    });
    hub.hub.body(body.expect("a bundle")).expect("bytes")
}

fn feed_of(hub: &TestHub, by: &Account, space: &str) -> Vec<(u64, FeedKind)> {
    let read = hub.hub.read(|connection| {
        let space = access::space(connection, by.credentials, space, Role::Reader)?;
        feed::read(connection, &space, 0)
    });
    read.expect("a feed").events.iter().map(|event| (event.seq, event.what)).collect()
}

fn used(hub: &TestHub, by: &Account) -> u64 {
    let read = hub.hub.read(|connection| {
        let space = access::space(connection, by.credentials, &by.space, Role::Reader)?;
        spaces::info(connection, &space)
    });
    read.expect("a space").bytes
}

fn pushes_form_a_chain(hub: &TestHub) {
    let ada = hub.account("ada");
    let one = next(thread(1), None, b"one");
    let two = next(thread(1), Some(&one), b"two");
    // A large bundle is an object of the store.
    let three = next(thread(1), Some(&two), &noise(3, 200_000));
    assert_eq!(code(hub.push(&ada, &ada.space, &two)), Some(ProblemCode::Moved), "there is no first one yet");
    for (seq, bundle) in (1..).zip([&one, &two, &three]) {
        assert_eq!(hub.push(&ada, &ada.space, bundle).expect("a push"), seq);
    }
    // The answer was lost: the retry learns that it was done.
    let Err(retake_hub::error::HubError::Problem(problem)) = hub.push(&ada, &ada.space, &three) else {
        panic!("a second push of the same bundle")
    };
    assert_eq!(problem.head.map(|head| (head.number, head.head)), Some((3, three.request.row.head)));
    let fork = next(thread(1), Some(&one), b"another second");
    assert_eq!(code(hub.push(&ada, &ada.space, &fork)), Some(ProblemCode::Moved));
    let rows = log(hub, &ada, &ada.space, 1);
    assert_eq!(rows, [&one, &two, &three].map(|bundle| bundle.request.row.clone()));
    for bundle in [&one, &two, &three] {
        let row = &bundle.request.row;
        assert_eq!(bytes(hub, &ada, &ada.space, (1, row.number, row.bundle)), bundle.bytes);
    }
    assert_eq!(feed_of(hub, &ada, &ada.space), [1, 2, 3].map(|seq| (seq, FeedKind::Moved)));
    assert_eq!(used(hub, &ada), rows.iter().map(|row| row.bytes).sum::<u64>());
    // What the request says and what the bytes are must agree.
    let four = next(thread(1), Some(&three), b"four");
    let lies: [fn(&mut TestBundle); 6] = [
        |bundle| bundle.bytes.push(0),
        |bundle| bundle.request.row.bundle = BundleId::of(b"other"),
        |bundle| bundle.request.row.last += 1,
        |bundle| bundle.request.previous = None,
        |bundle| bundle.thread = thread(2),
        |bundle| bundle.request.row.bytes += 1,
    ];
    for lie in lies {
        let mut bundle = four.clone();
        lie(&mut bundle);
        assert_eq!(code(hub.push(&ada, &ada.space, &bundle)), Some(ProblemCode::Refused));
    }
}

fn one_of_many_pushes_wins(hub: &TestHub) {
    const WRITERS: u8 = 6;
    const ROUNDS: u64 = 15;
    let ada = hub.account("ada");
    let pushed: u64 = std::thread::scope(|scope| {
        let writer = |name: u8| {
            let ada = &ada;
            move || {
                let (mut last, mut done): (Option<TestBundle>, u64) = (None, 0);
                while done < ROUNDS {
                    let text = [name, done as u8];
                    let new = next(thread(1), last.as_ref(), &text);
                    match hub.push(ada, &ada.space, &new) {
                        Ok(_) => {
                            done += 1;
                            last = Some(new);
                        }
                        Err(retake_hub::error::HubError::Problem(problem)) => {
                            assert_eq!(problem.code, ProblemCode::Moved);
                            let head = problem.head.expect("the head of a thread that exists");
                            let mut seen = new;
                            seen.request.row.number = head.number;
                            seen.request.row.last = head.version;
                            seen.request.row.head = head.head;
                            last = Some(seen);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                done
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|name| scope.spawn(writer(name))).collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer")).sum()
    });
    let rows = log(hub, &ada, &ada.space, 1);
    assert_eq!(rows.len() as u64, pushed);
    let mut previous = None;
    for (at, row) in (1..).zip(&rows) {
        assert_eq!((row.number, row.first, row.last), (at, at, at));
        let (header, _) = decode(&bytes(hub, &ada, &ada.space, (1, at, row.bundle))).expect("a bundle");
        assert_eq!(header.previous, previous);
        previous = Some(row.head);
    }
    let feed = feed_of(hub, &ada, &ada.space);
    assert_eq!(feed.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=pushed).collect::<Vec<_>>());
}

fn a_full_space_takes_nothing(hub: &TestHub) {
    let ada = hub.account("ada");
    let one = next(thread(1), None, &noise(1, 700_000));
    hub.push(&ada, &ada.space, &one).expect("room");
    for length in [400_000, 60_000] {
        let before = used(hub, &ada);
        let two = next(thread(1), Some(&one), &noise(2, length));
        let result = code(hub.push(&ada, &ada.space, &two));
        assert_eq!(result, (length == 400_000).then_some(ProblemCode::Quota));
        assert_eq!(used(hub, &ada) > before, result.is_none());
    }
}

fn a_purge_leaves_nothing(hub: &TestHub) {
    let ada = hub.account("ada");
    let one = next(thread(1), None, b"a quiet sentence");
    let two = next(thread(1), Some(&one), &noise(1, 100_000));
    for bundle in [&one, &two] {
        hub.push(&ada, &ada.space, bundle).expect("a push");
    }
    let place = (ada.space.as_str(), thread(1));
    assert_eq!(code(hub.hub.purge(ada.credentials, place, Some(1))), Some(ProblemCode::Moved));
    hub.hub.purge(ada.credentials, place, Some(2)).expect("a purge");
    assert_eq!(used(hub, &ada), 0);
    let three = next(thread(1), Some(&two), b"three");
    for bundle in [&one, &three] {
        assert_eq!(code(hub.push(&ada, &ada.space, bundle)), Some(ProblemCode::Purged));
    }
    assert_eq!(code(hub.hub.purge(ada.credentials, place, None)), Some(ProblemCode::Purged));
    let kinds: Vec<_> = feed_of(hub, &ada, &ada.space).iter().map(|(_, what)| *what).collect();
    assert_eq!(kinds, [FeedKind::Moved, FeedKind::Moved, FeedKind::Purged]);
    let needle = &noise(1, 100_000)[500..600];
    assert!(!hub.all_bytes().windows(100).any(|window| window == needle), "the object is still there");
}

fn a_deleted_thread_can_be_restored(hub: &TestHub) {
    let ada = hub.account("ada");
    hub.push(&ada, &ada.space, &next(thread(1), None, b"one")).expect("a push");
    let listed = |deleted| {
        let query = SearchQuery { deleted, ..SearchQuery::default() };
        find(hub, &ada, &query).len()
    };
    for (deleted, expected) in [(true, 0), (true, 0), (false, 1)] {
        let changed = hub.hub.write(|connection| {
            let place = (ada.space.as_str(), thread(1));
            let thread = access::thread(connection, ada.credentials, place, Role::Member, hub.hub.now())?;
            threads::set_deleted(connection, &thread, deleted, hub.hub.now())
        });
        changed.expect("a change");
        assert_eq!((listed(None), listed(Some(true))), (expected, 1));
    }
    let kinds: Vec<_> = feed_of(hub, &ada, &ada.space).iter().map(|(_, what)| *what).collect();
    assert_eq!(kinds, [FeedKind::Moved, FeedKind::Deleted, FeedKind::Restored]);
}

fn roles_and_strangers(hub: &TestHub) {
    let (ada, ben, eve) = (hub.account("ada"), hub.account("ben"), hub.account("eve"));
    let team = hub.organization(&ada, &[(&ben, Role::Reader)]);
    let one = next(thread(1), None, b"one");
    let two = next(thread(1), Some(&one), b"two");
    hub.push(&ada, &team, &one).expect("a push");
    assert_eq!(log(hub, &ben, &team, 1).len(), 1);
    assert_eq!(code(hub.push(&ben, &team, &two)), Some(ProblemCode::Forbidden));
    for space in [team.as_str(), &ada.space, "nothing"] {
        assert_eq!(code(hub.push(&eve, space, &two)), Some(ProblemCode::NotFound));
        assert_eq!(code(hub.push(&eve, space, &one)), Some(ProblemCode::NotFound));
    }
    let set = |by: &Account, space: &str, name: &str, role: Role| {
        code(hub.hub.write(|connection| {
            let space = access::space(connection, by.credentials, space, Role::Owner)?;
            spaces::set_role(connection, &space, name, role, hub.hub.now())
        }))
    };
    assert_eq!(set(&ben, &team, "eve", Role::Owner), Some(ProblemCode::Forbidden));
    assert_eq!(set(&ada, &team, "ada", Role::Reader), Some(ProblemCode::Forbidden), "a space needs an owner");
    assert_eq!(set(&ada, &ada.space, "ben", Role::Member), Some(ProblemCode::Forbidden), "it is personal");
    assert_eq!(set(&ada, &team, "nobody", Role::Member), Some(ProblemCode::NotFound));
    assert_eq!(set(&ada, &team, "ben", Role::Member), None);
    hub.push(&ben, &team, &two).expect("a push");
    let place = (team.as_str(), thread(1));
    assert_eq!(
        code(hub.hub.purge(ben.credentials, place, None)),
        Some(ProblemCode::Forbidden),
        "it is Ada's"
    );
    let removed = hub.hub.write(|connection| {
        let space = access::space(connection, ada.credentials, &team, Role::Reader)?;
        spaces::remove_member(connection, &space, "ben", hub.hub.now())
    });
    removed.expect("a change");
    assert_eq!(code(hub.push(&ben, &team, &two)), Some(ProblemCode::NotFound));
    let lines = hub.hub.read(|connection| {
        let space = access::space(connection, ada.credentials, &team, Role::Owner)?;
        audit::list(connection, &space)
    });
    let actions: BTreeSet<_> = lines.expect("an audit log").into_iter().map(|line| line.action).collect();
    assert!(actions.contains("members changed") && actions.contains("space created"), "{actions:?}");
}

fn logins_need_approval(hub: &TestHub) {
    let ada = hub.account("ada");
    let start = || {
        hub.hub
            .write(|connection| accounts::start_login(connection, "phone", hub.hub.now()))
            .expect("a login")
    };
    let ask = |secret: &str| {
        code(
            hub.hub
                .write(|connection| accounts::finish_login(connection, secret, hub.hub.now()))
                .expect("an answer"),
        )
    };
    let approve = |typed: &str| {
        code(
            hub.hub
                .write(|connection| {
                    let caller = access::caller(connection, ada.credentials)?;
                    accounts::approve(connection, &caller, typed, hub.hub.now())
                })
                .expect("an answer"),
        )
    };
    let login = start();
    assert_eq!(ask(&login.device_code), Some(ProblemCode::Pending));
    assert_eq!(ask(&login.device_code), Some(ProblemCode::TooMany), "too early");
    hub.wait(5000);
    assert_eq!(ask("rtd_wrong"), Some(ProblemCode::Unauthorized));
    assert_eq!(approve(&login.user_code.to_lowercase().replace('-', " ")), None);
    assert_eq!(approve(&login.user_code), Some(ProblemCode::NotFound), "only once");
    hub.wait(5000);
    assert_eq!(ask(&login.device_code), None);
    hub.wait(5000);
    assert_eq!(ask(&login.device_code), Some(ProblemCode::Unauthorized), "the token is given once");
    let late = start();
    hub.wait(16 * 60 * 1000);
    assert_eq!(ask(&late.device_code), Some(ProblemCode::Unauthorized));
    let guessed = start();
    for _ in 0..5 {
        assert_eq!(approve("BBBB-BBBB"), Some(ProblemCode::NotFound));
    }
    assert_eq!(approve(&guessed.user_code), Some(ProblemCode::TooMany));
    hub.wait(15 * 60 * 1000 + 1);
    assert_eq!(approve(&start().user_code), None);
}

fn a_revoked_token_is_refused(hub: &TestHub) {
    let (ada, eve) = (hub.account("ada"), hub.account("eve"));
    let revoke = |by: &Account| {
        code(hub.hub.write(|connection| {
            let caller = access::caller(connection, by.credentials)?;
            accounts::revoke(connection, &caller, &ada.device, hub.hub.now())
        }))
    };
    let ask = |by: &Account| code(hub.hub.read(|connection| access::caller(connection, by.credentials)));
    assert_eq!(revoke(&eve), Some(ProblemCode::NotFound));
    assert_eq!(ask(&ada), None);
    assert_eq!(revoke(&ada), None);
    assert_eq!(ask(&ada), Some(ProblemCode::Unauthorized));
    let disabled = hub.hub.write(|connection| accounts::set_disabled(connection, "eve", Some(1)));
    disabled.expect("a change");
    assert_eq!(ask(&eve), Some(ProblemCode::Unauthorized));
}

fn find(hub: &TestHub, by: &Account, query: &SearchQuery) -> Vec<u64> {
    let found = hub.hub.read(|connection| {
        let space = access::space(connection, by.credentials, &by.space, Role::Reader)?;
        search::search(connection, &space, query)
    });
    found.expect("a search").threads.iter().map(|row| row.summary.details.messages).collect()
}

fn nul_is_no_failure(hub: &TestHub) {
    let ada = hub.account("ada");
    let mut one = next(thread(1), None, b"one");
    one.request.summary.title = "a\0title".to_owned();
    hub.push(&ada, &ada.space, &one).expect("a push");
    assert_eq!(code(hub.push(&ada, "\0", &next(thread(2), None, b"two"))), Some(ProblemCode::NotFound));
}

fn every_column_finds_threads(hub: &TestHub) {
    let ada = hub.account("ada");
    for number in 1..=3_u8 {
        let mut bundle = next(thread(number), None, &[number]);
        let summary = &mut bundle.request.summary;
        summary.title =
            ["Fix the login", "Größere Änderung", "100% of login"][usize::from(number) - 1].to_owned();
        summary.project.git_remote = Some(format!("https://example.org/team/project{number}.git"));
        let details = &mut summary.details;
        details.tags = vec![format!("tag {number}"), "all".to_owned()];
        details.branches = vec![format!("branch/{number}")];
        details.commits = vec![format!("{number}abcdef0123")];
        details.directories = vec![format!("src/{number}")];
        details.agent_state = if number == 1 { "waiting" } else { "running" }.to_owned();
        details.messages = u64::from(number);
        details.text = format!("the parser fails on input {number}{number}{number}");
        hub.push(&ada, &ada.space, &bundle).expect("a push");
        hub.wait(1);
    }
    let text = |text: &str| Some(text.to_owned());
    let none = SearchQuery::default;
    for (query, expected) in [
        (none(), vec![3, 2, 1]),
        (SearchQuery { text: text("pars 222"), ..none() }, vec![2]),
        (SearchQuery { text: text("LOGIN"), ..none() }, vec![3, 1]),
        (SearchQuery { text: text("login parser"), ..none() }, vec![3, 1]),
        (SearchQuery { text: text("arser"), ..none() }, vec![]),
        (SearchQuery { title: text("größ"), ..none() }, vec![2]),
        (SearchQuery { title: text("parser"), ..none() }, vec![]),
        (SearchQuery { tag: text("tag 2"), ..none() }, vec![2]),
        (SearchQuery { tag: text("tag"), ..none() }, vec![]),
        (SearchQuery { repository: text("team/project3"), ..none() }, vec![3]),
        (SearchQuery { repository: text("https://example.org/team/project1.git"), ..none() }, vec![1]),
        (SearchQuery { repository: text("roject1"), ..none() }, vec![]),
        (SearchQuery { branch: text("branch/1"), ..none() }, vec![1]),
        (SearchQuery { commit: text("3ABC"), ..none() }, vec![3]),
        (SearchQuery { directory: text("src/2"), ..none() }, vec![2]),
        (SearchQuery { person: text("ada"), ..none() }, vec![3, 2, 1]),
        (SearchQuery { person: text("eve"), ..none() }, vec![]),
        (SearchQuery { agent_state: text("running"), ..none() }, vec![3, 2]),
        (SearchQuery { min_messages: Some(2), max_messages: Some(2), ..none() }, vec![2]),
        (SearchQuery { tag: text("all"), limit: Some(2), ..none() }, vec![3, 2]),
    ] {
        assert_eq!(find(hub, &ada, &query), expected, "{query:?}");
    }
    // A new summary replaces what a thread was found by.
    let mut renamed = next(thread(1), Some(&next(thread(1), None, &[1])), b"more");
    renamed.request.summary.title = "Other".to_owned();
    hub.push(&ada, &ada.space, &renamed).expect("a push");
    assert_eq!(find(hub, &ada, &SearchQuery { text: text("login"), ..none() }), [3]);
    assert_eq!(find(hub, &ada, &SearchQuery { title: text("other"), ..none() }), [0]);
    // Pages continue where they ended.
    let mut all = Vec::new();
    let mut query = SearchQuery { limit: Some(1), ..none() };
    loop {
        let page = hub.hub.read(|connection| {
            let space = access::space(connection, ada.credentials, &ada.space, Role::Reader)?;
            search::search(connection, &space, &query)
        });
        let page = page.expect("a page");
        all.extend(page.threads.into_iter().map(|row| row.thread));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(all, [thread(1), thread(3), thread(2)]);
}

fn uploads_resume(hub: &TestHub) {
    let (ada, eve) = (hub.account("ada"), hub.account("eve"));
    let team = hub.organization(&ada, &[(&eve, Role::Member)]);
    let mut bundle = next(thread(1), None, &noise(7, 300_000));
    let whole = bundle.bytes.clone();
    let id = bundle.request.row.bundle;
    let upload = |by: &Account, start: usize, end: usize, bytes: &[u8]| {
        let part = Part { id, start: start as u64, bytes: (end - start) as u64, whole: whole.len() as u64 };
        hub.hub.upload(by.credentials, &team, part, bytes)
    };
    let first = upload(&ada, 0, 100_000, &whole[..100_000]).expect("a part");
    assert_eq!((first.received, first.complete), (100_000, false));
    let Err(retake_hub::error::HubError::Problem(problem)) = upload(&ada, 0, 100_000, &whole[..100_000])
    else {
        panic!("the same part twice")
    };
    assert_eq!((problem.code, problem.offset), (ProblemCode::Offset, Some(100_000)));
    assert!(upload(&ada, 100_000, whole.len(), &whole[100_000..]).expect("a part").complete);
    bundle.bytes.clear();
    assert_eq!(code(hub.push(&eve, &team, &bundle)), Some(ProblemCode::Refused), "it is Ada's upload");
    assert_eq!(code(hub.push(&ada, &ada.space, &bundle)), Some(ProblemCode::Refused), "in another space");
    hub.push(&ada, &team, &bundle).expect("a push");
    assert_eq!(bytes(hub, &eve, &team, (1, 1, id)), whole);
    // Wrong bytes are noticed at the end, and forgotten.
    let wrong = noise(8, whole.len());
    assert_eq!(code(upload(&eve, 0, whole.len(), &wrong)), Some(ProblemCode::Refused));
    assert!(upload(&eve, 0, whole.len(), &whole).expect("a part").complete);
    // Nothing is stored of a part at a wrong offset, or without room.
    let before = hub.all_bytes().len();
    assert_eq!(code(upload(&eve, 100_000, whole.len(), &wrong[100_000..])), Some(ProblemCode::Offset));
    let other = Part { id: BundleId::of(b"other"), start: 0, bytes: 600_000, whole: 600_000 };
    let full = hub.hub.upload(ada.credentials, &team, other, &noise(9, 600_000));
    assert_eq!(code(full), Some(ProblemCode::Quota));
    assert_eq!(hub.all_bytes().len(), before);
    // What nobody pushes expires, and its objects are removed.
    hub.wait(25 * 60 * 60 * 1000);
    hub.hub.clean_up().expect("a clean store");
    assert_eq!(hub.all_bytes().windows(64).filter(|window| *window == &whole[1000..1064]).count(), 1);
}

fn packs_form_a_row(hub: &TestHub) {
    let (ada, eve) = (hub.account("ada"), hub.account("eve"));
    let project = packs::ProjectName::parse(&"ab".repeat(32)).expect("a name");
    let pack = |number: u64| {
        let bytes = noise(number, 1000);
        (PackRow { number, pack: BundleId::of(&bytes), bytes: 1000 }, bytes)
    };
    let push = |by: &Account, number: u64| {
        let (row, bytes) = pack(number);
        code(hub.hub.push_pack(by.credentials, (&ada.space, &project), row, &bytes))
    };
    assert_eq!(push(&ada, 2), Some(ProblemCode::Moved));
    assert_eq!([push(&ada, 1), push(&ada, 1), push(&ada, 2)], [None, Some(ProblemCode::Moved), None]);
    assert_eq!(push(&eve, 3), Some(ProblemCode::NotFound));
    let listed = hub.hub.read(|connection| {
        let space = access::space(connection, ada.credentials, &ada.space, Role::Reader)?;
        packs::list(connection, &space, &project, 1)
    });
    assert_eq!(listed.expect("a list").packs, [pack(2).0]);
    let read = |by: &Account| hub.hub.pack(by.credentials, (&ada.space, &project), 2);
    assert_eq!(read(&ada).expect("a pack"), pack(2).1);
    assert_eq!(code(read(&eve)), Some(ProblemCode::NotFound));
}

fn redacted_content_is_gone(hub: &TestHub) {
    let ada = hub.account("ada");
    let secret = noise(99, 150_000);
    let one = next(thread(1), None, b"harmless");
    let two = next(thread(1), Some(&one), &secret);
    let mut three = next(thread(1), Some(&two), b"also harmless");
    three.request.summary.title = "the sesame word".to_owned();
    for bundle in [&one, &two, &three] {
        hub.push(&ada, &ada.space, bundle).expect("a push");
    }
    let before = used(hub, &ada);
    hub.hub.redact(ada.credentials, (&ada.space, thread(1)), &[two.content]).expect("a redaction");
    assert!(used(hub, &ada) < before - 140_000);
    let rows = log(hub, &ada, &ada.space, 1);
    assert_eq!(rows.len(), 3);
    for (row, old) in rows.iter().zip([&one, &two, &three]) {
        assert_eq!((row.first, row.head), (old.request.row.first, old.request.row.head));
        let (_, operations) =
            decode(&bytes(hub, &ada, &ada.space, (1, row.number, row.bundle))).expect("a bundle");
        assert_eq!(operations[0].objects.is_empty(), old.content == two.content);
    }
    // The secret comes again, from a device that has not heard of it.
    let mut again = next(thread(1), Some(&three), &secret);
    hub.push(&ada, &ada.space, &again).expect("a push");
    let row = log(hub, &ada, &ada.space, 1).remove(3);
    assert_ne!(row.bundle, again.request.row.bundle);
    again.request.row = row;
    let five = next(thread(1), Some(&again), b"five");
    hub.push(&ada, &ada.space, &five).expect("a push");
    let kinds: Vec<_> = feed_of(hub, &ada, &ada.space).iter().map(|(_, what)| *what).collect();
    assert_eq!(kinds[3], FeedKind::Redacted);
    let all = hub.all_bytes();
    assert!(!all.windows(64).any(|window| window == &secret[1000..1064]), "the secret is still there");
    assert!(
        find(hub, &ada, &SearchQuery { text: Some("sesame".to_owned()), ..SearchQuery::default() })
            .is_empty()
    );
}

fn bundles_that_cannot_be_read(hub: &TestHub) {
    let ada = hub.account("ada");
    let one = next(thread(1), None, b"one");
    let two = next(thread(1), Some(&one), b"the secret");
    // A correct header, and garbage behind it: small, large, and after a redaction.
    let forged = |of: &TestBundle, length: usize| {
        let mut forged = of.clone();
        forged.bytes.truncate(74);
        forged.bytes.extend(noise(7, length));
        forged.request.row.bundle = BundleId::of(&forged.bytes);
        forged.request.row.bytes = forged.bytes.len() as u64;
        forged
    };
    for length in [0, 100, 100_000] {
        assert_eq!(code(hub.push(&ada, &ada.space, &forged(&one, length))), Some(ProblemCode::Refused));
    }
    hub.push(&ada, &ada.space, &one).expect("a push");
    hub.push(&ada, &ada.space, &two).expect("a push");
    let redact =
        |bundle: &TestBundle| hub.hub.redact(ada.credentials, (&ada.space, thread(1)), &[bundle.content]);
    redact(&one).expect("a redaction");
    let three = next(thread(1), Some(&two), b"three");
    assert_eq!(code(hub.push(&ada, &ada.space, &forged(&three, 100))), Some(ProblemCode::Refused));
    // A damaged disk, or a hub of before: the others are redacted all the same.
    let damaged = hub.hub.write(|connection| {
        let sql = "UPDATE bundle SET body = $1 WHERE number = 1";
        Ok(connection.execute(sql, retake_hub::values![b"garbage".as_slice()])?)
    });
    assert_eq!(damaged.expect("a change"), 1);
    let refused = redact(&two).expect_err("bundle 1 cannot be read").to_string();
    assert!(refused.contains("cannot read: 1;"), "{refused}");
    let row = log(hub, &ada, &ada.space, 1).remove(1);
    let (_, operations) = decode(&bytes(hub, &ada, &ada.space, (1, 2, row.bundle))).expect("a bundle");
    assert!(operations[0].objects.is_empty(), "the secret is still there");
    hub.push(&ada, &ada.space, &three).expect("a push");
}
