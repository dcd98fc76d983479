//! A thread with a bit of everything, so that every route has something to do.

use serde_json::{Value, json};

use crate::http::Client;

/// A picture, in base64.
const PICTURE: &str = "R0lGODlhIGE=";

/// A thread with entries, two takes, a draft, something to undo and something to redo.
pub(crate) struct Scene {
    pub(crate) thread: String,
    /// The inactive take.
    pub(crate) other: String,
    /// A user message in both takes.
    pub(crate) entry: String,
    /// A version with captured files.
    pub(crate) snapshot: String,
    /// A picture of the draft.
    pub(crate) picture: String,
}

impl Scene {
    /// Creates the scene, with a different title each time.
    pub(crate) fn set(client: &Client) -> Self {
        let made = client.post("/v1/threads", &json!({})).done();
        let thread = made["thread"].as_str().expect("an id").to_owned();
        let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
        let talk = json!({"entries": [
            {"role": "User", "content": "one"}, {"role": "AI", "content": "two"},
            {"role": "User", "content": "three"}, {"role": "AI", "content": "four"},
        ]});
        client.post(&at("entries"), &talk).done();
        let entries = client.entries(&thread);
        let entry = |index: usize| entries[index]["id"].as_str().expect("an id").to_owned();
        let shown = || client.get(&format!("/v1/threads/{thread}")).done();
        let active = |shown: &Value| shown["active"]["id"].as_str().expect("an id").to_owned();
        let other = active(&shown());
        client.post(&at("branch"), &json!({"entry": entry(3)})).done();
        client.put(&at("draft"), &json!({"text": "a draft"})).done();
        client.post(&at("draft/pictures"), &json!({"pictures": [PICTURE]})).done();
        for path in ["replaced.txt", "preset.txt"] {
            client.post(&at("presets"), &json!({"name": "preset", "items": [{"path": path}]})).done();
        }
        let attached = client.get(&at("draft")).done();
        let picture = attached["pictures"][0]["picture"].as_str().expect("an id").to_owned();
        let taken = client.post("/v1/snapshots", &json!({"thread": thread, "note": "a moment"}));
        taken.done();
        let snapshot = taken.header("location").and_then(|place| place.rsplit('/').next()).expect("a place");
        client.post(&at("tags"), &json!({"add": ["undone"]})).done();
        client.post(&at("undo"), &json!({})).done();
        assert_ne!(active(&shown()), other, "a branch becomes the active take");
        Self { other, entry: entry(2), snapshot: snapshot.to_owned(), picture, thread }
    }

    /// A path with the scene's ids as parameters.
    pub(crate) fn path(&self, pattern: &str) -> String {
        let known = [
            ("{thread}", self.thread.as_str()),
            ("{take}", &self.other),
            ("{entry}", &self.entry),
            ("{snapshot}", &self.snapshot),
            ("{callback}", "undo"),
            ("{field}", "draft"),
            ("{list}", "files"),
            ("{picture}", &self.picture),
            ("{preset}", "preset"),
            ("{turn}", "last"),
        ];
        let mut path = pattern.to_owned();
        for (placeholder, id) in known {
            path = path.replace(placeholder, id);
        }
        path.replace(['{', '}'], "")
    }

    /// Sets up what a route needs.
    pub(crate) fn prepare(&self, client: &Client, route: &str) {
        if route.ends_with("/takes/{take}/worktree/remove") {
            client.post(&self.path("/v1/threads/{thread}/takes/{take}/worktree"), &json!({})).done();
        }
    }

    /// Reverts `prepare`, if the route did not.
    pub(crate) fn tidy(&self, client: &Client, route: &str) {
        if route.ends_with("/takes/{take}/worktree/remove") {
            client
                .post(
                    &self.path("/v1/threads/{thread}/takes/{take}/worktree/remove"),
                    &json!({"remove": true}),
                )
                .done();
        }
    }

    /// A file for routes that take one.
    pub(crate) fn file(&self, client: &Client) -> Vec<u8> {
        client.get(&self.path("/v1/threads/{thread}/export")).body
    }

    /// A valid body for a route; empty by default.
    pub(crate) fn body(&self, route: &str) -> Value {
        let entries = || json!({"entries": [{"role": "User", "content": "more"}]});
        match route
            .strip_prefix("POST /v1/threads/{thread}/")
            .or(route.strip_prefix("PUT /v1/threads/{thread}/"))
        {
            Some("entries") => entries(),
            Some("entries/{entry}/view" | "entries/view") => json!({"collapsed": true}),
            Some("entries/{entry}/context") => json!({"not_in_context": ["output"]}),
            Some("truncate") => json!({"pairs": 1}),
            Some("rename") => json!({"title": format!("Renamed {}", self.thread)}),
            Some("tags") => json!({"add": ["blue"]}),
            Some("pinned") => json!({"pinned": true}),
            Some("sharing") => json!({"private": true}),
            Some("branch" | "fork" | "retry") => json!({"entry": self.entry}),
            Some("takes/{take}/rename") => json!({"name": "another"}),
            Some("jump") => json!({"version": 2}),
            Some("save") => json!({"name": "a moment"}),
            Some("draft") => json!({"text": "another draft"}),
            Some("draft/pictures") => json!({"pictures": ["R0lGODlhIGFub3RoZXI="]}),
            Some("roles") => json!({"roles": ["User", "AI", "Judge"]}),
            Some("lists/{list}") => json!({"items": [{"path": "a.txt"}]}),
            Some("presets" | "presets/load" | "presets/restore") => json!({"name": "preset"}),
            Some("turns") => json!({"prompt": "say hi"}),
            Some("compress") => json!({"keep": 1}),
            _ => match route {
                "PATCH /v1/threads/{thread}/entries/{entry}" => json!({"content": "edited"}),
                "PATCH /v1/threads/{thread}/settings" => json!({"temperature": 0.5}),
                "POST /api/session" => json!({"session": entries()}),
                "PUT /api/fields/{field}" => json!({"value": "a field"}),
                _ => json!({}),
            },
        }
    }
}
