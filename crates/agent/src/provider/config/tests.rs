//! Tests of resolving providers, keys and models, and of the errors if something is missing.

use std::path::Path;

use super::*;

fn providers(text: &str) -> BTreeMap<String, ProviderConfig> {
    serde_json::from_str(text).expect("a configuration")
}

fn resolved(
    name: &str,
    model: Option<&str>,
    config: &str,
    environment: &[(&str, &str)],
) -> Result<ResolvedProvider, ResolveError> {
    let variable = |wanted: &str| {
        environment.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
    };
    let key_file = |path: &Path| match path.to_str() {
        Some("/key") => Ok(Secret::new("from-the-file")),
        _ => Err(KeyFileError::Open { path: path.to_owned() }),
    };
    let key_command = |command: &str| Ok(Secret::new(&format!("by {command}")));
    resolve(
        name,
        model,
        &providers(config),
        &ProviderEnvironment {
            variable: &variable,
            key_file: &key_file,
            key_command: &key_command,
            stored_key: &|name| Ok((name == "gemini").then(|| Secret::new("stored"))),
            stored_names: &|| variable("STORED").into_iter().collect(),
        },
    )
}

#[test]
fn a_provider_name_resolves_to_an_endpoint() {
    let check =
        |name: &str, model: Option<&str>, config: &str, environment: &[(&str, &str)], expected: &str| {
            let ResolvedProvider::Remote(endpoint) =
                resolved(name, model, config, environment).expect("an endpoint")
            else {
                panic!("{name} is not offline")
            };
            let key = endpoint.key.as_ref().map_or("none", Secret::reveal);
            let found = format!("{} {} {} {key}", endpoint.wire.name(), endpoint.base_url, endpoint.model);
            assert_eq!(found, expected);
        };
    let anthropic = [("ANTHROPIC_API_KEY", "sk-a")];
    check("anthropic", None, "{}", &anthropic, "anthropic https://api.anthropic.com claude-sonnet-5-5 sk-a");
    check("anthropic", Some("x"), "{}", &anthropic, "anthropic https://api.anthropic.com x sk-a");
    check(
        "anthropic",
        Some(" "),
        r#"{"anthropic":{"models":["own"],"key":"direct","key_file":"/key"}}"#,
        &anthropic,
        "anthropic https://api.anthropic.com own direct",
    );
    check(
        "anthropic",
        None,
        r#"{"anthropic":{"key_file":"/key","key_env":"OTHER"}}"#,
        &anthropic,
        "anthropic https://api.anthropic.com claude-sonnet-5-5 from-the-file",
    );
    check(
        "gemini",
        None,
        "{}",
        &[("GEMINI_API_KEY", " "), ("GOOGLE_API_KEY", "g")],
        "gemini https://generativelanguage.googleapis.com/v1beta gemini-3.8-flash g",
    );
    check("ollama", Some("qwen3"), "{}", &anthropic, "chat http://localhost:11434/v1 qwen3 none");
    check("llama.cpp", None, "{}", &[], "chat http://localhost:8080/v1 default none");
    check(
        "mine",
        None,
        r#"{"mine":{"wire":"responses","base_url":"https://a.test","models":["m"],"key_env":"MINE"}}"#,
        &[("MINE", "k")],
        "responses https://a.test m k",
    );
    assert!(matches!(resolved("offline", None, "{}", &[]), Ok(ResolvedProvider::Offline)));
}

#[test]
fn errors_name_the_missing_setting() {
    let check = |name: &str, config: &str, words: &str| {
        let error = resolved(name, Some("m"), config, &[("OPENAI_API_KEY", "k")])
            .expect_err("not usable")
            .to_string();
        assert!(error.contains(words), "{error}");
    };
    check("anthropic", "{}", "set ANTHROPIC_API_KEY, or providers.anthropic.key_file");
    check("nobody", "{}", "offline");
    check("nobody", r#"{"somebody":{}}"#, "somebody");
    check("mine", r#"{"mine":{}}"#, "providers.mine.wire");
    check("mine", r#"{"mine":{"wire":"smoke"}}"#, "one of anthropic, chat");
    check("mine", r#"{"mine":{"wire":"chat"}}"#, "providers.mine.base_url");
    check("mine", r#"{"mine":{"wire":"chat","base_url":"https://a.test","key_env":"NONE"}}"#, "set NONE");
    check("openai", r#"{"openai":{"key_file":"/open"}}"#, "chmod 600 /open");
    check("openai", r#"{"openai":{"base_url":"http://a.test"}}"#, "unencrypted");
    // A configured variable replaces the others, so that no other key is sent to a custom address.
    check("openai", r#"{"openai":{"key_env":"OTHER"}}"#, "set OTHER");
    let error = resolved("openrouter", None, "{}", &[("OPENROUTER_API_KEY", "k")]).expect_err("no model");
    assert!(error.to_string().contains("providers.openrouter.models"), "{error}");
}

#[test]
fn a_custom_provider_never_gets_the_key_of_another_one() {
    let config = r#"{"mine":{"wire":"chat","base_url":"https://a.test","models":["m"]}}"#;
    let environment = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let Ok(ResolvedProvider::Remote(endpoint)) = resolved("mine", None, config, &environment) else {
        panic!("an endpoint")
    };
    assert_eq!(endpoint.key, None);
}

#[test]
fn configured_dialect_options_override_the_defaults() {
    let config =
        r#"{"openai":{"sampling":true,"images":false,"stall_seconds":9,"headers":{"X-Org":"secret-org"}}}"#;
    let Ok(ResolvedProvider::Remote(endpoint)) = resolved("openai", None, config, &[("OPENAI_API_KEY", "k")])
    else {
        panic!("an endpoint")
    };
    assert!(endpoint.dialect.sampling && !endpoint.dialect.images && endpoint.dialect.completion_tokens);
    assert_eq!(endpoint.timeouts.stall, Duration::from_secs(9));
    assert!(!format!("{:?}", providers(config)).contains("secret-org"));
    assert!(serde_json::from_str::<ProviderConfig>(r#"{"bas_url":"x"}"#).is_err());
}

#[test]
fn the_provider_comes_from_thread_configuration_or_keys() {
    let check = |thread: Option<&str>, configured: Option<&str>, keys: &[&str], expected: &str| {
        let variable = |name: &str| keys.contains(&name).then(|| "key".to_owned());
        let key_file = |path: &Path| Err(KeyFileError::Open { path: path.to_owned() });
        let key_command = |_: &str| Ok(Secret::new("never"));
        let chosen = choose(
            thread,
            configured,
            &ProviderEnvironment {
                variable: &variable,
                key_file: &key_file,
                key_command: &key_command,
                stored_key: &|name| Ok((name == "gemini").then(|| Secret::new("stored"))),
                stored_names: &|| variable("STORED").into_iter().collect(),
            },
        );
        assert_eq!(chosen.name(), expected, "{keys:?}");
    };
    check(Some("a"), Some("b"), &["OPENAI_API_KEY"], "a");
    check(Some(" "), Some("b"), &[], "b");
    check(None, Some("b"), &[], "b");
    check(None, None, &["OPENAI_API_KEY"], "openai");
    check(None, None, &["GEMINI_API_KEY", "GOOGLE_API_KEY"], "gemini");
    check(None, None, &["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "offline");
    check(None, None, &["HOME"], "offline");
}

#[test]
fn models_are_listed_once_with_the_default_first() {
    let config = providers(r#"{"deepseek":{"models":["own","deepseek-v4-pro"]}}"#);
    assert_eq!(models("deepseek", &config), ["own", "deepseek-v4-pro", "deepseek-v4-flash"]);
    assert_eq!(models("nobody", &config), Vec::<String>::new());
}

#[test]
fn a_stored_key_is_used_if_no_other_source_has_one() {
    let check = |name: &str, config: &str, environment: &[(&str, &str)], expected: &str| {
        let found = match resolved(name, Some("m"), config, environment) {
            Ok(ResolvedProvider::Remote(endpoint)) => {
                endpoint.key.as_ref().map_or("none", Secret::reveal).to_owned()
            }
            Ok(ResolvedProvider::Offline) => "offline".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{name} {environment:?}: {found}");
    };
    check("gemini", "{}", &[("STORED", "gemini")], "stored");
    check("gemini", "{}", &[("STORED", "gemini"), ("GEMINI_API_KEY", "of-environment")], "of-environment");
    check("gemini", r#"{"gemini":{"key":"direct"}}"#, &[("STORED", "gemini")], "direct");
    check("gemini", "{}", &[("STORED", "openai")], "retake keys set gemini");
    let around = |stored: &'static str| {
        let names = move || vec![stored.to_owned()];
        let key_file = |path: &Path| Err(KeyFileError::Open { path: path.to_owned() });
        let around = ProviderEnvironment {
            variable: &|_| None,
            key_file: &key_file,
            key_command: &|_| Ok(Secret::new("never")),
            stored_key: &|_| Ok(None),
            stored_names: &names,
        };
        let status = |name: &str| key_status(name, &BTreeMap::new(), &around);
        (choose(None, None, &around).name().to_owned(), status(stored), status("anthropic"), status("ollama"))
    };
    let expected = ("gemini".to_owned(), KeyStatus::Stored, KeyStatus::Missing, KeyStatus::NotNeeded);
    assert_eq!(around("gemini"), expected);
}
