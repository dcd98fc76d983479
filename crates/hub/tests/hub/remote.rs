//! The client of `sync` against the server.

use std::time::Duration;

use retake_sync::bundle::decode;
use retake_sync::remote::{FeedEvent, PackHead, RemoteSummary, Seen};
use retake_sync::remote::{
    HubConnection, HubRemote, ProjectKey, PushOutcome, Remote, RemoteError, RemoteHead,
};
use retake_sync::wire::ThreadDetails;

use crate::equipment::{TestBundle, next, noise, thread};
use crate::server::Server;

fn head(bundle: &TestBundle) -> RemoteHead {
    let row = bundle.request.row.clone();
    RemoteHead {
        number: row.number,
        first: row.first,
        last: row.last,
        head: row.head,
        bundle: row.bundle,
        bytes: row.bytes,
        summary: RemoteSummary {
            title: "A title".to_owned(),
            project: ProjectKey::default(),
            updated: 7,
            details: ThreadDetails { tags: vec!["tag".to_owned()], ..ThreadDetails::default() },
        },
    }
}

#[test]
fn a_hub_is_a_remote() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    let address = format!("http://{}", server.address);
    let remote = HubRemote::open(&address, &ada.token).expect("a hub");
    let empty = remote.feed(&Seen::default(), Duration::ZERO).expect("a feed");
    assert_eq!((empty.events.len(), empty.cursor.as_deref()), (0, Some("0")));

    let one = next(thread(1), None, b"one");
    // Larger than a push may be, so that it is uploaded in parts.
    let two = next(thread(1), Some(&one), &noise(2, 9_000_000));
    for bundle in [&one, &two] {
        assert_eq!(remote.push(thread(1), &head(bundle), &bundle.bytes).expect("a push"), PushOutcome::Added);
        assert_eq!(remote.push(thread(1), &head(bundle), &bundle.bytes).expect("a push"), PushOutcome::Moved);
    }
    let heads = remote.heads(thread(1), 0).expect("a row");
    assert_eq!(heads, [head(&one), head(&two)]);
    assert_eq!(remote.heads(thread(1), 1).expect("a row").len(), 1);
    assert_eq!(remote.heads(thread(9), 0).expect("a row"), [], "it does not exist");
    assert_eq!(remote.bundle(thread(1), &heads[1]).expect("bytes"), two.bytes);
    assert_eq!(remote.threads().expect("a list")[0].head, head(&two));
    let seen = Seen { cursor: empty.cursor, ..Seen::default() };
    let feed = remote.feed(&seen, Duration::from_secs(1)).expect("a feed");
    assert_eq!(feed.events, [FeedEvent::Moved(thread(1)), FeedEvent::Moved(thread(1))]);
    let behind = Seen { cursor: Some("1000".to_owned()), ..Seen::default() };
    let feed = remote.feed(&behind, Duration::ZERO).expect("a feed");
    assert_eq!((feed.events, feed.cursor.as_deref()), (vec![FeedEvent::Moved(thread(1))], Some("2")));

    remote.redact(thread(1), &[one.content]).expect("a redaction");
    assert_eq!(remote.redactions(thread(1)).expect("a list"), [one.content]);
    let heads = remote.heads(thread(1), 0).expect("a row");
    let (_, operations) = decode(&remote.bundle(thread(1), &heads[0]).expect("bytes")).expect("a bundle");
    assert!(operations[0].objects.is_empty());

    let project =
        ProjectKey { id: Some("project".to_owned()), ..ProjectKey::default() }.name().expect("a name");
    let pack = noise(5, 2_000_000);
    let row =
        PackHead { number: 1, pack: retake_sync::bundle::BundleId::of(&pack), bytes: pack.len() as u64 };
    assert_eq!(remote.push_pack(project, &row, &pack).expect("a push"), PushOutcome::Added);
    assert_eq!(remote.push_pack(project, &row, &pack).expect("a push"), PushOutcome::Moved);
    assert_eq!(remote.packs(project, 0).expect("a row").first(), Some(&row));
    assert_eq!(remote.pack(project, &row).expect("bytes"), pack);

    remote.purge(thread(1)).expect("a purge");
    remote.purge(thread(1)).expect("a second purge");
    remote.purge(thread(9)).expect("a purge of nothing");
    assert!(matches!(remote.heads(thread(1), 0), Err(RemoteError::Purged)));
    assert!(matches!(remote.push(thread(1), &head(&one), &one.bytes), Err(RemoteError::Purged)));
}

#[test]
fn strangers_and_teams_have_their_own_spaces() {
    let server = Server::start();
    let (ada, eve) = (server.hub.account("ada"), server.hub.account("eve"));
    let team = server.hub.organization(&ada, &[]);
    let address = format!("http://{}", server.address);
    let in_team = format!("{address}/s/{team}");
    let one = next(thread(1), None, b"one");
    let remote = HubRemote::open(&in_team, &ada.token).expect("a space");
    remote.push(thread(1), &head(&one), &one.bytes).expect("a push");
    assert_eq!(HubRemote::open(&address, &ada.token).expect("a hub").threads().expect("a list"), []);
    let stranger = HubRemote::open(&in_team, &eve.token).expect("a space");
    assert!(matches!(stranger.threads(), Err(RemoteError::Forbidden { .. })));
    assert_eq!(stranger.heads(thread(1), 0).expect("a row"), []);
    let pushed = stranger.push(thread(1), &head(&one), &one.bytes);
    assert!(matches!(pushed, Err(RemoteError::Forbidden { .. })));
    assert!(matches!(HubRemote::open(&address, "rth_wrong"), Err(RemoteError::Unauthorized { .. })));
}

#[test]
fn a_device_logs_in_with_a_code() {
    let server = Server::start();
    let ada = server.hub.account("ada");
    let address = format!("http://{}", server.address);
    let device = HubConnection::new(&address, None).expect("a connection");
    let login = device.start_login("phone").expect("a login");
    assert_eq!(device.finish_login(&login).expect("an answer"), None);
    let laptop = HubConnection::new(&address, Some(&ada.token)).expect("a connection");
    laptop.approve_login(&login.user_code).expect("an approval");
    server.hub.wait(5000);
    let done = device.finish_login(&login).expect("an answer").expect("a token");
    let phone = HubConnection::new(&address, Some(&done.token)).expect("a connection");
    assert_eq!(phone.account().expect("an account").account, "ada");
}
