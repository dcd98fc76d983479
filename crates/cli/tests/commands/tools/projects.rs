//! `retake project`.

use serde_json::json;

use crate::tools::support::User;

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
fn reading_a_folder_creates_no_project() {
    let user = User::new();
    user.run(&["project"]);
    user.run(&["project", "list"]);
    assert_eq!(user.json(&["project", "list"])["projects"].as_array().map(Vec::len), Some(0));
    user.refused(3, &["project", "adopt", "abcdefgh"]);
    user.refused(3, &["project", "adopt", ""]);
}

#[test]
fn a_home_folder_is_refused_before_anything_is_created() {
    let user = User::new();
    let home = user.folder.path().to_str().expect("text").to_owned();
    for arguments in [
        &["-C", &home, "run", "hello"][..],
        &["-C", &home, "run", "--new", "hello"],
        &["-C", &home, "thread", "new", "A title"],
        &["-C", &home, "exec", "--", "true"],
        &["-C", &home, "snapshot", "take"],
        &["-C", &home, "project", "init"],
        &["-C", "/", "run", "hello"],
        &["-C", "/usr", "thread", "new"],
    ] {
        let output = user.try_run(arguments);
        assert_ne!(output.code, 0, "{arguments:?}: {output:?}");
        let projects = user.json(&["project", "list"]);
        assert_eq!(projects["projects"].as_array().map(Vec::len), Some(0), "{arguments:?}: {projects}");
    }
    // The folders below it are not affected.
    user.run(&["thread", "new", "Below"]);
    user.run(&["exec", "--", "touch", "a"]);
    assert_eq!(user.json(&["project"])["path"], user.project().to_str().expect("text"));
}

#[test]
fn forgetting_a_project_keeps_its_threads() {
    let user = User::new();
    user.talk("Fix the login");
    let outer = user.json(&["project"])["id"].clone();
    std::fs::create_dir(user.path("project/app")).expect("a folder");
    let app = user.path("project/app");
    let app = app.to_str().expect("text");
    assert_eq!(user.json(&["-C", app, "project"])["id"], outer, "the project above is meant");
    let made = user.json(&["-C", app, "project", "init"]);
    assert_ne!(made["id"], outer);
    assert_eq!(made["path"], app);
    assert_eq!(user.json(&["-C", app, "project", "init"])["id"], made["id"], "it is one already");
    assert_eq!(user.json(&["-C", app, "project"])["id"], made["id"]);

    // Without threads, the project is deleted.
    let forgotten = user.json(&["-C", app, "project", "forget"]);
    assert_eq!((&forgotten["id"], &forgotten["threads"]), (&made["id"], &serde_json::json!(0)));
    assert_eq!(user.json(&["-C", app, "project"])["id"], outer);
    assert_eq!(user.json(&["project", "list"])["projects"].as_array().map(Vec::len), Some(1));

    // With threads, it remains without a folder.
    let id = outer.as_str().expect("an id");
    assert_eq!(user.json(&["project", "forget", id])["threads"], 1);
    let line = user.json(&["project", "list"])["projects"][0].clone();
    assert_eq!((&line["path"], &line["exists"]), (&serde_json::json!(""), &serde_json::json!(false)));
    assert_eq!(user.json(&["project"])["known"], false, "neither path nor mark leads to it");
    assert!(user.refused(3, &["project", "forget"]).contains("not a project"));
    let adopted = user.json(&["project", "adopt", id]);
    assert_eq!((&adopted["id"], &adopted["threads"]), (&outer, &serde_json::json!(1)));
    assert_eq!(user.json(&["thread", "show"])["entries"].as_array().map(Vec::len), Some(2));
    user.run(&["verify"]);
}

#[test]
fn forgetting_a_folder_keeps_a_project_with_presets() {
    let user = User::new();
    user.talk("Fix the login");
    user.write("project/a.txt", b"a\n");
    user.run(&["context", "add", "a.txt"]);
    user.run(&["context", "preset", "save", "login"]);
    let id = user.json(&["project"])["id"].as_str().expect("an id").to_owned();
    user.run(&["purge", "--yes", "Fix the login"]);
    let forgotten = user.json(&["project", "forget"]);
    assert_eq!((&forgotten["threads"], &forgotten["kept"]), (&json!(0), &json!(true)));
    user.run(&["project", "adopt", &id]);
    user.run(&["thread", "new"]);
    assert_eq!(user.json(&["context", "preset", "list"])["presets"][0]["name"], "login");
    for short in ["", "abc"] {
        let error = user.refused(3, &["project", "adopt", short]);
        assert!(error.contains("at least 4 characters"), "{error}");
    }
}
