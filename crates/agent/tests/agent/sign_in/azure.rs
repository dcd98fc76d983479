//! Azure: a key in a separate header, or a token from a command.

use retake_agent::provider::{Fault, Wire};
use retake_testing::fault_server::{FaultServer, Script, events, text_answer};
use serde_json::json;

use super::{call, endpoint, text};

#[test]
fn each_azure_sign_in_has_its_address_and_header() {
    let check = |wire: Wire, config: serde_json::Value, model: &str, path: &str, header: (&str, &str)| {
        let server =
            FaultServer::with(vec![Script::events(events(wire, &text_answer("hello")))]).expect("a port");
        let mut config = config;
        if let Some(rest) = config["base_url"].as_str() {
            config["base_url"] = format!("{}{rest}", server.url()).into();
        }
        let url = server.url();
        let environment = [("AZURE_OPENAI_ENDPOINT", url.as_str()), ("AZURE_OPENAI_API_KEY", "azure-key-1")];
        let endpoint = endpoint("azure", model, &config, &environment).expect("an endpoint");
        assert_eq!(text(&call(&endpoint).expect("an answer")), "hello");
        let request = &server.requests()[0];
        assert_eq!(request.path, path);
        assert_eq!(request.header(header.0), Some(header.1), "{path}");
        assert!(header.0 == "authorization" || request.header("authorization").is_none(), "{path}");
    };
    let key = ("api-key", "azure-key-1");
    check(Wire::Responses, json!({}), "gpt", "/openai/v1/responses", key);
    check(Wire::Chat, json!({"wire": "chat"}), "gpt", "/openai/v1/chat/completions", key);
    check(
        Wire::Chat,
        json!({"wire": "chat", "api_version": "2024-10-21", "base_url": "/"}),
        "my gpt",
        "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        key,
    );
    check(
        Wire::Responses,
        json!({"api_version": "preview", "base_url": "/openai/v1/"}),
        "gpt",
        "/openai/v1/responses?api-version=preview",
        key,
    );
    check(
        Wire::Anthropic,
        json!({}),
        "claude-sonnet-4-5",
        "/anthropic/v1/messages",
        ("x-api-key", "azure-key-1"),
    );
    let token = json!({"token_command": "printf entra-token-1"});
    check(Wire::Responses, token, "gpt", "/openai/v1/responses", ("authorization", "Bearer entra-token-1"));
}

#[test]
fn a_token_is_requested_once_and_again_after_a_refusal() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let command = format!("echo x >> {0}; printf 'token-%s' $(wc -l < {0})", count.display());
    let good = Script::events(events(Wire::Responses, &text_answer("hello")));
    let refused = Script::status(401, r#"{"error":{"message":"token-1 has expired"}}"#);
    let server = FaultServer::with(vec![good.clone(), good.clone(), refused, good]).expect("a port");
    let config = json!({"base_url": server.url(), "token_command": command});
    for attempt in 0..4 {
        // Each turn has a separate endpoint.
        let endpoint = endpoint("azure", "gpt", &config, &[]).expect("an endpoint");
        match call(&endpoint) {
            Ok(answer) => assert_eq!(text(&answer), "hello"),
            Err(error) => {
                assert_eq!((attempt, error.fault), (2, Fault::Key));
                assert!(
                    error.message.contains("token_command") && !error.message.contains("token-1"),
                    "{error}"
                );
            }
        }
    }
    let sent: Vec<String> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(sent, ["Bearer token-1", "Bearer token-1", "Bearer token-1", "Bearer token-2"]);
}

#[test]
fn errors_name_the_missing_azure_setting() {
    let refused = |config: serde_json::Value, environment: &[(&str, &str)]| {
        endpoint("azure", "gpt", &config, environment).expect_err("not usable")
    };
    assert!(refused(json!({}), &[("AZURE_OPENAI_API_KEY", "k")]).contains("AZURE_OPENAI_ENDPOINT"));
    let hint = refused(json!({"base_url": "https://a.openai.azure.com"}), &[]);
    assert!(hint.contains("AZURE_OPENAI_API_KEY") && hint.contains("retake keys set azure"), "{hint}");
    assert!(refused(json!({"platform": "cloud"}), &[]).contains("azure, bedrock, vertex"));
    let config = json!({"base_url": "http://a.test", "token_command": "printf t"});
    assert!(refused(config, &[]).contains("unencrypted"));
    let failing = json!({"base_url": "http://127.0.0.1:9", "token_command": "exit 3"});
    let error = call(&endpoint("azure", "gpt", &failing, &[]).expect("an endpoint")).expect_err("no token");
    assert!(error.fault == Fault::Key && error.message.contains("exit 3"), "{error}");
}
