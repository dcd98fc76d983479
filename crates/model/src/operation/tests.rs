//! Old operations keep their bytes when fields are added.

use super::*;
use crate::content::{decode, encode};

/// An operation before requests were added.
#[derive(Encode)]
struct OldOperation {
    #[n(0)]
    thread: ThreadId,
    #[n(1)]
    version: Version,
    #[n(2)]
    previous: Option<ContentId>,
    #[n(3)]
    after: ContentId,
    #[n(4)]
    kind: OperationKind,
    #[n(5)]
    turn: TurnId,
    #[n(6)]
    actor: Actor,
    #[n(7)]
    time: Timestamp,
    #[n(8)]
    place: Provenance,
    #[n(9)]
    environment: Option<ContentId>,
    #[n(10)]
    files: Option<FileChange>,
    #[n(11)]
    last_file_operation: Option<Version>,
}

#[test]
fn operation_without_a_request_keeps_its_old_bytes() {
    let content = ContentId::of(Kind::State, b"a state");
    let (thread, turn) = (ThreadId::from_bytes([1; 16]), TurnId::from_bytes([2; 16]));
    let place = Provenance { parent: 0, depth: 0, jump: 0, position: 1, tip: 1 };
    let files = FileChange {
        before: content,
        after: content,
        take: TakeId::from_bytes([3; 16]),
        worktree: false,
        left: None,
        shared: None,
    };
    let check =
        |environment: Option<ContentId>, files: Option<FileChange>, last_file_operation: Option<Version>| {
            let (kind, actor, time) = (OperationKind::Reset, Actor::Human, Timestamp::from_millis(4));
            let (previous, after, version) = (Some(content), content, 5);
            let old = OldOperation {
                thread,
                version,
                previous,
                after,
                kind,
                turn,
                actor,
                time,
                place,
                environment,
                files,
                last_file_operation,
            };
            let bytes = minicbor::to_vec(&old).expect("encoding into memory cannot fail");
            let operation: Operation = decode(&bytes).expect("still canonical");
            assert_eq!((operation.last_file_operation, operation.request), (last_file_operation, None));
            assert_eq!(encode(&operation), bytes);
            let request = Some(RequestId::of(b"a key"));
            let asked = Operation { request, ..operation };
            let bytes = encode(&asked);
            assert_eq!(decode::<Operation>(&bytes), Ok(asked));
            let named = |part: &[u8]| part == RequestId::of(b"a key").bytes();
            assert!(bytes.windows(16).any(named), "a log can be searched without decoding");
        };
    check(None, None, None);
    check(None, None, Some(4));
    check(Some(content), None, None);
    check(Some(content), Some(files), Some(5));
}
