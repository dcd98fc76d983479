//! `retake config`.

use std::fs;

use crate::tools::support::{User, command_output};

const WRITTEN: &str = "\
# Kept for the auditors.
[output]
pager = false   # the terminal scrolls well enough

[storage]
# Ask before raising this.
budget = \"5 GB\"
";

fn with_file(text: &str) -> User {
    let user = User::new();
    fs::create_dir(user.path("configuration")).expect("a new folder");
    user.write("configuration/config.toml", text.as_bytes());
    user
}

fn file(user: &User) -> String {
    fs::read_to_string(user.path("configuration/config.toml")).expect("a configuration file")
}

#[test]
fn setting_and_unsetting_restores_the_file() {
    let user = with_file(WRITTEN);
    user.run(&["config", "set", "storage.budget", "7 GB"]);
    assert_eq!(file(&user), WRITTEN.replace("5 GB", "7 GB"));
    user.run(&["config", "set", "output.entries", "12"]);
    assert_eq!(user.run(&["config", "get", "output.entries"]), "12\n");
    user.run(&["config", "unset", "output.entries"]);
    user.run(&["config", "set", "storage.budget", "5 GB"]);
    assert_eq!(file(&user), WRITTEN);
}

#[test]
fn invalid_values_and_unknown_keys_are_refused_and_nothing_is_written() {
    let user = with_file(WRITTEN);
    for (key, value) in [
        ("output.pager", "perhaps"),
        ("output.entries", "-3"),
        ("output.entries", "1e3"),
        ("history.depth", "99999999999999999999"),
        ("storage.budget", "many"),
    ] {
        user.refused(2, &["config", "set", key, value]);
    }
    let error = user.refused(2, &["config", "set", "storage.bugdet", "1"]);
    assert!(error.contains("storage.budget"), "{error}");
    let error = user.refused(2, &["config", "get", "pager", "--json"]);
    assert!(error.contains(r#""suggestions":["output.pager"]"#), "{error}");
    user.refused(2, &["config", "get", "storage.budget.more"]);
    assert_eq!(file(&user), WRITTEN);
}

#[test]
fn values_come_from_environment_file_or_default() {
    let user = with_file(WRITTEN);
    let answer = user.json(&["config"]);
    let key = |name: &str| {
        let keys = answer["keys"].as_array().expect("keys");
        keys.iter().find(|key| key["key"] == name).expect("a key").clone()
    };
    assert_eq!(key("storage.folder")["origin"], "environment");
    assert_eq!(key("storage.budget")["origin"], "file");
    assert_eq!(key("storage.budget")["value"], "5 GB");
    assert_eq!(key("output.pager")["value"], false);
    assert_eq!(key("output.pager")["default"], true);
    assert_eq!(key("history.depth")["origin"], "default");
    assert_eq!(key("history.depth")["value"], 0);
    let path = user.path("configuration/config.toml");
    assert_eq!(user.run(&["config", "path"]), format!("{}\n", path.display()));
}

#[test]
fn a_broken_configuration_stops_other_commands_and_can_be_fixed() {
    let user = with_file("[storage]\nbugdet = 5\n");
    let error = user.refused(2, &["thread", "list"]);
    assert!(error.contains("bugdet"), "{error}");
    user.refused(2, &["config", "set", "output.pager", "no"]);
    user.run(&["config", "unset", "storage.bugdet"]);
    user.run(&["thread", "list"]);
}

#[test]
fn the_first_setting_creates_the_file_and_its_folder() {
    let user = User::new();
    user.run(&["config", "set", "storage.folder", "here"]);
    assert_eq!(file(&user), format!("[storage]\nfolder = \"{}\"\n", user.project().join("here").display()));
    let left: Vec<_> = fs::read_dir(user.path("configuration")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing but the file: {left:?}");
}

#[test]
fn keys_of_providers_are_set_and_secrets_are_not_printed() {
    let user = with_file(WRITTEN);
    user.run(&["config", "set", "providers.local.base_url", "http://localhost:8000/v1"]);
    assert_eq!(user.run(&["config", "get", "providers.local.base_url"]), "http://localhost:8000/v1\n");
    let printed = user.run(&["config", "set", "providers.local.key", "sk-secret"]);
    assert!(!printed.contains("sk-secret"), "{printed}");
    assert!(
        file(&user)
            .ends_with("[providers.local]\nbase_url = \"http://localhost:8000/v1\"\nkey = \"sk-secret\"\n")
    );
    let error = user.refused(2, &["config", "set", "providers.local.base-url", "x"]);
    assert!(error.contains("base-url"), "{error}");
    user.run(&["config", "unset", "providers.local.key"]);
    user.refused(3, &["config", "get", "providers.local.key"]);
}

#[test]
fn an_edited_configuration_is_checked_before_it_replaces_the_file() {
    for (script, code, expected) in [
        (
            "echo '[history]' >> \"$1\"; echo 'depth = 7' >> \"$1\"",
            0,
            format!("{WRITTEN}[history]\ndepth = 7\n"),
        ),
        ("echo 'nonsense = 7' >> \"$1\"", 2, WRITTEN.to_owned()),
        ("exit 1", 1, WRITTEN.to_owned()),
        ("true", 0, WRITTEN.to_owned()),
        ("echo >> \"$1\"; echo '# by another' >> \"$RETAKE_CONFIG\"", 5, format!("{WRITTEN}# by another\n")),
    ] {
        let user = with_file(WRITTEN);
        let editor = user.path("editor");
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).expect("our folder");
        fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("our file");
        let run = user.command().args(["config", "edit"]).env("EDITOR", &editor).output();
        let output = command_output(run.expect("the program starts"));
        assert_eq!(output.code, code, "{script}: {output:?}");
        assert_eq!(file(&user), expected, "{script}");
        if code == 2 {
            let saved = output.err.split("saved to ").nth(1).expect("a path").trim().to_owned();
            assert!(fs::read_to_string(&saved).expect("the text").contains("nonsense"));
            fs::remove_file(saved).expect("our file");
        }
    }
}

#[test]
fn every_key_is_documented() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md"))
        .expect("a page about the configuration");
    let answer = User::new().json(&["config"]);
    for key in answer["keys"].as_array().expect("keys") {
        let name = key["key"].as_str().expect("a name");
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` | ")));
        let row = row.unwrap_or_else(|| panic!("{name} is not documented"));
        assert!(row.contains(key["type"].as_str().expect("words")), "{row}");
        if let Some(default) = key["default"].as_i64() {
            assert!(row.contains(&format!("| {default} |")), "{row}");
        }
    }
}
