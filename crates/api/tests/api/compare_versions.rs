//! Compares two versions, as a client that shows the differences does.

use serde_json::json;

use crate::world::World;

#[test]
fn operations_and_previews_of_undo_are_described() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("told");
    let between = |query: &str| client.get(&format!("/v1/threads/{thread}/compare-versions{query}"));
    let empty = client.version(&thread);
    client.say(&thread, "User", "first");
    client.say(&thread, "AI", "second");
    client
        .request("PATCH", &format!("/v1/threads/{thread}/settings"))
        .json(&json!({"temperature": 0.5}))
        .send()
        .done();
    let now = client.version(&thread);

    // The default is the last operation.
    let last = between("").done();
    assert_eq!(last["fields"], json!([{"name": "temperature", "before": "", "after": "0.5"}]), "{last}");
    assert_eq!(last["entries"], json!([]));
    // From the start to now, and back.
    let forth = between(&format!("?from={empty}&to={now}")).done();
    assert_eq!((&forth["entries_added"], &forth["entries_removed"]), (&json!(2), &json!(0)), "{forth}");
    assert_eq!(forth["entries"][1]["after"]["content"], "second");
    assert_eq!(forth["entries"][1]["before"], json!(null));
    let back = between(&format!("?from={now}&to={empty}&limit=1")).done();
    assert_eq!(
        (&back["entries_removed"], back["entries"].as_array().map(Vec::len)),
        (&json!(2), Some(1)),
        "{back}"
    );

    between("?to=99").refused(404, "not_found");
    between("?from=0").refused(404, "not_found");
    between("?limit=0").refused(400, "invalid_request");
}
