//! Races: of concurrent requests that expect the same version, exactly one wins; without a version, all
//! succeed.

use std::collections::BTreeSet;
use std::sync::Barrier;

use serde_json::{Value, json};

use crate::http::{Answer, Client, Request};
use crate::scene::Scene;
use crate::world::World;

/// Sends requests at the same time.
pub(crate) fn at_once(requests: &[Request]) -> Vec<Answer> {
    let start = Barrier::new(requests.len());
    std::thread::scope(|scope| {
        let sending: Vec<_> = requests
            .iter()
            .map(|request| {
                scope.spawn(|| {
                    start.wait();
                    request.send()
                })
            })
            .collect();
        sending.into_iter().map(|one| one.join().expect("an answer")).collect()
    })
}

/// Changes that have an effect regardless of earlier ones.
fn changes(client: &Client, thread: &str, round: usize) -> Vec<Request> {
    let post =
        |rest: &str, body: Value| client.request("POST", &format!("/v1/threads/{thread}/{rest}")).json(&body);
    let title = format!("Title {round} {}", client.address.port());
    let name = client.address.port();
    vec![
        post("rename", json!({"title": title})),
        post("entries", json!({"entries": [{"role": "User", "content": title}]})),
        post("tags", json!({"add": [format!("tag-{round}-{name}")]})),
        post("save", json!({"name": format!("moment {round}")})),
        post("branch", json!({})),
        post("undo", json!({})),
        client
            .request("PATCH", &format!("/v1/threads/{thread}/settings"))
            .json(&json!({"max_tokens": round + 1000})),
    ]
}

#[test]
fn of_two_changes_of_one_version_exactly_one_succeeds() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    // With one server, and with two on one store.
    for pair in [[0, 0], [0, 1]] {
        let clients = pair.map(|server: usize| servers[server].client());
        let thread = Scene::set(&clients[0]).thread;
        for round in 0..70 {
            let version = clients[round % 2].version(&thread);
            let (mine, theirs) = (changes(&clients[0], &thread, round), changes(&clients[1], &thread, round));
            let pick = |all: &[Request], at: usize| all[at % all.len()].clone().if_match(version);
            let requests = [pick(&mine, round), pick(&theirs, round / 7 + round)];
            let answers = at_once(&requests);
            let (won, lost): (Vec<_>, Vec<_>) =
                answers.iter().partition(|answer| (200..300).contains(&answer.status));
            let texts: Vec<String> = answers.iter().map(Answer::text).collect();
            assert_eq!((won.len(), lost.len()), (1, 1), "round {round}: {texts:?}");
            let problem = lost[0].refused(412, "version_conflict");
            let current = clients[0].version(&thread);
            assert_eq!(won[0].header("etag"), Some(format!("\"{current}\"").as_str()));
            assert_eq!((&problem["current"], current > version), (&json!(current), true), "round {round}");
        }
    }
}

#[test]
fn of_concurrent_undos_one_moves_the_files() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let client = servers[0].client();
    let thread = client.thread("Files");
    client.prompt(&thread, "create a.txt with one");
    client.idle(&thread);
    for round in 0..8 {
        let (action, there) = if round % 2 == 0 { ("undo", false) } else { ("redo", true) };
        let version = client.version(&thread);
        let path = format!("/v1/threads/{thread}/{action}");
        let ask = |number: usize| servers[number % 2].client().request("POST", &path).json(&json!({}));
        let requests: Vec<Request> = (0..4).map(|number| ask(number).if_match(version)).collect();
        let answers = at_once(&requests);
        let texts: Vec<String> = answers.iter().map(Answer::text).collect();
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "{action}: {texts:?}");
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            answer.refused(412, "version_conflict");
        }
        assert_eq!(world.read("a.txt").is_some(), there, "round {round}: {action}");
        assert_eq!(client.version(&thread), version + 1);
    }
}

#[test]
fn of_many_changes_of_one_version_exactly_one_succeeds() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let client = servers[0].client();
    let thread = client.thread("Wanted");
    for round in 0..15 {
        let version = client.version(&thread);
        let requests: Vec<Request> = (0..12)
            .map(|number| {
                let body = json!({"entries": [{"role": "User", "content": format!("{round} by {number}")}]});
                let client = servers[number % 2].client();
                let request = client.request("POST", &format!("/v1/threads/{thread}/entries"));
                request.json(&body).if_match(version)
            })
            .collect();
        let answers = at_once(&requests);
        let winners: Vec<usize> = (0..12).filter(|number| answers[*number].status == 201).collect();
        assert_eq!(winners.len(), 1, "round {round}");
        let entries = client.entries(&thread);
        assert_eq!(entries.len(), round + 1);
        let text = entries[round].to_string();
        assert!(text.contains(&format!("\"{round} by {}\"", winners[0])), "{text}");
    }
}

/// Control: requests without an expected version all succeed, and each change gets a separate version.
#[test]
fn changes_without_an_expected_version_get_distinct_versions() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let client = servers[0].client();
    let thread = client.thread("Shared");
    let mut versions = BTreeSet::new();
    for round in 0..10 {
        let requests: Vec<Request> = (0..10)
            .map(|number| {
                let body = json!({"entries": [{"role": "User", "content": format!("{round} {number}")}]});
                servers[number % 2]
                    .client()
                    .request("POST", &format!("/v1/threads/{thread}/entries"))
                    .json(&body)
            })
            .collect();
        for answer in at_once(&requests) {
            assert!(versions.insert(answer.done()["version"].as_u64().expect("a number")));
        }
    }
    assert_eq!(versions, (2..=101).collect());
    assert_eq!(client.entries(&thread).len(), 100);
}

#[test]
fn changes_of_one_server_are_visible_to_the_other() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    let clients = [servers[0].client(), servers[1].client()];
    // The last thread of a project cannot be deleted.
    clients[0].thread("Kept");
    for round in 0..30 {
        let (writer, reader) = (&clients[round % 2], &clients[(round + 1) % 2]);
        let title = format!("Thread {round}");
        let thread = writer.thread(&title);
        assert_eq!(reader.get(&format!("/v1/threads/{thread}")).done()["title"], title);
        for list in ["/v1/threads?limit=1", "/v1/tree?limit=1"] {
            let listed = reader.get(list).done();
            assert!(listed["items"][0].to_string().contains(&title), "{list}: {listed}");
        }
        writer.delete(&format!("/v1/threads/{thread}")).done();
        assert!(!reader.get("/v1/threads?limit=500").text().contains(&title));
    }
}

#[test]
fn concurrent_threads_cannot_get_the_same_title() {
    let world = World::new();
    let servers = [world.serve(), world.serve()];
    for round in 0..10 {
        let body = json!({"title": format!("The only {round}")});
        let requests: Vec<Request> = (0..6)
            .map(|number| servers[number % 2].client().request("POST", "/v1/threads").json(&body))
            .collect();
        let answers = at_once(&requests);
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(made, 1, "{:?}", answers.iter().map(Answer::text).collect::<Vec<_>>());
        for answer in answers.iter().filter(|answer| answer.status != 201) {
            answer.refused(409, "conflict");
        }
    }
}
