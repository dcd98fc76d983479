//! Live models: lists are read in every wire format, a failing provider does not affect others, no secret is
//! shown.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use retake_agent::Setup;
use retake_agent::provider::config::{KeyFileError, ProviderEnvironment, run_key_command};
use retake_agent::provider::live::LiveCache;
use retake_agent::setup::Models;
use retake_testing::fault_server::{FaultServer, Script, ScriptStep};
use serde_json::json;

const KEY: &str = "sk-very-secret-key";

fn server() -> FaultServer {
    FaultServer::start(|request, _| match request.path.as_str() {
        "/v1/models?limit=1000" if request.header("x-api-key") == Some(KEY) => {
            Script::status(200, r#"{"data":[{"id":"claude-b"},{"id":"claude-a"},{"id":"claude-b"}]}"#)
        }
        "/chat/models" if request.header("authorization") == Some(&format!("Bearer {KEY}")) => {
            Script::status(
                200,
                r#"{"object":"list","data":[{"id":"gpt-x"},{"id":"evil\u001b[31m"},{"id":7}]}"#,
            )
        }
        "/gem/models?pageSize=1000" if request.header("x-goog-api-key") == Some(KEY) => {
            let models = json!({"models": [
                {"name": "models/gemini-x", "supportedGenerationMethods": ["generateContent"]},
                {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
            ]});
            Script::status(200, &models.to_string())
        }
        "/refused/models" => Script::status(401, &format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#)),
        "/page/models" => Script::status(200, "<html>"),
        "/hangs/models" => Script::status(200, "{").with_fault_after(1, ScriptStep::Stall),
        path => Script::status(404, path),
    })
    .expect("a port")
}

fn setup(server: &FaultServer) -> Setup {
    let provider = |wire: &str, path: &str| {
        let config = json!({"wire": wire, "base_url": format!("{}{path}", server.url()), "key": KEY, "models": ["own"]});
        serde_json::from_value(config).expect("a configuration of a provider")
    };
    let providers = BTreeMap::from([
        ("a".to_owned(), provider("anthropic", "")),
        ("c".to_owned(), provider("chat", "/chat")),
        ("g".to_owned(), provider("gemini", "/gem/")),
        ("hangs".to_owned(), provider("chat", "/hangs")),
        ("page".to_owned(), provider("chat", "/page")),
        ("refused".to_owned(), provider("responses", "/refused")),
    ]);
    Setup { providers, ..Setup::default() }
}

fn refreshed(setup: &Setup, cache: &mut LiveCache, only: Option<&str>) -> Models {
    let around = ProviderEnvironment {
        variable: &|_| None,
        key_file: &|path: &Path| Err(KeyFileError::Open { path: path.to_owned() }),
        key_command: &run_key_command,
        stored_key: &|_| Ok(None),
        stored_names: &Vec::new,
    };
    setup.refreshed_models(&around, cache, only, Duration::from_millis(700))
}

fn shown(models: &Models, name: &str) -> String {
    let listed = models.providers.iter().find(|listed| listed.name == name).expect("it is listed");
    let live = listed.live.as_ref().map(|live| live.models.join(" ")).unwrap_or_default();
    format!("{live}|{}", listed.refresh_error.as_deref().unwrap_or_default())
}

#[test]
fn models_of_all_wires_are_listed_concurrently() {
    let server = server();
    let folder = tempfile::tempdir().expect("a folder");
    let mut cache = LiveCache::read(folder.path());
    let began = Instant::now();
    let models = refreshed(&setup(&server), &mut cache, None);
    // The local servers of known providers are queried too; they do not run, so that the query fails
    // immediately.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(shown(&models, "a"), "claude-a claude-b|");
    assert_eq!(shown(&models, "c"), "gpt-x|");
    assert_eq!(shown(&models, "g"), "gemini-x|");
    for (name, words) in [("refused", "[key]"), ("page", "not a list"), ("hangs", "did not answer")] {
        let shown = shown(&models, name);
        assert!(shown.starts_with('|') && shown.contains(words) && !shown.contains(KEY), "{name}: {shown}");
    }
    cache.write().expect("written");
    let read = LiveCache::read(folder.path());
    assert_eq!(read.get("a").expect("cached").models, ["claude-a", "claude-b"]);
    assert_eq!(read.get("refused"), None);
    let text = std::fs::read_to_string(folder.path().join("models.json")).expect("a file");
    assert!(!text.contains(KEY));
}

#[test]
fn a_refresh_asks_only_the_named_provider_and_a_failure_keeps_the_old_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cache = LiveCache::read(folder.path());
    let first = server();
    let setup = setup(&first);
    refreshed(&setup, &mut cache, Some("c"));
    assert_eq!(first.requests().len(), 1);
    drop(first);
    let models = refreshed(&setup, &mut cache, Some("c"));
    let shown = shown(&models, "c");
    assert!(shown.starts_with("gpt-x|") && shown.len() > "gpt-x|".len(), "{shown}");
    std::fs::write(folder.path().join("models.json"), "broken").expect("written");
    assert_eq!(LiveCache::read(folder.path()).get("c"), None);
}
