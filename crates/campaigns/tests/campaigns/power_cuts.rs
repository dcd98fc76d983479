//! A few real power cuts, and the control. See `docs/testing.md` for longer runs.

use retake_campaigns::files::StoreLocation;
use retake_campaigns::power_cuts::{CutsPlan, Disk, SyncBehavior, cut};
use retake_campaigns::scratch::ScratchDir;
use retake_campaigns::violation::caught;

/// Whether this machine can mount a disk for power cuts; prints a warning if not.
fn can_cut() -> bool {
    let scratch = ScratchDir::for_files().expect("a place to try");
    match Disk::new(scratch.path(), "world") {
        Ok(_) => true,
        Err(trouble) => {
            eprintln!(
                "NOT PROVED: no power was cut, because this machine cannot mount a disk of its own: {trouble}"
            );
            eprintln!("NOT PROVED: it takes root, loop devices, mkfs.ext4 and a C compiler.");
            false
        }
    }
}

#[test]
fn after_any_power_cut_conversation_and_files_agree() {
    if !can_cut() {
        return;
    }
    for home in [StoreLocation::Beside, StoreLocation::Elsewhere] {
        let cuts = cut(CutsPlan { seed: 1, cuts: 12, home, syncs: SyncBehavior::Honest });
        let cuts = cuts.unwrap_or_else(|failed| panic!("{home:?}: {failed}"));
        assert!(cuts.within > 0 && cuts.after > 0 && cuts.unsynced > 0, "{cuts:?}: too few for a proof");
    }
}

#[test]
fn ignored_syncs_are_caught() {
    if !can_cut() {
        return;
    }
    let plan = CutsPlan { seed: 1, cuts: 200, home: StoreLocation::Beside, syncs: SyncBehavior::Lying };
    caught("lying syncs", cut(plan)).unwrap_or_else(|trouble| panic!("{trouble}"));
}
