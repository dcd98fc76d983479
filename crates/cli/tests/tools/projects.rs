//! `retake project`.

use crate::support::User;

#[test]
fn threads_of_a_known_project_can_be_adopted() {
    let user = User::new();
    user.talk("Fix the login");
    let id = user.json(&["project"])["id"].as_str().expect("an id").to_owned();
    let elsewhere = user.path("elsewhere");
    let there = |arguments: &[&str]| {
        let mut all = vec!["-C", elsewhere.to_str().expect("text")];
        all.extend(arguments);
        user.json(&all)
    };
    assert_eq!(there(&["project"])["known"], false);
    assert_eq!(there(&["thread", "list"])["threads"].as_array().map(Vec::len), Some(0));
    let adopted = there(&["project", "adopt", &id[..8]]);
    assert_eq!(adopted["id"], id);
    assert_eq!(adopted["threads"], 1);
    assert_eq!(there(&["thread", "list"])["threads"][0]["title"], "Fix the login");
    assert_eq!(there(&["thread", "show"])["entries"].as_array().map(Vec::len), Some(2));
    let projects = there(&["project", "list"]);
    assert!(projects["projects"].as_array().is_some_and(|all| all.iter().any(|one| one["id"] == id)));
}

#[test]
fn looking_at_a_folder_leaves_no_trace() {
    let user = User::new();
    user.run(&["project"]);
    user.run(&["project", "list"]);
    assert_eq!(user.json(&["project", "list"])["projects"].as_array().map(Vec::len), Some(0));
    user.refused(3, &["project", "adopt", "abcdefgh"]);
    user.refused(3, &["project", "adopt", ""]);
}
