//! Cases of the project decision.

use super::*;

const BORN: Option<i64> = Some(1_700_000_000_000_000_001);
const LATER: Option<i64> = Some(1_700_000_000_000_000_002);
const ORIGIN: Option<&str> = Some("https://example.org/a.git");
const OTHER: Option<&str> = Some("https://example.org/b.git");

fn id(number: u8) -> ProjectId {
    ProjectId::from_bytes([number; 16])
}

/// A folder with path, inode, creation time, mark and remote; all on device 1.
fn folder(path: &str, inode: u64, born: Option<i64>, mark: Option<u8>, remote: Option<&str>) -> Folder {
    Folder {
        path: path.to_owned(),
        device: 1,
        inode,
        born,
        mark: mark.map(id),
        remote: remote.map(str::to_owned),
    }
}

fn on_device(device: u64, folder: Folder) -> Folder {
    Folder { device, ..folder }
}

/// A project last seen as that folder, with the folder now at its path.
fn known(number: u8, seen: Folder, there: Option<Folder>) -> ProjectCandidate {
    let Folder { path, device, inode, born, remote, .. } = seen;
    let last_seen = Timestamp::from_millis(i64::from(number));
    ProjectCandidate {
        record: ProjectRecord { id: id(number), path, device, inode, born, remote, last_seen },
        there,
        renamed: false,
    }
}

/// The same candidate, with its recorded folder renamed within the same parent folder.
fn renamed(candidate: ProjectCandidate) -> ProjectCandidate {
    ProjectCandidate { renamed: true, ..candidate }
}

#[track_caller]
fn check(what: &str, folder: &Folder, known: &[ProjectCandidate], expected: ProjectVerdict<'_>) {
    assert_eq!(decide(folder, known), expected, "{what}");
    // Skipping irrelevant candidates must not change the verdict.
    let relevant: Vec<ProjectCandidate> =
        known.iter().filter(|candidate| candidate.record.is_relevant_to(folder)).cloned().collect();
    assert_eq!(decide(folder, &relevant), expected, "{what}, without the irrelevant");
    let reversed: Vec<ProjectCandidate> = known.iter().rev().cloned().collect();
    assert_eq!(decide(folder, &reversed), expected, "{what}, in another order");
}

fn same(number: u8) -> ProjectVerdict<'static> {
    ProjectVerdict::Same(id(number))
}

fn moved(number: u8, from: &'static str) -> ProjectVerdict<'static> {
    ProjectVerdict::Moved { project: id(number), from }
}

const NEW: ProjectVerdict<'static> = ProjectVerdict::New { perhaps: None };

#[test]
fn unmoved_folder_is_the_same_project() {
    let plain = folder("/a", 7, BORN, None, None);
    let marked = folder("/a", 7, BORN, Some(1), None);
    let record = || known(1, plain.clone(), Some(marked.clone()));
    check("marked", &marked, &[record()], same(1));
    check("mark stripped", &plain, &[record()], same(1));
    check("remote changed", &folder("/a", 7, BORN, Some(1), OTHER), &[record()], same(1));
    check("device renumbered", &on_device(9, plain.clone()), &[record()], same(1));
    check(
        "restored from a backup, mark and all",
        &folder("/a", 8, LATER, Some(1), None),
        &[record()],
        same(1),
    );
    check(
        "another project's mark came over with a copied attribute",
        &folder("/a", 7, BORN, Some(2), None),
        &[
            record(),
            known(2, folder("/b", 8, LATER, None, None), Some(folder("/b", 8, LATER, Some(2), None))),
        ],
        same(1),
    );
    check("a mark of an unknown store", &folder("/a", 7, BORN, Some(9), None), &[record()], same(1));
}

#[test]
fn moved_folder_keeps_its_project() {
    let seen = folder("/a", 7, BORN, None, None);
    let stranger = folder("/a", 8, LATER, None, None);
    let gone = || known(1, seen.clone(), None);
    let taken = || known(1, seen.clone(), Some(stranger.clone()));
    check("renamed", &folder("/b", 7, BORN, Some(1), None), &[gone()], moved(1, "/a"));
    check("renamed, no marks", &folder("/b", 7, BORN, None, None), &[gone()], moved(1, "/a"));
    check("renamed, and the old name taken", &folder("/b", 7, BORN, None, None), &[taken()], moved(1, "/a"));
    check(
        "to another file system, by its mark",
        &on_device(2, folder("/disk/a", 70, LATER, Some(1), None)),
        &[gone()],
        moved(1, "/a"),
    );
    check(
        "to another file system, and the old name taken",
        &on_device(2, folder("/disk/a", 70, LATER, Some(1), None)),
        &[taken()],
        moved(1, "/a"),
    );
    check(
        "onto the path of another project",
        &folder("/c", 7, BORN, Some(1), None),
        &[gone(), known(3, folder("/c", 30, LATER, None, None), Some(folder("/c", 7, BORN, Some(1), None)))],
        moved(1, "/a"),
    );
    check(
        "onto the path of another project, no marks",
        &folder("/c", 7, BORN, None, None),
        &[gone(), known(3, folder("/c", 30, LATER, None, None), Some(folder("/c", 7, BORN, None, None)))],
        moved(1, "/a"),
    );
}

#[test]
fn one_folder_under_two_paths_is_one_project() {
    for born in [BORN, None] {
        for mark in [Some(1), None] {
            let first = folder("/a", 7, born, mark, None);
            let second = folder("/mnt/a", 7, born, mark, None);
            check("mounted twice", &second, &[known(1, first.clone(), Some(first))], same(1));
        }
    }
}

#[test]
fn copy_with_an_existing_original_is_a_new_project() {
    let copied = ProjectVerdict::Copied { of: id(1) };
    let seen = folder("/a", 7, BORN, None, ORIGIN);
    let copy = folder("/b", 8, LATER, Some(1), ORIGIN);
    let marked = Some(folder("/a", 7, BORN, Some(1), ORIGIN));
    check("copied with its mark", &copy, &[known(1, seen.clone(), marked)], copied);
    check("the original lost its mark", &copy, &[known(1, seen.clone(), Some(seen.clone()))], copied);
    let overwritten = Some(folder("/a", 7, BORN, Some(5), ORIGIN));
    check("the original has another mark", &copy, &[known(1, seen.clone(), overwritten)], copied);
    let without_birth = folder("/a", 7, None, None, None);
    check(
        "no birth times",
        &folder("/b", 8, None, Some(1), None),
        &[known(1, without_birth.clone(), Some(without_birth))],
        copied,
    );
    let restored = Some(folder("/a", 99, LATER, Some(1), ORIGIN));
    for mark in [None, Some(1)] {
        check(
            "the recorded folder itself, after a copy took its place",
            &folder("/b", 7, BORN, mark, ORIGIN),
            &[known(1, seen.clone(), restored.clone())],
            moved(1, "/a"),
        );
    }
    check(
        "a snapshot of the file system, no marks",
        &on_device(5, folder("/snapshot/a", 7, BORN, None, None)),
        &[known(1, seen.clone(), Some(seen.clone()))],
        NEW,
    );
    check(
        "without its mark",
        &folder("/b", 8, LATER, None, ORIGIN),
        &[known(1, seen.clone(), Some(seen))],
        NEW,
    );
}

#[test]
fn another_folder_at_a_known_path_is_another_project() {
    let replaced = ProjectVerdict::Replaced { formerly: id(1) };
    let record =
        |born, remote, now: &Folder| known(1, folder("/a", 7, born, None, remote), Some(now.clone()));
    for (what, born, remote, now, expected) in [
        ("made again", BORN, None, folder("/a", 8, LATER, None, None), replaced),
        ("made again, inode reused", BORN, None, folder("/a", 7, LATER, None, None), replaced),
        ("cloned again", BORN, ORIGIN, folder("/a", 8, LATER, None, ORIGIN), same(1)),
        ("cloned again, inode reused", BORN, ORIGIN, folder("/a", 7, LATER, None, ORIGIN), same(1)),
        ("another clone", BORN, ORIGIN, folder("/a", 8, LATER, None, OTHER), replaced),
        ("no longer a clone", BORN, ORIGIN, folder("/a", 8, LATER, None, None), replaced),
        ("now a clone", BORN, None, folder("/a", 8, LATER, None, ORIGIN), replaced),
        ("no births, same inode", None, None, folder("/a", 7, None, None, None), same(1)),
        ("no births, same inode, remote added", None, None, folder("/a", 7, None, None, ORIGIN), same(1)),
        ("no births, same inode, another clone", None, ORIGIN, folder("/a", 7, None, None, OTHER), replaced),
        ("no births, other inode", None, None, folder("/a", 8, None, None, None), replaced),
        ("birth known only now", None, None, folder("/a", 7, BORN, None, None), same(1)),
    ] {
        check(what, &now, &[record(born, remote, &now)], expected);
    }
}

#[test]
fn reused_inode_does_not_identify_a_project() {
    let hint = ProjectVerdict::New { perhaps: Some(id(1)) };
    let record = |born, remote, there| known(1, folder("/a", 7, born, None, remote), there);
    let stranger = || Some(folder("/a", 8, None, None, ORIGIN));
    for (what, now, candidate, expected) in [
        ("born later", folder("/b", 7, LATER, None, None), record(BORN, None, None), NEW),
        ("born later, same remote", folder("/b", 7, LATER, None, ORIGIN), record(BORN, ORIGIN, None), NEW),
        ("no births", folder("/b", 7, None, None, None), record(None, None, None), hint),
        (
            "no births, same remote",
            folder("/b", 7, None, None, ORIGIN),
            record(None, ORIGIN, None),
            moved(1, "/a"),
        ),
        ("no births, other remote", folder("/b", 7, None, None, OTHER), record(None, ORIGIN, None), hint),
        (
            "no births, by its mark",
            folder("/b", 7, None, Some(1), None),
            record(None, None, None),
            moved(1, "/a"),
        ),
        ("old path taken", folder("/b", 7, None, None, ORIGIN), record(None, ORIGIN, stranger()), hint),
        ("birth known only now", folder("/b", 7, BORN, None, None), record(None, None, None), hint),
        ("other device", on_device(2, folder("/b", 7, None, None, ORIGIN)), record(None, ORIGIN, None), NEW),
    ] {
        check(what, &now, &[candidate], expected);
    }
}

#[test]
fn an_unknown_folder_is_new() {
    let now = folder("/a", 7, BORN, None, ORIGIN);
    check("nothing known", &now, &[], NEW);
    check("a mark of an unknown store", &folder("/a", 7, BORN, Some(9), None), &[], NEW);
    let elsewhere = folder("/b", 8, LATER, None, ORIGIN);
    check("a second clone", &now, &[known(1, elsewhere.clone(), Some(elsewhere.clone()))], NEW);
    check("a second clone, the first gone", &now, &[known(1, elsewhere, None)], NEW);
}

#[test]
fn last_seen_of_several_projects_at_one_path_wins() {
    let now = folder("/a", 7, None, None, None);
    let candidates = [
        known(1, folder("/a", 7, None, None, None), Some(now.clone())),
        known(2, folder("/a", 7, None, None, None), Some(now.clone())),
    ];
    check("two records", &now, &candidates, same(2));
}

#[test]
fn copy_does_not_replace_a_renamed_project() {
    let copied = ProjectVerdict::Copied { of: id(1) };
    let gone = |born| known(1, folder("/a", 7, born, None, ORIGIN), None);
    check("another inode", &folder("/c", 8, LATER, Some(1), ORIGIN), &[gone(BORN)], copied);
    check("inode reused, born later", &folder("/c", 7, LATER, Some(1), ORIGIN), &[gone(BORN)], copied);
    check("no birth times, another inode", &folder("/c", 8, None, Some(1), ORIGIN), &[gone(None)], copied);
    let original = folder("/b", 7, BORN, Some(1), ORIGIN);
    check("the original, renamed", &original, &[gone(BORN)], moved(1, "/a"));
    let there = Some(folder("/a", 8, LATER, Some(1), ORIGIN));
    let taken = || known(1, folder("/a", 7, BORN, None, ORIGIN), there.clone());
    check("the original, its old path taken by a copy", &original, &[taken()], moved(1, "/a"));
    check(
        "a copy at the old path, the original beside it",
        &folder("/a", 8, LATER, Some(1), ORIGIN),
        &[renamed(taken())],
        copied,
    );
    check(
        "a copy on another file system, the original beside its old path",
        &on_device(2, folder("/disk/c", 8, LATER, Some(1), ORIGIN)),
        &[renamed(gone(BORN))],
        copied,
    );
}

/// Invariant of the table: once a verdict is recorded, a second folder with the same evidence is refused.
#[test]
fn no_two_folders_share_a_project() {
    let original = folder("/a", 7, BORN, Some(1), ORIGIN);
    let copy = on_device(2, folder("/b", 8, LATER, Some(1), ORIGIN));
    // The copy is opened while the disk of the original is unplugged: it looks like a move and is recorded as
    // one.
    check("copy first", &copy, &[known(1, original.clone(), None)], moved(1, "/a"));
    // The disk is attached again: the project now belongs to the copy.
    check(
        "original later",
        &original,
        &[known(1, copy.clone(), Some(copy))],
        ProjectVerdict::Copied { of: id(1) },
    );
}
