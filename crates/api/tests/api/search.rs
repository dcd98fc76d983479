//! Full-text search over HTTP.

use serde_json::{Value, json};

use crate::world::World;

#[test]
fn search_finds_entries_by_words_and_filters_in_pages() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let (one, other) = (client.thread("One"), client.thread("Other"));
    for number in 0..5 {
        client.say(&one, "User", &format!("lantern number {number}"));
    }
    client.say(&other, "AI", "a lantern, and a moth");
    let gone = client.say(&other, "User", "a lantern that is taken back");
    client.post(&format!("/v1/threads/{other}/undo"), &json!({})).done();
    assert!(gone["operation"].is_string());

    let find = |query: &str| {
        let (mut found, mut cursor): (Vec<Value>, String) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/v1/search?limit=2&{query}{cursor}")).done();
            found.extend(page["items"].as_array().expect("a list").clone());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return found,
            }
        }
    };
    let check = |query: &str, expected: usize| {
        let found = find(query);
        let entries: std::collections::BTreeSet<String> =
            found.iter().map(|hit| format!("{} {}", hit["entry"], hit["version"])).collect();
        assert_eq!((found.len(), entries.len()), (expected, expected), "{query}: {found:?}");
    };
    check("q=lantern", 6);
    check("q=lantern&history=true", 7);
    check(&format!("q=lantern&thread={one}"), 5);
    check(&format!("q=lantern&thread={other}"), 1);
    check("q=lantern&role=AI", 1);
    check("q=lantern&title=oth", 1);
    check("q=lantern+-moth", 5);
    check("q=lant*&order=newest", 6);
    check("q=%22number+3%22", 1);
    check("q=lantern&since=2100-01-01T00:00:00Z", 0);
    check("q=lantern&tag=none", 0);
    check("", 6);
    let hit = &find("q=moth")[0];
    let matched =
        hit["snippet"]["pieces"].as_array().expect("pieces").iter().find(|piece| piece["matched"] == true);
    assert_eq!(
        (&hit["thread"], &hit["number"], &matched.expect("a match")["text"]),
        (&json!(other), &json!(1), &json!("moth"))
    );

    client.thread("Another");
    client.delete(&format!("/v1/threads/{one}")).done();
    check("q=lantern", 1);
    check("q=lantern&deleted=true", 6);
    check(&format!("q=lantern&thread={one}"), 0);

    for wrong in ["limit=0", "limit=101", "since=yesterday", "order=best", "unknown=1"] {
        client.get(&format!("/v1/search?{wrong}")).refused(400, "invalid_request");
    }
    client.get("/v1/search?cursor=-1").refused(422, "refused");
    client.get("/v1/search?q=lantern&thread=00000000000000000000000000").refused(404, "not_found");
    let many = vec!["word"; 2000].join("+");
    client.get(&format!("/v1/search?q={many}")).refused(400, "invalid_request");
    for odd in ["%22", "*", "-", "%00", "a%22b*c-", "AND+OR+NOT", "(", "%F0%9F%94%A5"] {
        let answer = client.get(&format!("/v1/search?q={odd}"));
        assert!(answer.status < 500, "{odd}: {}", answer.text());
    }
}
