//! A bucket of a real S3 server. `scripts/with-s3` starts one, and `./check` runs these tests with it.

use std::time::Duration;

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_sync::bundle::BundleId;
use retake_sync::remote::{
    BucketAddress, BucketRemote, Credentials, FeedEvent, OpenMode, OpenRemoteError, ProjectKey, PushOutcome,
    Remedy, Remote, RemoteHead, RemoteSummary, Seen,
};
use retake_sync::wire::ThreadDetails;

const THREAD: ThreadId = ThreadId::from_bytes([4; 16]);

fn variable(name: &str) -> String {
    std::env::var(name).expect("scripts/with-s3 sets it")
}

fn credentials() -> Credentials {
    Credentials {
        access_key: Some(variable("AWS_ACCESS_KEY_ID")),
        secret: Some(variable("AWS_SECRET_ACCESS_KEY")),
    }
}

/// A new bucket, created by a request of its own.
fn bucket(name: &str) -> BucketAddress {
    let name = format!("{name}-{}", std::process::id());
    let address = BucketAddress {
        bucket: name,
        prefix: "a/b".to_owned(),
        endpoint: Some(variable("RETAKE_TEST_S3")),
        region: "us-east-1".to_owned(),
    };
    BucketRemote::create_bucket(&address, &credentials()).expect("a new bucket");
    address
}

fn open(address: &BucketAddress, place: OpenMode) -> Result<BucketRemote, OpenRemoteError> {
    BucketRemote::in_bucket(address, &credentials(), place)
}

fn head(number: u64, bytes: &[u8]) -> RemoteHead {
    RemoteHead {
        number,
        first: number,
        last: number,
        head: ContentId::from_bytes([number as u8; 32]),
        bundle: BundleId::of(bytes),
        bytes: bytes.len() as u64,
        summary: RemoteSummary {
            title: "Täst".to_owned(),
            project: ProjectKey::default(),
            updated: 1,
            details: ThreadDetails::default(),
        },
    }
}

#[test]
#[ignore = "needs an S3 server: scripts/with-s3"]
fn a_bucket_is_a_remote() {
    let address = bucket("remote");
    assert!(matches!(open(&address, OpenMode::Existing), Err(OpenRemoteError::Missing(_))));
    let remote = open(&address, OpenMode::Create).expect("a remote");
    open(&address, OpenMode::Create).expect("the same remote");
    let remote_again = open(&address, OpenMode::Existing).expect("the same remote");
    // Large ones too.
    let large: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    for (number, bytes) in [(1, b"one".as_slice()), (2, b""), (3, &large)] {
        assert_eq!(remote.push(THREAD, &head(number, bytes), bytes).expect("a push"), PushOutcome::Added);
        assert_eq!(remote.push(THREAD, &head(number, bytes), bytes).expect("a push"), PushOutcome::Moved);
        assert_eq!(remote_again.bundle(THREAD, &head(number, bytes)).expect("a bundle"), bytes);
    }
    assert_eq!(remote_again.heads(THREAD, 1).expect("heads").len(), 2);
    assert_eq!(remote.push(THREAD, &head(5, b"gap"), b"gap").expect("a push"), PushOutcome::Moved);
    let news = remote.feed(&Seen::default(), Duration::ZERO).expect("news");
    assert_eq!(news.events, [FeedEvent::Moved(THREAD)]);
    assert_eq!(remote.threads().expect("threads")[0].head.number, 3);
    remote.purge(THREAD).expect("purged");
    assert!(remote.heads(THREAD, 0).is_err_and(|error| error.remedy() == Remedy::Purged));
    assert!(remote.threads().expect("threads").is_empty());
}

#[test]
#[ignore = "needs an S3 server: scripts/with-s3"]
fn one_of_many_pushes_to_a_bucket_wins() {
    let address = bucket("race");
    let remote = open(&address, OpenMode::Create).expect("a remote");
    for number in 1..=10 {
        let outcomes: Vec<PushOutcome> = std::thread::scope(|scope| {
            let pushes: Vec<_> = (0..8_u8)
                .map(|writer| {
                    let remote = &remote;
                    scope.spawn(move || {
                        let bytes = [writer, number as u8];
                        remote.push(THREAD, &head(number, &bytes), &bytes).expect("a push")
                    })
                })
                .collect();
            pushes.into_iter().map(|push| push.join().expect("a writer")).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == PushOutcome::Added).count(), 1);
    }
}

#[test]
#[ignore = "needs an S3 server: scripts/with-s3"]
fn lists_longer_than_a_page_are_complete() {
    let address = bucket("pages");
    let remote = open(&address, OpenMode::Create).expect("a remote");
    let thread = |number: u16| ThreadId::from_bytes(std::array::from_fn(|at| number.to_be_bytes()[at % 2]));
    std::thread::scope(|scope| {
        for part in 0..8_u16 {
            let remote = &remote;
            scope.spawn(move || {
                for number in part * 150..(part + 1) * 150 {
                    remote.push(thread(number), &head(1, b"x"), b"x").expect("a push");
                }
            });
        }
    });
    let news = remote.feed(&Seen::default(), Duration::ZERO).expect("news");
    assert_eq!(news.events.len(), 1200);
}

#[test]
#[ignore = "needs an S3 server: scripts/with-s3"]
fn wrong_credentials_and_buckets_are_named() {
    let address = bucket("errors");
    open(&address, OpenMode::Create).expect("a remote");
    let remedy = |credentials: &Credentials, address: &BucketAddress| match BucketRemote::in_bucket(
        address,
        credentials,
        OpenMode::Existing,
    ) {
        Err(OpenRemoteError::Remote(error)) => Some(error.remedy()),
        _ => None,
    };
    let wrong = Credentials { secret: Some("wrong".to_owned()), ..credentials() };
    assert_eq!(remedy(&wrong, &address), Some(Remedy::Login));
    assert_eq!(remedy(&Credentials::default(), &address), Some(Remedy::Login));
    let nowhere = BucketAddress { endpoint: Some("http://127.0.0.1:9".to_owned()), ..address.clone() };
    assert_eq!(remedy(&credentials(), &nowhere), Some(Remedy::Wait));
    let missing = BucketAddress { bucket: "no-such-bucket".to_owned(), ..address };
    assert!(remedy(&credentials(), &missing).is_some());
    let open = BucketAddress { endpoint: Some("http://s3.example.org".to_owned()), ..missing };
    assert!(matches!(
        BucketRemote::in_bucket(&open, &credentials(), OpenMode::Create),
        Err(OpenRemoteError::Address(_))
    ));
}
