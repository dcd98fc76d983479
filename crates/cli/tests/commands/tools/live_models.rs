//! `retake models --refresh`: asks, keeps the answer, and shows it without a network.

use retake_testing::fault_server::{FaultServer, Script};

use super::support::User;

#[test]
fn a_refresh_is_kept_and_shown_offline() {
    let user = User::new();
    let ids: Vec<String> = (0..20).map(|n| format!(r#"{{"id":"model-{n:02}"}}"#)).collect();
    let list = format!(r#"{{"data":[{}]}}"#, ids.join(","));
    let server = FaultServer::with(vec![Script::status(200, &list)]).expect("a port");
    let config = format!(
        "[providers.mine]\nwire = \"chat\"\nbase_url = \"{}/v1\"\nmodels = [\"model-03\"]\n",
        server.url()
    );
    std::fs::create_dir_all(user.path("configuration")).expect("a folder");
    user.write("configuration/config.toml", config.as_bytes());
    let before = user.json(&["models", "mine"]);
    assert_eq!(before["providers"][0]["live"], serde_json::Value::Null);
    assert!(server.requests().is_empty(), "nothing is sent without --refresh");
    let refreshed = user.json(&["models", "--refresh", "mine"]);
    assert_eq!(refreshed["providers"][0]["live"]["models"].as_array().map(Vec::len), Some(20), "{refreshed}");
    assert_eq!(server.requests()[0].path, "/v1/models");
    drop(server);
    user.run(&["thread", "new", "after a refresh in an empty home"]);
    assert!(user.run(&["verify"]).len() > 1);
    let text = user.run(&["models", "mine"]);
    assert!(text.contains("20 models") && text.contains("model-00") && text.contains("7 more"), "{text}");
    assert!(user.run(&["models", "mine", "--all"]).contains("model-19"));
    let failed = user.json(&["models", "--refresh", "mine"]);
    assert!(
        failed["providers"][0]["refresh_error"]
            .as_str()
            .is_some_and(|error| error.contains("cannot be reached"))
    );
    assert_eq!(failed["providers"][0]["live"], refreshed["providers"][0]["live"]);
    assert!(user.refused(3, &["models", "nobody"]).contains("[providers.nobody]"));
}
