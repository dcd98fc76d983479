//! `retake keys`: stored, listed, used and removed, and never shown.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use retake_agent::provider::Wire;
use retake_testing::fault_server::{FaultServer, Script, events, text_answer};

use super::support::{CommandOutput, User, command_output, everything_below};

const KEY: &str = "sk-stored-and-never-shown-1";

fn piped(user: &User, arguments: &[&str], input: &str) -> CommandOutput {
    let mut command = user.command();
    command.env("RETAKE_KEYRING", "off").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    command_output(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_key_is_stored_listed_and_removed_and_never_shown() {
    let user = User::new();
    let set = piped(&user, &["keys", "set", "anthropic", "--json"], &format!("{KEY}\n"));
    assert_eq!(set.code, 0, "{set:?}");
    assert!(
        set.out.contains("\"location\": \"file\"") || set.out.contains("\"location\":\"file\""),
        "{set:?}"
    );
    let file = user.path("configuration/retake-keys.json");
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let listed = user.json(&["keys"]);
    assert_eq!(listed, serde_json::json!({"keys": [{"provider": "anthropic", "location": "file"}]}));
    let models = user.json(&["models", "anthropic"]);
    assert_eq!(models["providers"][0]["key"], "stored", "{models}");
    assert_eq!(models["providers"][0]["ready"], true, "{models}");
    assert_eq!(models["default"]["provider"], "anthropic", "{models}");
    for output in [piped(&user, &["keys"], ""), piped(&user, &["models"], ""), set] {
        assert!(!output.out.contains(KEY) && !output.err.contains(KEY), "{output:?}");
    }
    let removed = user.run(&["keys", "remove", "anthropic"]);
    assert!(removed.contains("retake-keys.json"), "{removed}");
    assert!(!std::fs::read_to_string(&file).expect("text").contains(KEY));
    assert!(user.refused(3, &["keys", "remove", "anthropic"]).contains("no key is stored"));
}

#[test]
fn invalid_keys_and_unknown_providers_are_refused() {
    let user = User::new();
    for (provider, input, code, words) in [
        ("nobody", KEY, 3, "retake models"),
        ("offline", KEY, 2, "needs no key"),
        ("anthropic", "", 2, "no key was given"),
        ("anthropic", "two words", 2, "one line of visible"),
    ] {
        let output = piped(&user, &["keys", "set", provider], input);
        assert!(output.code == code && output.err.contains(words), "{output:?}");
        assert!(!user.path("configuration/retake-keys.json").exists());
    }
}

#[test]
fn a_turn_uses_a_stored_key_and_copies_it_nowhere() {
    let user = User::new();
    let server =
        FaultServer::with(vec![Script::events(events(Wire::Chat, &text_answer("hello")))]).expect("a port");
    let config = format!(
        "[providers.mine]\nwire = \"chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nkey_env = \"MINE_KEY\"\n",
        server.url()
    );
    std::fs::create_dir_all(user.path("configuration")).expect("a folder");
    user.write("configuration/config.toml", config.as_bytes());
    assert!(user.refused(5, &["run", "--provider", "mine", "hi"]).contains("retake keys set mine"));
    let set = piped(&user, &["keys", "set", "mine"], KEY);
    assert_eq!(set.code, 0, "{set:?}");
    let answered = user.run(&["run", "--provider", "mine", "hi"]);
    assert!(answered.contains("hello"), "{answered}");
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    for path in everything_below(user.folder.path()).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).expect("a readable file");
        let holds = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
        assert_eq!(holds, path.ends_with("configuration/retake-keys.json"), "{}", path.display());
    }
}

#[test]
fn a_key_file_inside_a_project_is_neither_captured_nor_read_by_tools() {
    let user = User::new();
    let inside = |arguments: &[&str]| {
        let mut command = user.command();
        let config = user.project().join("dotfiles/config.toml");
        command.env("RETAKE_KEYRING", "off").env("RETAKE_CONFIG", config).args(arguments);
        command
    };
    let mut set = inside(&["keys", "set", "anthropic"]);
    set.stdin(Stdio::piped());
    let mut child = set.spawn().expect("the program starts");
    child.stdin.take().expect("piped").write_all(KEY.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert!(user.project().join("dotfiles/retake-keys.json").exists());
    user.write("project/dotfiles/other.json", b"a file beside it");
    let read = |path: &str| {
        let prompt = format!("read dotfiles/{path}");
        let arguments = ["run", "--provider", "offline", "--approve", "all", "--json", &prompt];
        command_output(inside(&arguments).output().expect("the program starts"))
    };
    let other = read("other.json");
    assert!(other.out.contains("a file beside it"), "the control: {other:?}");
    let keys = read("retake-keys.json");
    assert!(!keys.out.contains(KEY) && !keys.err.contains(KEY), "{keys:?}");
    let status = command_output(inside(&["status", "--json"]).output().expect("the program starts"));
    assert!(
        status.code == 0 && status.out.contains("retake-keys.json"),
        "it is listed as not captured: {status:?}"
    );
}
