//! Links and access for support, on both databases.

use retake_hub::{access, accounts, links, spaces, threads};
use retake_sync::wire::{NewLink, ProblemCode, Role, SharedEntry, SharedPage, SupportGrant};

use crate::equipment::{Account, TestHub, code, next, thread};

pub(crate) fn links_show_one_page_for_a_time(hub: &TestHub) {
    let ada = hub.account("ada");
    hub.push(&ada, &ada.space, &next(thread(1), None, b"one")).expect("a push");
    let entry = SharedEntry { role: "User".to_owned(), text: "Hello".to_owned() };
    let page = SharedPage { title: "A page".to_owned(), entries: vec![entry] };
    let create = |version: u64, days: u32| {
        hub.hub.write(|connection| {
            let place = (ada.space.as_str(), thread(1));
            let thread = access::thread(connection, ada.credentials, place, Role::Member, hub.hub.now())?;
            let new = NewLink { take: "main".to_owned(), version, days, page: page.clone() };
            links::create(connection, &thread, &new, hub.hub.now())
        })
    };
    let open = |path: &str| {
        hub.hub.read(|connection| links::open(connection, path.trim_start_matches("/l/"), hub.hub.now())).ok()
    };
    assert_eq!(code(create(2, 30)), Some(ProblemCode::Invalid), "this version does not exist");
    assert_eq!(code(create(1, 0)), Some(ProblemCode::Invalid));
    let (first, second) = (create(1, 30).expect("a link"), create(1, 30).expect("a link"));
    assert_eq!(open(&first.path), Some(page.clone()));
    assert_eq!(open("/l/rtl_guess"), None);
    let revoked = hub.hub.write(|connection| {
        let caller = access::caller(connection, ada.credentials)?;
        links::revoke(connection, &caller, &first.id, hub.hub.now())?;
        links::list(connection, &caller)
    });
    let listed = revoked.expect("a change");
    assert_eq!(listed.iter().filter(|link| link.revoked.is_some()).count(), 1);
    assert_eq!((open(&first.path), open(&second.path)), (None, Some(page.clone())));
    hub.wait(30 * 24 * 60 * 60 * 1000 + 1);
    assert_eq!(open(&second.path), None);
    let third = create(1, 1).expect("a link");
    hub.hub.purge(ada.credentials, (&ada.space, thread(1)), None).expect("a purge");
    assert_eq!(open(&third.path), None);
}

pub(crate) fn links_end_with_what_they_depend_on(hub: &TestHub) {
    let (ada, ben, sam) = (hub.account("ada"), hub.account("ben"), hub.account("sam"));
    let team = hub.organization(&ada, &[(&ben, Role::Member)]);
    let place = (team.as_str(), thread(1));
    hub.push(&ben, &team, &next(thread(1), None, b"one")).expect("a push");
    let link = |by: &Account| {
        let made = hub.hub.write(|connection| {
            let thread = access::thread(connection, by.credentials, place, Role::Member, hub.hub.now())?;
            let page = SharedPage { title: "A page\0".to_owned(), entries: Vec::new() };
            let new = NewLink { take: "main".to_owned(), version: 1, days: 1, page };
            links::create(connection, &thread, &new, hub.hub.now())
        });
        made.expect("a link")
    };
    let opens = |path: &str| {
        let token = path.trim_start_matches("/l/");
        hub.hub.read(|connection| links::open(connection, token, hub.hub.now())).is_ok()
    };
    let delete = |deleted: bool| {
        let done = hub.hub.write(|connection| {
            let thread = access::thread(connection, ben.credentials, place, Role::Member, hub.hub.now())?;
            threads::set_deleted(connection, &thread, deleted, hub.hub.now())
        });
        done.expect("a change");
    };
    let revoke = |by: &Account, id: &str| {
        code(hub.hub.write(|connection| {
            let caller = access::caller(connection, by.credentials)?;
            links::revoke(connection, &caller, id, hub.hub.now())
        }))
    };
    let (of_ben, of_ada) = (link(&ben), link(&ada));
    assert!(opens(&of_ben.path) && opens(&of_ada.path));
    delete(true);
    assert!(!opens(&of_ben.path) && !opens(&of_ada.path), "the thread is deleted");
    delete(false);
    let disable = |at: Option<i64>| {
        hub.hub.write(|connection| accounts::set_disabled(connection, "ben", at)).expect("a change");
    };
    disable(Some(hub.hub.now()));
    assert!(!opens(&of_ben.path) && opens(&of_ada.path), "the account is disabled");
    disable(None);
    // An owner revokes the link of a member, not the other way round, and nobody else does.
    assert_eq!(revoke(&ben, &of_ada.id), Some(ProblemCode::NotFound));
    assert_eq!(revoke(&sam, &of_ben.id), Some(ProblemCode::NotFound));
    assert!(opens(&of_ben.path) && opens(&of_ada.path));
    assert_eq!(revoke(&ada, &of_ben.id), None);
    assert!(!opens(&of_ben.path) && opens(&of_ada.path));
    // A grant for support ends when its account leaves the space.
    hub.hub.write(|connection| accounts::set_support(connection, "sam", true)).expect("a change");
    let granted = hub.hub.write(|connection| {
        let thread = access::thread(connection, ben.credentials, place, Role::Member, hub.hub.now())?;
        links::grant_support(connection, &thread, SupportGrant { days: 1 }, hub.hub.now())
    });
    granted.expect("a grant");
    let read = || {
        code(hub.hub.read(|connection| {
            access::thread(connection, sam.credentials, place, Role::Reader, hub.hub.now())
        }))
    };
    assert_eq!(read(), None);
    let left = hub.hub.write(|connection| {
        let space = access::space(connection, ada.credentials, &team, Role::Owner)?;
        spaces::remove_member(connection, &space, "ben", hub.hub.now())
    });
    left.expect("a change");
    assert_eq!(read(), Some(ProblemCode::NotFound));
}

pub(crate) fn support_reads_for_a_time(hub: &TestHub) {
    let (ada, sam) = (hub.account("ada"), hub.account("sam"));
    hub.push(&ada, &ada.space, &next(thread(1), None, b"one")).expect("a push");
    hub.push(&ada, &ada.space, &next(thread(2), None, b"two")).expect("a push");
    let read = |number: u8| {
        code(hub.hub.read(|connection| {
            let place = (ada.space.as_str(), thread(number));
            access::thread(connection, sam.credentials, place, Role::Reader, hub.hub.now())
        }))
    };
    let grant = |days: u32| {
        code(hub.hub.write(|connection| {
            let place = (ada.space.as_str(), thread(1));
            let thread = access::thread(connection, ada.credentials, place, Role::Member, hub.hub.now())?;
            links::grant_support(connection, &thread, SupportGrant { days }, hub.hub.now())
        }))
    };
    assert_eq!([grant(32), grant(31)], [Some(ProblemCode::Invalid), None]);
    assert_eq!(read(1), Some(ProblemCode::NotFound), "Sam is not support yet");
    hub.hub.write(|connection| accounts::set_support(connection, "sam", true)).expect("a change");
    assert_eq!([read(1), read(2)], [None, Some(ProblemCode::NotFound)]);
    let pushed = hub.push(&sam, &ada.space, &next(thread(1), Some(&next(thread(1), None, b"one")), b"x"));
    assert_eq!(code(pushed), Some(ProblemCode::NotFound));
    hub.wait(31 * 24 * 60 * 60 * 1000 + 1);
    assert_eq!(read(1), Some(ProblemCode::NotFound));
    assert_eq!(grant(1), None);
    assert_eq!(
        [read(1), {
            grant(0);
            read(1)
        }],
        [None, Some(ProblemCode::NotFound)]
    );
}
