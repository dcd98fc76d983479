//! `--attach`: PDF documents go to wires that take them, and are refused for others before anything is changed.

use retake_agent::provider::Wire;
use retake_testing::fault_server::{FaultServer, Script, events, text_answer};
use serde_json::Value;

use super::support::User;

const DOCUMENT: &[u8] = b"%PDF-1.7\n1 0 obj\n";

fn user(server: &FaultServer, wire: &str) -> User {
    let user = User::new();
    let config = format!(
        "[providers.mine]\nwire = \"{wire}\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n[agent]\nprovider = \"mine\"\n",
        server.url()
    );
    std::fs::create_dir_all(user.path("configuration")).expect("a folder");
    user.write("configuration/config.toml", config.as_bytes());
    user.write("project/spec.pdf", DOCUMENT);
    user
}

#[test]
fn a_document_is_sent_and_stored_with_the_entry() {
    for (wire, name, pointer) in [
        (Wire::Anthropic, "anthropic", "/messages/0/content/1/source/data"),
        (Wire::Responses, "responses", "/input/0/content/1/file_data"),
        (Wire::Gemini, "gemini", "/contents/0/parts/1/inlineData/data"),
    ] {
        let script = Script::events(events(wire, &text_answer("read")));
        let server = FaultServer::with(vec![script]).expect("a port");
        let user = user(&server, name);
        assert!(user.run(&["run", "--attach", "spec.pdf", "What is in it?"]).contains("read"));
        let body: Value = serde_json::from_str(&server.requests()[0].body).expect("JSON");
        let data = body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert!(data.ends_with("JVBERi0xLjcKMSAwIG9iago="), "{name}: {body}");
        let shown = user.json(&["thread", "show"]).to_string();
        assert!(shown.contains("application/pdf"), "{shown}");
    }
}

#[test]
fn a_document_is_refused_before_any_change_if_the_wire_has_none() {
    let server = FaultServer::with(vec![Script::status(500, "")]).expect("a port");
    let user = user(&server, "chat");
    let refused = user.refused(5, &["run", "--attach", "spec.pdf", "What is in it?"]);
    assert!(
        refused.contains("mine/m does not accept PDF documents") && refused.contains("--model"),
        "{refused}"
    );
    assert!(server.requests().is_empty());
    assert_eq!(user.json(&["thread", "list"])["threads"].as_array().map(Vec::len), Some(0));
    user.run(&["thread", "new", "drafted"]);
    user.run(&["draft", "attach", "spec.pdf"]);
    let refused = user.refused(5, &["run", "--draft"]);
    assert!(refused.contains("does not accept PDF documents"), "{refused}");
    user.write("project/notes.txt", b"plain");
    assert!(user.refused(2, &["run", "--attach", "notes.txt", "x"]).contains("nor a PDF document"));
}
