//! Projects are known by more than their path.

use std::fs;
use std::process::Command;

use retake_timeline::{Noticed, Rules, Timeline};

struct Place {
    folder: tempfile::TempDir,
    timeline: Timeline,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("project")).expect("a new folder");
        let timeline = Timeline::open(&folder.path().join("home"), Rules::default()).expect("a new store");
        Self { folder, timeline }
    }

    fn project(&self, name: &str) -> retake_timeline::Project {
        self.timeline.project(&self.folder.path().join(name)).expect("a folder")
    }
}

#[test]
fn a_renamed_folder_keeps_its_project() {
    let place = Place::new();
    let before = place.project("project");
    assert_eq!(before.noticed, Noticed::New);
    assert_eq!(place.project("project").noticed, Noticed::Nothing);
    fs::rename(place.folder.path().join("project"), place.folder.path().join("renamed")).expect("a rename");
    let after = place.project("renamed");
    assert_eq!(after.id, before.id);
    assert!(matches!(after.noticed, Noticed::Moved { .. }));
}

#[test]
fn looking_at_a_new_folder_leaves_no_trace() {
    let place = Place::new();
    let folder = place.folder.path().join("project");
    place.timeline.project_if_known(&folder).expect("a folder");
    assert!(place.timeline.look().expect("a look").queries().projects().expect("a list").is_empty());
    let known = place.project("project");
    assert_eq!(place.timeline.project_if_known(&folder).expect("a folder").id, known.id);
}

#[test]
fn a_copied_folder_is_another_project() {
    let place = Place::new();
    let before = place.project("project");
    let (from, to) = (place.folder.path().join("project"), place.folder.path().join("copy"));
    assert!(Command::new("cp").arg("-a").args([&from, &to]).status().expect("cp").success());
    assert_ne!(place.project("copy").id, before.id);
    assert_eq!(place.project("project").id, before.id);
}

#[test]
fn a_new_folder_at_an_old_path_is_another_project_that_can_adopt_the_old_one() {
    let place = Place::new();
    let before = place.project("project");
    fs::remove_dir(place.folder.path().join("project")).expect("a removal");
    fs::create_dir(place.folder.path().join("other")).expect("another folder, which may reuse the number");
    fs::create_dir(place.folder.path().join("project")).expect("a new folder");
    let after = place.project("project");
    assert_ne!(after.id, before.id);
    assert_ne!(place.project("other").id, before.id);
    let adopted = place.timeline.adopt(&place.folder.path().join("project"), before.id).expect("an adoption");
    assert_eq!(adopted.id, before.id);
    assert_eq!(place.project("project").id, before.id);
}

#[test]
fn a_subfolder_belongs_to_the_project_above_it() {
    let place = Place::new();
    let above = place.project("project");
    fs::create_dir_all(place.folder.path().join("project/src/deep")).expect("new folders");
    assert_eq!(place.project("project/src/deep").id, above.id);
}

#[test]
fn several_programs_that_meet_a_new_folder_at_once_agree_which_project_it_is() {
    let place = Place::new();
    let folder = place.folder.path().join("project");
    let home = place.folder.path().join("home");
    let meet = || {
        let timeline = Timeline::open(&home, Rules::default()).expect("the store");
        timeline.project(&folder).expect("a folder").id
    };
    let ids: std::collections::HashSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(meet)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
}
