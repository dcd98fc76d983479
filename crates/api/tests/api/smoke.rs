//! Smoke test: entries are stored, events are sent, and a stopped server restarts.

use std::time::Duration;

use crate::world::World;

#[test]
fn a_thread_is_created_shown_and_survives_the_server() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let mut stream = client.events(0);
    let thread = client.thread("First");
    client.say(&thread, "User", "hello");
    let kinds =
        [(); 2].map(|()| stream.next_operation(Duration::from_secs(5)).expect("an event arrives").data);
    assert_eq!(kinds[1]["version"], 2, "{kinds:?}");
    server.stop();
    assert!(stream.next(Duration::from_secs(5)).is_none() && stream.is_over());
    let again = world.serve().client().entries(&thread);
    assert_eq!(again.len(), 1, "{again:?}");
}
