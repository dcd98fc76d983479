//! Expected versions: a request that names one overwrites no newer change; and a dry run changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::routes::Route;
use crate::scene::Scene;
use crate::world::World;

/// Routes that need more than a scene offers, and are tested elsewhere.
const APART: &[&str] =
    &["POST /v1/threads/{thread}/turn/resume", "POST /v1/threads/{thread}/takes/{take}/worktree/remove"];

#[test]
fn every_route_refuses_a_stale_version_and_changes_nothing() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let scene = Scene::set(&client);
    let current = client.version(&scene.thread);
    let before = client.sequence();
    let routes: Vec<Route> = Route::all(&client).into_iter().filter(|route| route.versioned).collect();
    assert!(routes.len() > 25, "only {} routes have versions", routes.len());
    for route in &routes {
        for version in [current - 1, current + 1, 1, 0, u64::from(u32::MAX)] {
            let answer = route.request(&client, &scene).if_match(version).send();
            let found = (answer.status, answer.code());
            assert_eq!(found, (412, "version_conflict".to_owned()), "{}: {}", route.name(), answer.text());
            let problem = answer.refused(412, "version_conflict");
            assert_eq!((&problem["current"], &problem["expected"]), (&json!(current), &json!(version)));
            assert_eq!(answer.header("etag"), Some(format!("\"{current}\"").as_str()), "{}", route.name());
        }
    }
    assert_eq!((client.version(&scene.thread), client.sequence()), (current, before));
}

/// Control: each of these requests succeeds if it names the current version.
#[test]
fn every_route_accepts_the_current_version() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let tried = |route: &&Route| route.versioned && !APART.contains(&route.name().as_str());
    for route in Route::all(&client).iter().filter(tried) {
        let scene = Scene::set(&client);
        let current = client.version(&scene.thread);
        let answer = route.request(&client, &scene).if_match(current).send();
        assert!((200..300).contains(&answer.status), "{}: {}", route.name(), answer.text());
        let tag = answer.header("etag").map(|tag| tag.trim_matches('"').parse().expect("a number"));
        // Work after the response changes the version again.
        let now = if answer.status == 202 { tag } else { Some(client.version(&scene.thread)) };
        assert!(tag.is_some() && tag == now, "{}: {tag:?} is not {now:?}", route.name());
        client.idle(&scene.thread);
    }
}

#[test]
fn routes_that_change_no_thread_ignore_versions() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let scene = Scene::set(&client);
    for route in Route::all(&client).iter().filter(|route| !route.versioned) {
        route.request(&client, &scene).if_match(1).send().refused(400, "invalid_request");
    }
}

/// All files and folders below a folder, recursively.
fn files(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder is ours") {
        let path = entry.expect("readable").path();
        let is_folder = path.symlink_metadata().expect("it is there").is_dir();
        if is_folder {
            found.extend(files(&path));
        }
        let content = (!is_folder).then(|| std::fs::read(&path).expect("it is ours"));
        found.insert(path.to_string_lossy().into_owned(), content);
    }
    found
}

/// Whether a route changes something other than the scene's thread or the project's folder.
fn beside(route: &Route) -> bool {
    route.path == "/v1/import" || route.path.ends_with("/takes/{take}/worktree/remove")
}

#[test]
fn dry_runs_change_nothing_on_any_route() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    std::fs::create_dir_all(world.project().join("deep/er")).expect("our folder");
    for mine in ["mine.txt", "deep/mine.txt", "deep/er/mine.txt"] {
        std::fs::write(world.project().join(mine), "by hand").expect("our folder");
    }
    let scene = Scene::set(&client);
    let before = (client.sequence(), files(&world.project()));
    let tried = |route: &Route| route.previews && !APART.contains(&route.name().as_str());
    let routes: Vec<Route> = Route::all(&client).into_iter().filter(tried).collect();
    assert!(routes.len() >= 9, "{routes:?}");
    for route in &routes {
        scene.prepare(&client, &route.name());
        let preview = route.looking_ahead(&client, &scene).send();
        assert!((200..300).contains(&preview.status), "{}: {}", route.name(), preview.text());
        let response = preview.json();
        let response = if response["result"].is_null() { &response } else { &response["result"] };
        assert_eq!(response["dry_run"], true, "{}: {response}", route.name());
        assert_eq!((client.sequence(), files(&world.project())), before, "{}", route.name());
        scene.tidy(&client, &route.name());
    }
    // Control: without the dry run, the same requests do change something.
    for (number, route) in routes.iter().filter(|route| !beside(route)).enumerate() {
        let scene = Scene::set(&client);
        std::fs::write(world.project().join("mine.txt"), number.to_string()).expect("our folder");
        let version = client.version(&scene.thread);
        let done = route.request(&client, &scene).send();
        assert!((200..300).contains(&done.status), "{}: {}", route.name(), done.text());
        let changed = client.version(&scene.thread) > version;
        assert!(
            changed || route.kind.as_deref() != Some("application/json"),
            "{}: {}",
            route.name(),
            done.text()
        );
    }
}

/// Every request that reads the files, even a dry run, records the user's edits. They conflict with no
/// expected version, and the response names the new version.
#[test]
fn user_edits_of_files_do_not_conflict_with_an_expected_version() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    for route in
        Route::all(&client).iter().filter(|route| route.previews && !APART.contains(&route.name().as_str()))
    {
        let scene = Scene::set(&client);
        let mine = world.project().join("mine.txt");
        std::fs::write(&mine, &scene.thread).expect("our folder");
        let seen = client.version(&scene.thread);
        let ahead = route.looking_ahead(&client, &scene);
        let ahead = if route.versioned { ahead.if_match(seen) } else { ahead }.send();
        assert!((200..300).contains(&ahead.status), "{}: {}", route.name(), ahead.text());
        let now = client.version(&scene.thread);
        assert!(now <= seen + 1, "{}: at most what the person did is recorded", route.name());
        if !route.versioned {
            continue;
        }
        assert_eq!(ahead.header("etag"), Some(format!("\"{now}\"").as_str()), "{}", route.name());
        std::fs::write(&mine, "and again").expect("our folder");
        let done = route.request(&client, &scene).if_match(now).send();
        assert!((200..300).contains(&done.status), "{}: {}", route.name(), done.text());
    }
}
