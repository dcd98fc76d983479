//! Versions: who names the version that they saw overwrites nobody; and looking ahead changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::routes::Route;
use crate::scene::Scene;
use crate::world::World;

/// Routes that need more than a scene has, and are tried elsewhere.
const APART: &[&str] = &["POST /v1/threads/{thread}/turn/resume"];

#[test]
fn a_version_that_is_not_the_current_one_is_refused_by_every_route_and_changes_nothing() {
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

/// The control: each of these requests is carried out if it names the current version.
#[test]
fn the_current_version_is_taken_by_every_route() {
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
        // What goes on after the answer changes more.
        let now = if answer.status == 202 { tag } else { Some(client.version(&scene.thread)) };
        assert!(tag.is_some() && tag == now, "{}: {tag:?} is not {now:?}", route.name());
        client.idle(&scene.thread);
    }
}

#[test]
fn routes_that_change_no_thread_take_no_version() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let scene = Scene::set(&client);
    for route in Route::all(&client).iter().filter(|route| !route.versioned) {
        route.request(&client, &scene).if_match(1).send().refused(400, "invalid_request");
    }
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let listed =
        std::fs::read_dir(folder).expect("the folder is ours").map(|entry| entry.expect("readable").path());
    let read = |path: std::path::PathBuf| {
        let name = path.to_string_lossy().into_owned();
        Some((name, std::fs::read(path).ok()?))
    };
    listed.filter_map(read).collect()
}

#[test]
fn looking_ahead_changes_nothing_on_any_route() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    std::fs::write(world.project().join("mine.txt"), "by hand").expect("our folder");
    let scene = Scene::set(&client);
    let before = (client.sequence(), files(&world.project()));
    let routes: Vec<Route> = Route::all(&client).into_iter().filter(|route| route.foresees).collect();
    assert!(routes.len() >= 9, "{routes:?}");
    for route in &routes {
        let foreseen = route.looking_ahead(&client, &scene).send();
        assert!((200..300).contains(&foreseen.status), "{}: {}", route.name(), foreseen.text());
        let said = foreseen.json();
        let said = if said["result"].is_null() { &said } else { &said["result"] };
        assert_eq!(said["dry_run"], true, "{}: {said}", route.name());
        assert_eq!((client.sequence(), files(&world.project())), before, "{}", route.name());
    }
    // The control: without looking ahead the same requests do change something.
    for (number, route) in routes.iter().enumerate() {
        let scene = Scene::set(&client);
        std::fs::write(world.project().join("mine.txt"), number.to_string()).expect("our folder");
        let version = client.version(&scene.thread);
        let done = route.request(&client, &scene).send();
        assert!((200..300).contains(&done.status), "{}: {}", route.name(), done.text());
        assert!(client.version(&scene.thread) > version, "{}: {}", route.name(), done.text());
    }
}
