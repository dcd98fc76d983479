//! Drafts with pictures, and small changes to a thread.

use std::collections::BTreeMap;

use retake_agent::Setup;
use serde_json::{Value, json};

use crate::world::World;

const PICTURE: &str = "R0lGODlhIGE=";
const DOCUMENT: &str = "JVBERi0xLjcKMSAwIG9iago=";

#[test]
fn pictures_are_attached_to_a_draft_sent_and_detached() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Pictures");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    let pictures = || client.get(&at("draft")).done()["pictures"].as_array().expect("a list").clone();

    client.post(&at("draft/pictures"), &json!({"pictures": ["no base64"]})).refused(422, "refused");
    client.post(&at("draft/pictures"), &json!({"pictures": [PICTURE, "dGV4dA=="]})).refused(422, "refused");
    assert_eq!(pictures(), Vec::<Value>::new(), "all or none");
    client.post(&at("draft/pictures"), &json!({"pictures": [PICTURE]})).done();
    client.put(&at("draft"), &json!({"text": "look"})).done();
    let [picture] = pictures().try_into().expect("one, which typing leaves alone");
    assert_eq!(picture["media"], "image/gif");
    let name = picture["picture"].as_str().expect("a name").to_owned();
    assert_eq!(client.get(&at(&format!("pictures/{name}"))).done()["base64"], PICTURE);

    client.post(&at("send-draft"), &json!({})).done();
    let sent = &client.entries(&thread)[0]["entry"];
    assert_eq!((&sent["content"], &sent["blocks"][1]["blob"]), (&json!("look"), &json!(name)));
    assert_eq!(pictures(), Vec::<Value>::new());
    client.post(&at("undo"), &json!({})).done();
    assert_eq!(pictures().len(), 1);

    client.delete(&at(&format!("draft/pictures/{name}"))).done();
    client.delete(&at(&format!("draft/pictures/{name}"))).refused(404, "not_found");
    client.post(&at("undo"), &json!({})).done();
    client.delete(&at("draft")).done();
    let draft = client.get(&at("draft")).done();
    assert_eq!((&draft["text"], &draft["pictures"]), (&json!(""), &json!([])));
    client.post(&at("undo"), &json!({})).done();
    assert_eq!(
        client.get(&at("draft")).done()["text"],
        "look",
        "with the picture, and not without the words"
    );
}

#[test]
fn a_document_is_attached_like_a_picture_and_refused_for_models_without_support() {
    let world = World::new();
    let provider = json!({"wire": "chat", "base_url": "http://127.0.0.1:9", "models": ["m"]});
    let provider = serde_json::from_value(provider).expect("a configuration of a provider");
    let providers = BTreeMap::from([("mine".to_owned(), provider)]);
    let server = world.serve_with(Setup { providers, ..Setup::default() });
    let client = server.client();
    let thread = client.thread("Documents");
    let at = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    client.post(&at("draft/pictures"), &json!({"pictures": [DOCUMENT]})).done();
    assert_eq!(client.get(&at("draft")).done()["pictures"][0]["media"], "application/pdf");
    let turn = json!({"prompt": "What is in it?", "pictures": [DOCUMENT], "provider": "mine"});
    let refused = client.post(&at("turns"), &turn).refused(422, "refused");
    assert!(refused.to_string().contains("does not accept PDF documents"), "{refused}");
    assert_eq!(client.entries(&thread), Vec::<Value>::new(), "nothing was begun");
}

#[test]
fn models_are_listed_with_key_status_and_the_last_refresh() {
    let world = World::new();
    let server = world.serve();
    let cached = json!({"anthropic": {"fetched": "2026-11-18T13:00:00.000Z", "models": ["claude-live"]}});
    std::fs::write(world.store().join("models.json"), cached.to_string()).expect("the folder is ours");
    let models = server.client().get("/v1/models").done();
    let listed = |name: &str| {
        let providers = models["providers"].as_array().expect("a list");
        providers.iter().find(|listed| listed["name"] == name).expect("it is known").clone()
    };
    assert_eq!(
        (&listed("anthropic")["key"], &listed("ollama")["key"]),
        (&json!("missing"), &json!("not_needed"))
    );
    assert_eq!(listed("anthropic")["live"], cached["anthropic"]);
    assert_eq!(listed("gemini")["live"], Value::Null);
}

#[test]
fn null_resets_a_setting() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Settings");
    let settings = format!("/v1/threads/{thread}/settings");
    let set = |body: &Value| client.request("PATCH", &settings).json(body).send().done();
    let usual = client.get(&settings).done();
    set(&json!({"temperature": 0.5, "max_tokens": 7, "model": "m", "project_system_prompt": "Be brief."}));
    assert_ne!(client.get(&settings).done(), usual);
    set(&json!({"temperature": null, "max_tokens": null, "model": null, "project_system_prompt": null}));
    assert_eq!(client.get(&settings).done(), usual);
}

#[test]
fn a_new_thread_can_become_the_current_one() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let made = |body: &Value| client.post("/v1/threads", body).done()["thread"].clone();
    let first = made(&json!({"current": true}));
    made(&json!({}));
    assert_eq!(client.get("/api/fields/thread").done()["value"], first);
}

#[test]
fn an_invalid_client_name_is_refused() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Names");
    let pin = |name: &str| {
        let path = format!("/v1/threads/{thread}/pinned");
        client.request("PUT", &path).header("Retake-Client", name).json(&json!({"pinned": true})).send()
    };
    for bad in ["", &"n".repeat(61)] {
        pin(bad).refused(400, "invalid_request");
    }
    pin("an editor").done();
    let history = client.get(&format!("/v1/threads/{thread}/history")).done();
    assert_eq!(history["items"][0]["actor"]["name"], "an editor", "{history}");
}

#[test]
fn a_setting_of_the_wrong_type_is_refused() {
    let world = World::new();
    let server = world.serve();
    let client = server.client();
    let thread = client.thread("Settings");
    let settings = format!("/v1/threads/{thread}/settings");
    for body in [
        json!({"model": 7}),
        json!({"provider": true}),
        json!({"temperature": "0.5"}),
        json!({"auto_add_history": "true"}),
    ] {
        let before = client.get(&settings).done();
        client.request("PATCH", &settings).json(&body).send().refused(422, "refused");
        assert_eq!(client.get(&settings).done(), before, "{body}");
    }
}
