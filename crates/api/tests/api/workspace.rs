//! Files over HTTP: snapshots, restore, differences, line provenance, and worktrees. A restore changes the
//! workspace of its thread, regardless of where the server was started.

use std::fs;
use std::path::Path;

use retake_model::environment::Environment;
use retake_model::id::TurnId;
use retake_model::operation::Actor;
use retake_timeline::{Caller, Command, WorkingCopy};
use retake_workspace::snapshot::Options;
use serde_json::{Value, json};

use crate::http::Client;
use crate::world::World;

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder.join(name).parent().expect("a folder")).expect("our folder");
    fs::write(folder.join(name), text).expect("our folder");
}

pub(crate) fn snapshot(client: &Client, thread: &str, more: Value) -> Value {
    let mut body = json!({"thread": thread});
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    client.post("/v1/snapshots", &body).done()
}

pub(crate) fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("a list: {list}"));
    items.iter().map(|item| item[field].as_str().unwrap_or_else(|| panic!("{field}: {item}"))).collect()
}

#[test]
fn a_saved_version_includes_user_edits() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Here");
    write(&world.project(), "a.txt", "one\n");
    let first = snapshot(&client, &thread, json!({}));
    let mut version = first["version"].as_u64().expect("a version");
    for (text, path, body) in [
        ("two\n", format!("/v1/threads/{thread}/save"), json!({"name": "second"})),
        ("three\n", "/v1/sessions".to_owned(), json!({"thread": thread, "name": "third"})),
    ] {
        write(&world.project(), "a.txt", text);
        let saved = client.post(&path, &body).done();
        assert_eq!(saved["version"], version + 2, "the hand edit is recorded before it: {saved}");
        version += 2;
        // Nothing is left to record.
        assert_eq!(snapshot(&client, &thread, json!({}))["version"], version);
    }
}

#[test]
fn a_named_snapshot_has_the_files_that_another_thread_changed() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (first, second) = (client.thread("First"), client.thread("Second"));
    for (thread, file) in [(&first, "a.txt"), (&second, "b.txt")] {
        snapshot(&client, thread, json!({}));
        write(&world.project(), file, "one\n");
        snapshot(&client, thread, json!({"by": "agent"}));
    }
    snapshot(&client, &first, json!({"note": "here"}));
    let diff = client.get(&format!("/v1/threads/{first}/diff?from=here&to=folder")).done();
    assert_eq!(texts(&diff["items"], "path"), Vec::<&str>::new(), "{diff}");
}

#[test]
fn a_snapshot_is_restored_only_in_the_workspace_of_its_thread_and_can_be_undone() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    // A project that the server knows, but was not started in.
    let elsewhere = world.store().with_file_name("elsewhere");
    for folder in [&elsewhere, &world.project()] {
        write(folder, "a.txt", "one\n");
    }
    let project = client.post("/v1/projects", &json!({"folder": elsewhere})).done();
    let made = client.post("/v1/threads", &json!({"project": project["id"], "title": "There"})).done();
    let (there, here) = (made["thread"].as_str().expect("an id"), client.thread("Here"));
    let first = snapshot(&client, there, json!({}));
    snapshot(&client, &here, json!({}));
    write(&elsewhere, "a.txt", "two\n");
    write(&elsewhere, "b/c.txt", "new\n");
    let by = json!({"by": "editor", "note": "second"});
    let second = snapshot(&client, there, by);
    assert_eq!(
        (&second["undoable"], texts(&second["files"]["paths"], "path").contains(&"b/c.txt")),
        (&json!(true), true)
    );

    let restore = format!("/v1/snapshots/{}/restore", first["snapshot"].as_str().expect("an id"));
    let ahead = client.post(&format!("{restore}?dry_run=true"), &json!({"thread": there})).done();
    assert_eq!(ahead["dry_run"], true);
    assert_eq!(fs::read_to_string(elsewhere.join("a.txt")).expect("it is there"), "two\n");
    let done = client.post(&restore, &json!({"thread": there})).done();
    assert_eq!((&done["undoable"], done["operation"].is_string()), (&json!(true), true), "{done}");
    assert_eq!(fs::read_to_string(elsewhere.join("a.txt")).expect("it is there"), "one\n");
    assert!(!elsewhere.join("b/c.txt").exists());
    assert_eq!(world.read("a.txt").as_deref(), Some("one\n"), "the server's own folder is not touched");
    client.post(&format!("/v1/threads/{there}/undo"), &json!({})).done();
    assert_eq!(fs::read_to_string(elsewhere.join("b/c.txt")).expect("it is back"), "new\n");

    // Restores single paths; invalid paths are refused.
    let some = json!({"thread": there, "paths": [{"path": "a.txt"}]});
    client.post(&restore, &some).done();
    assert!(elsewhere.join("b/c.txt").exists());
    for wrong in ["../a.txt", "/etc/passwd", ".git/config", ""] {
        let body = json!({"thread": there, "paths": [{"path": wrong}]});
        client.post(&restore, &body).refused(422, "refused");
    }

    // A snapshot of another project is refused without changes.
    let sequence = client.sequence();
    let second = format!("/v1/snapshots/{}/restore", second["snapshot"].as_str().expect("an id"));
    client.post(&second, &json!({"thread": here})).refused(404, "not_found");
    assert_eq!((client.sequence(), world.read("a.txt").as_deref()), (sequence, Some("one\n")));
}

#[test]
fn snapshots_are_listed_in_pages_with_excluded_paths() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    write(&world.project(), ".gitignore", "build/\n");
    write(&world.project(), "build/out", "big");
    write(&world.project(), ".env", "KEY=1");
    let (one, other) = (client.thread("One"), client.thread("Other"));
    let home = client.get(&format!("/v1/threads/{one}")).done()["home"].clone();
    snapshot(&client, &one, json!({}));
    for number in 0..5 {
        write(&world.project(), "a.txt", &format!("{number}\n"));
        let thread = if number % 2 == 0 { &one } else { &other };
        let taken = snapshot(&client, thread, json!({"by": "agent"}));
        assert_eq!(texts(&taken["excluded"], "reason"), ["secret", "ignored"], "{taken}");
    }
    let all = |query: &str| {
        let (mut versions, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/v1/snapshots?limit=2&{query}{cursor}")).done();
            for item in page["items"].as_array().expect("a list") {
                assert_eq!(
                    (&item["excluded_count"], &item["snapshot"]),
                    (&json!(2), &item["after"]),
                    "{item}"
                );
                versions.push((item["thread"].clone(), item["version"].as_u64().expect("a number")));
            }
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return versions,
            }
        }
    };
    let (of_one, of_all) =
        (all(&format!("thread={one}")), all(&format!("project={}", home.as_str().expect("an id"))));
    assert_eq!((of_one.len(), of_all.len()), (3, 5));
    assert!(of_one.windows(2).all(|pair| pair[0].1 > pair[1].1), "{of_one:?}");
    assert_eq!(of_all, all(""), "without a name, the project of the server applies");
    for wrong in ["limit=0", "limit=101"] {
        client.get(&format!("/v1/snapshots?{wrong}")).refused(400, "invalid_request");
    }
    let both = format!("thread={one}&project={}", home.as_str().expect("an id"));
    for wrong in ["cursor=x", &both] {
        client.get(&format!("/v1/snapshots?{wrong}")).refused(422, "refused");
    }
    client.get(&format!("/v1/snapshots/{}", "0".repeat(64))).refused(404, "not_found");
}

#[test]
fn the_status_of_a_workspace_lists_changes_and_records_nothing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    write(&world.project(), "a.txt", "one\n");
    let thread = client.thread("Work");
    snapshot(&client, &thread, json!({}));
    write(&world.project(), "a.txt", "two\n");
    write(&world.project(), "b.txt", "new\n");
    let sequence = client.sequence();
    for query in [String::new(), format!("?thread={thread}")] {
        let status = client.get(&format!("/v1/workspace/status{query}")).done();
        assert_eq!(texts(&status["files"]["changed"], "path"), ["a.txt", "b.txt"], "{status}");
        assert_eq!(
            (&status["exists"], &status["running"], &status["files_error"]),
            (&json!(true), &json!(false), &Value::Null)
        );
    }
    assert_eq!(client.sequence(), sequence, "looking at the status records nothing");
    // A missing folder is a status, not an error.
    fs::rename(world.project(), world.store().with_file_name("moved")).expect("our folder");
    let status = client.get(&format!("/v1/workspace/status?thread={thread}")).done();
    assert_eq!((&status["exists"], &status["files"]), (&json!(false), &Value::Null), "{status}");
    assert!(status["files_error"].as_str().is_some_and(|why| !why.is_empty()));
    client.get(&format!("/v1/threads/{thread}/diff")).refused(409, "conflict");
}

#[test]
fn differences_changes_and_lines_name_their_author() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    write(&world.project(), "a.txt", "one\ntwo\n");
    let thread = client.thread("Work");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    snapshot(&client, &thread, json!({"note": "first"}));
    write(&world.project(), "a.txt", "one\nTWO\nthree\n");
    write(&world.project(), "b/c d.txt", "new\n");
    let second = snapshot(&client, &thread, json!({"by": "agent"}));
    write(&world.project(), "a.txt", "one\nTWO\nthree\nby hand\n");

    let diff = client.get(&at("diff")).done();
    assert_eq!(
        (texts(&diff["items"], "path"), &diff["items"][0]["lines"]["added"]),
        (vec!["a.txt"], &json!(1)),
        "{diff}"
    );
    let diff = client.get(&at(&format!("diff?from=first&to={}", second["version"]))).done();
    assert_eq!((texts(&diff["items"], "path"), &diff["count"]), (vec!["a.txt", "b/c d.txt"], &json!(2)));
    assert_eq!(client.get(&at(&format!("diff?of={}", second["version"]))).done()["items"], diff["items"]);
    let page = client.get(&at("diff?from=first&limit=1&detail=paths")).done();
    let next = page["next"].as_str().expect("there is more");
    let rest = client.get(&at(&format!("diff?from=first&limit=1&detail=paths&cursor={next}"))).done();
    assert_eq!((texts(&rest["items"], "path"), &rest["next"]), (vec!["b/c d.txt"], &Value::Null));
    client.get(&at(&format!("diff?of={}&cursor={next}", second["version"]))).refused(409, "conflict");
    assert_eq!(texts(&client.get(&at("diff?from=first&path=b")).done()["items"], "path"), ["b/c d.txt"]);
    client.get(&at("diff?from=nothing")).refused(404, "not_found");
    client.get(&at("diff?from=1&of=2")).refused(422, "refused");

    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&at(&format!("changes?limit=1{cursor}"))).done();
        seen.extend(page["items"].as_array().expect("a list").clone());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let described: Vec<(&str, &str)> = seen
        .iter()
        .map(|item| (item["path"].as_str().expect("a path"), item["actor"]["type"].as_str().expect("who")))
        .collect();
    assert_eq!(described, [("a.txt", "human"), ("a.txt", "agent"), ("b/c d.txt", "agent")]);
    let log = client.get(&at("changes?path=a.txt")).done();
    assert_eq!(log["items"].as_array().map(Vec::len), Some(2), "{log}");

    let blame = client.get(&at("blame?path=a.txt")).done();
    let origin = |line: usize| {
        let origin = blame["items"][line]["origin"].as_u64().map(|origin| origin as usize);
        origin.map(|origin| blame["origins"][origin]["actor"]["type"].as_str().expect("who").to_owned())
    };
    assert_eq!(
        [0, 1, 2, 3].map(origin),
        [None, Some("agent".into()), Some("agent".into()), Some("human".into())]
    );
    let page = client.get(&at("blame?path=a.txt&limit=3&cursor=1")).done();
    assert_eq!(
        (texts(&page["items"], "text"), &page["next"]),
        (vec!["TWO", "three", "by hand"], &Value::Null)
    );
    client.get(&at("blame?path=no.txt")).refused(404, "not_found");
    client.get(&at("blame?path=b")).refused(409, "conflict");
    client.get(&at("blame?path=../a.txt")).refused(422, "refused");
}

#[test]
fn files_of_earlier_versions_are_listed_and_read() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    for (name, text) in
        [("a.txt", "one\n"), ("b/c.txt", "c"), ("b/d/e.txt", "e"), ("b.txt", "b"), ("z\\.bin", "\0\u{1}")]
    {
        write(&world.project(), name, text);
    }
    // Stored in parts, and sent in pieces that do not split a character.
    let large = "grö".repeat(1_500_000);
    write(&world.project(), "large.txt", &large);
    let thread = client.thread("Work");
    let at = |rest: &str| format!("/v1/threads/{thread}/workspace/{rest}");
    snapshot(&client, &thread, json!({"note": "first"}));
    write(&world.project(), "a.txt", "two\n");
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&at(&format!("files?deep=true&limit=2{cursor}"))).done();
        names.extend(texts(&page["items"], "path").into_iter().map(str::to_owned));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={}", next.replace('\\', "%5C")),
            None => break,
        }
    }
    assert_eq!(names, ["a.txt", "b", "b/c.txt", "b/d", "b/d/e.txt", "b.txt", "large.txt", "z\\\\.bin"]);
    assert_eq!(texts(&client.get(&at("files?path=b")).done()["items"], "path"), ["b/c.txt", "b/d"]);
    client.get(&at("files?path=a.txt")).refused(404, "not_found");
    client.get(&at("files?path=b&cursor=a.txt")).refused(422, "refused");

    assert_eq!(client.get(&at("file?path=a.txt")).done()["text"], "two\n");
    assert_eq!(client.get(&at("file?path=a.txt&at=first")).done()["text"], "one\n");
    let binary = client.get(&at("file?path=z%5C%5C.bin")).done();
    assert_eq!(
        (&binary["binary"], &binary["base64"], &binary["text"]),
        (&json!(true), &json!("AAE="), &Value::Null)
    );
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let piece = client.get(&at(&format!("file?path=large.txt&offset={offset}"))).done();
        whole.push_str(piece["text"].as_str().expect("text"));
        match piece["next"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert!(whole == large, "{} bytes of {}", whole.len(), large.len());
    client.get(&at("file?path=b")).refused(409, "conflict");
    client.get(&at("file?path=b/no")).refused(404, "not_found");
    let beyond = client.get(&at("file?path=a.txt&offset=18446744073709551615")).done();
    assert_eq!((&beyond["text"], &beyond["next"]), (&json!(""), &Value::Null));
}

#[test]
fn a_worktree_is_added_and_removed() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    write(&world.project(), "a.txt", "one\n");
    let thread = client.thread("Work");
    client.say(&thread, "User", "hello");
    snapshot(&client, &thread, json!({}));
    let first = client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"].clone();
    let entry = client.entries(&thread)[0]["id"].clone();
    client.post(&format!("/v1/threads/{thread}/branch"), &json!({"entry": entry})).done();
    let take = |what: &str| format!("/v1/threads/{thread}/takes/{}/{what}", first.as_str().expect("an id"));
    let folder = world.store().with_file_name("worktree");
    let body = json!({"folder": folder});
    client.post(&take("worktree/remove"), &json!({})).refused(404, "not_found");
    client.post(&take("worktree"), &json!({"folder": "relative"})).refused(422, "refused");
    assert_eq!(client.post(&take("worktree?dry_run=true"), &body).done()["files"], 1);
    assert!(!folder.exists());
    client.post(&take("worktree"), &body).done();
    assert_eq!(fs::read_to_string(folder.join("a.txt")).expect("it is there"), "one\n");
    // A preview is refused if the request is.
    for route in ["worktree", "worktree?dry_run=true"] {
        client.post(&take(route), &body).refused(409, "conflict");
    }
    assert_eq!(texts(&client.get("/v1/worktrees").done()["items"], "take"), [first.as_str().expect("an id")]);

    // Changes there belong to the take, and the project's folder is unchanged.
    write(&folder, "a.txt", "in the worktree\n");
    snapshot(&client, &thread, json!({"take": first, "by": "agent"}));
    let there = format!("/v1/threads/{thread}/workspace/file?path=a.txt");
    assert_eq!(
        client.get(&format!("{there}&take={}", first.as_str().expect("an id"))).done()["text"],
        "in the worktree\n"
    );
    assert_eq!(client.get(&there).done()["text"], "one\n");
    write(&folder, "b.txt", "last\n");
    let ahead = client.post(&take("worktree/remove?dry_run=true"), &json!({"remove": true})).done();
    assert_eq!(texts(&ahead["preview"]["unrecorded"], "path"), ["b.txt"], "{ahead}");
    let closed = client.post(&take("worktree/remove"), &json!({"remove": true})).done();
    assert_eq!((&closed["removed"], folder.join("b.txt").exists()), (&json!(true), false), "{closed}");
    client.post(&take("switch"), &json!({})).done();
    assert_eq!(
        (world.read("a.txt").as_deref(), world.read("b.txt").as_deref()),
        (Some("in the worktree\n"), Some("last\n"))
    );
}

#[test]
fn a_refused_snapshot_records_nothing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    write(&world.project(), "a.txt", "one\n");
    let thread = client.thread("Refused");
    snapshot(&client, &thread, json!({}));
    write(&world.project(), "a.txt", "two\n");
    let sequence = client.sequence();
    let long = "n".repeat(10_000);
    for wrong in [json!({"note": ""}), json!({"note": "", "by": "prog"}), json!({"note": long, "by": "prog"})]
    {
        let mut body = wrong.clone();
        body["thread"] = json!(thread);
        client.post("/v1/snapshots", &body).refused(422, "refused");
        assert_eq!(client.sequence(), sequence, "{wrong}");
    }
    snapshot(&client, &thread, json!({"note": "good", "by": "prog"}));
    assert_eq!(client.sequence(), sequence + 2);
}

#[test]
fn listed_snapshots_can_be_restored() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    write(&world.project(), "a.txt", "one\n");
    let thread = client.thread("First");
    let taken = client.post("/v1/snapshots", &json!({ "thread": thread }));
    taken.done();
    let place = taken.header("location").expect("a place").to_owned();
    client.get(&place).done();
    let restore = |query: &str| client.post(&format!("{place}/restore{query}"), &json!({ "thread": thread }));
    restore("?dry_run=true").done();
    // The change is not recorded yet.
    write(&world.project(), "a.txt", "two\n");
    restore("").done();
    assert_eq!(world.read("a.txt").as_deref(), Some("one\n"));
}

#[test]
fn of_very_many_files_that_differ_only_the_first_are_compared() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Many");
    let line = "a line of some length that differs\n".repeat(2_000);
    write(&world.project(), "first.txt", "one\n");
    snapshot(&client, &thread, json!({}));
    let first = client.get(&format!("/v1/threads/{thread}")).done()["active"]["id"].clone();
    client.post(&format!("/v1/threads/{thread}/branch"), &json!({"name": "other"})).done();
    for number in 0..520 {
        let text = if number < 200 { line.as_str() } else { "short\n" };
        write(&world.project(), &format!("many/{number:03}.txt"), text);
    }
    snapshot(&client, &thread, json!({"by": "agent"}));
    let first = first.as_str().expect("an id");
    let compare =
        |detail: &str| client.get(&format!("/v1/threads/{thread}/compare?one={first}&detail={detail}"));
    for (detail, most) in [("paths", 500), ("counts", 500), ("lines", 199)] {
        let answer = compare(detail);
        let files = answer.done()["files"][0].clone();
        assert!(files["stat"]["files"].as_u64() >= Some(520), "{detail}: {}", files["stat"]);
        let count = files["files"].as_array().map_or(0, Vec::len);
        assert!((1..=most).contains(&count), "{detail}: {count}");
        assert!(answer.body.len() < 40 << 20, "{detail}: {} bytes", answer.body.len());
    }
}

#[test]
fn a_missing_project_folder_is_a_conflict() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    client.thread("Before");
    let away = world.folder().join("away");
    std::fs::rename(world.project(), &away).expect("both are ours");
    let asked = [
        client.post("/v1/threads", &json!({})),
        client.get("/api/session"),
        client.post("/v1/sessions", &json!({})),
    ];
    for answer in asked {
        let problem = answer.refused(409, "files_failed");
        let message = problem["detail"].as_str().expect("a text");
        assert!(
            message.contains("folder") && message.contains(&*world.project().to_string_lossy()),
            "{message}"
        );
    }
    // Control, and names in the request itself.
    std::fs::rename(&away, world.project()).expect("both are ours");
    client.post("/v1/threads", &json!({})).done();
    let gone = json!({"folder": world.folder().join("nowhere")});
    client.post("/v1/projects", &gone).refused(404, "not_found");
}

#[test]
fn a_folder_becomes_a_project_and_is_forgotten() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (outer, inner) = (world.folder().join("outer"), world.folder().join("outer/inner"));
    std::fs::create_dir_all(&inner).expect("folders");
    let above = client.post("/v1/projects", &json!({"folder": outer})).done();
    assert_eq!(client.post("/v1/projects", &json!({"folder": inner})).done()["id"], above["id"]);
    let made = client.post("/v1/projects", &json!({"folder": inner, "init": true})).done();
    assert_ne!(made["id"], above["id"]);
    assert_eq!(client.post("/v1/projects", &json!({"folder": inner})).done()["id"], made["id"]);
    let path = format!("/v1/projects/{}", made["id"].as_str().expect("an id"));
    assert_eq!(client.delete(&path).done()["threads"], 0);
    client.delete(&path).refused(404, "not_found");
    assert_eq!(client.post("/v1/projects", &json!({"folder": inner})).done()["id"], above["id"]);
    for system in ["/", "/usr", "/proc/self"] {
        client.post("/v1/projects", &json!({"folder": system})).refused(422, "refused");
    }
}

#[test]
fn a_thread_lists_commits_chronologically() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Commits");
    let commits = ["f".repeat(40), "a".repeat(40), "0".repeat(40), "c".repeat(40)];
    let timeline = world.timeline();
    for (number, at) in [0, 1, 2, 0, 3, 1].into_iter().enumerate() {
        let environment =
            Some(Environment { git_commit: Some(commits[at].clone()), ..Environment::default() });
        let caller = Caller { environment, ..Caller::human() };
        let rename = Command::Rename { title: format!("Commits {number}") };
        timeline.change(thread.parse().expect("an id"), rename, caller).expect("a change");
    }
    let shown = client.get(&format!("/v1/threads/{thread}")).done();
    assert_eq!(shown["commits_seen"], json!(commits), "{shown}");
    assert_eq!(shown["last_activity"], shown["updated"], "{shown}");
}

#[test]
fn a_branch_records_the_commit_of_its_source() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Anchored");
    client.say(&thread, "User", "outside git");
    let branch = || {
        let entry = client.entries(&thread)[0]["id"].clone();
        client.post(&format!("/v1/threads/{thread}/branch"), &json!({ "entry": entry })).done();
    };
    branch();
    let commit = "c".repeat(40);
    let environment = Some(Environment { git_commit: Some(commit.clone()), ..Environment::default() });
    let rename = Command::Rename { title: "Elsewhere".to_owned() };
    let caller = Caller { environment, ..Caller::human() };
    world.timeline().change(thread.parse().expect("an id"), rename, caller).expect("a change");
    branch();
    let takes = client.get(&format!("/v1/threads/{thread}")).done()["all_takes"].clone();
    let commits: Vec<Value> = (0..3).map(|index| takes[index]["git_commit"].clone()).collect();
    assert_eq!(commits, [Value::Null, Value::Null, json!(commit)]);
    let tree = client.get("/v1/tree").done();
    assert_eq!(tree["items"][0]["all_takes"][2]["git_commit"], json!(commit), "{tree}");
}

#[test]
fn shared_changes_are_undone_only_on_request() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Shared");
    snapshot(&client, &thread, json!({}));
    let (timeline, id) = (world.timeline(), thread.parse().expect("an id"));
    let home = timeline.read().expect("a look").thread(id).expect("a thread").home;
    let working_copy = WorkingCopy::of_project(&timeline, home, &Options::default()).expect("a folder");
    let turn = TurnId::generate(&mut timeline.fresh());
    let alive = timeline.store().lock_alive(turn).expect("it is alive");
    let caller = Caller { actor: Actor::Agent, turn: Some(turn), ..Caller::human() };
    working_copy.mark_running(id, caller.clone(), turn, None).expect("it begins");
    write(&world.project(), "both.txt", "whose?\n");
    snapshot(&client, &thread, json!({"by": "editor"}));
    working_copy.record_as_caller(id, caller).expect("it ends");
    drop(alive);

    let undo = format!("/v1/threads/{thread}/undo");
    client.post(&undo, &json!({})).refused(409, "conflict");
    let ahead = client.post(&format!("{undo}?dry_run=true"), &json!({})).done();
    assert_eq!(texts(&ahead["preview"]["shared"], "path"), ["both.txt"]);
    assert_eq!(world.read("both.txt").as_deref(), Some("whose?\n"));
    client.post(&undo, &json!({"shared": true})).done();
    assert_eq!(world.read("both.txt"), None);
}

#[test]
fn a_version_is_saved_without_files_only_where_the_folder_is_missing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    // A project that the server was not started in.
    let elsewhere = world.store().with_file_name("elsewhere");
    write(&elsewhere, "a.txt", "one\n");
    let project = client.post("/v1/projects", &json!({"folder": elsewhere})).done();
    let made = client.post("/v1/threads", &json!({"project": project["id"], "title": "There"})).done();
    let thread = made["thread"].as_str().expect("an id");
    let version = snapshot(&client, thread, json!({}))["version"].clone();
    let save = |name: &str| client.post(&format!("/v1/threads/{thread}/save"), &json!({"name": name}));
    // A file that cannot be read.
    std::fs::remove_dir_all(&elsewhere).expect("it goes");
    std::os::unix::fs::symlink(&elsewhere, &elsewhere).expect("a link to itself");
    let refused = save("incomplete");
    assert!(refused.status >= 400, "{}", refused.status);
    assert_eq!(client.get(&format!("/v1/threads/{thread}")).done()["version"], version, "nothing was saved");
    std::fs::remove_file(&elsewhere).expect("it goes");
    save("without a folder").done();
}
