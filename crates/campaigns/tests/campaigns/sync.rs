//! Some histories of machines with one remote, and the controls.

use retake_campaigns::sync::{RemoteKind, SyncPlan, controls, sync_model};

fn check(remote: RemoteKind, histories: u64) {
    let plan = SyncPlan { seed: 1, histories, remote, mistake: None };
    let done = sync_model(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(done.merges > 3 && done.exchanges > 50, "{done:?}: too few for a proof");
}

#[test]
fn machines_with_a_folder_end_with_one_log() {
    check(RemoteKind::Folder, 12);
}

#[test]
fn machines_with_a_failing_bucket_end_with_one_log() {
    check(RemoteKind::Bucket, 12);
}

#[test]
fn each_faulty_sync_is_noticed() {
    controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}
