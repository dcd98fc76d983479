//! Tests that keys are read back unchanged, and that other users cannot read them.

use super::*;

const KEY: &str = "sk-stored-\"quoted\"-\\1";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn keys_in_a_file_are_stored_listed_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::in_file(&folder.path().join("new/retake-keys.json"));
    assert_eq!(store.get("openai"), Ok(None));
    assert_eq!(store.remove("openai"), Ok(None));
    assert_eq!(store.set("openai", &Secret::new(KEY)), Ok(KeyLocation::File));
    assert_eq!(store.set("gemini", &Secret::new("other-key")), Ok(KeyLocation::File));
    assert_eq!((mode(store.file()), mode(store.file().parent().expect("a folder"))), (0o600, 0o700));
    assert_eq!(store.get("openai"), Ok(Some(Secret::new(KEY))));
    assert_eq!(store.list().expect("a list").keys().collect::<Vec<_>>(), ["gemini", "openai"]);
    assert_eq!(store.remove("openai"), Ok(Some(KeyLocation::File)));
    assert_eq!(store.get("openai"), Ok(None));
    assert!(!std::fs::read_to_string(store.file()).expect("text").contains("sk-stored"));
    let left: Vec<_> = std::fs::read_dir(folder.path().join("new")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
}

#[test]
fn a_damaged_or_shared_key_file_is_refused_without_showing_its_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::in_file(&folder.path().join("retake-keys.json"));
    store.set("openai", &Secret::new(KEY)).expect("stored");
    std::fs::set_permissions(store.file(), std::fs::Permissions::from_mode(0o644)).expect("set");
    let error = store.get("openai").expect_err("open to others").to_string();
    assert!(error.contains("chmod 600"), "{error}");
    std::fs::set_permissions(store.file(), std::fs::Permissions::from_mode(0o600)).expect("set");
    std::fs::write(store.file(), "{\"openai\": sk-stored}").expect("written");
    let error = store.set("gemini", &Secret::new("k")).expect_err("broken").to_string();
    assert!(error.contains("repair") && !error.contains("sk-stored"), "{error}");
    for text in ["", " ", "two words", "line\nline", "ключ"] {
        assert_eq!(store.set("openai", &Secret::new(text)), Err(KeyStoreError::NotAKey), "{text:?}");
    }
}

/// A fake keyring program that stores its input in a folder.
fn fake(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\ncd '{}' || exit 1\n{script}", folder.display()))
        .expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    path
}

fn with(folder: &Path, keyring: Keyring) -> KeyStore {
    KeyStore { file: folder.join("retake-keys.json"), keyring: Some(keyring) }
}

#[test]
fn with_a_keyring_the_file_lists_only_the_name_of_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret_tool = "case $1 in store) cat > kept-$6;; lookup) cat kept-$5;; \
                       clear) rm kept-$5;; esac\n";
    let secret_tool = Keyring::SecretTool(fake(folder.path(), "secret-tool", secret_tool));
    let store = with(folder.path(), secret_tool);
    assert_eq!(store.set("openai", &Secret::new(KEY)), Ok(KeyLocation::Keyring));
    assert!(!std::fs::read_to_string(store.file()).expect("text").contains("sk-stored"));
    assert_eq!(store.get("openai"), Ok(Some(Secret::new(KEY))));
    assert_eq!(store.list().expect("a list")["openai"], KeyLocation::Keyring);
    assert_eq!(store.remove("openai"), Ok(Some(KeyLocation::Keyring)));
    assert!(!folder.path().join("kept-openai").exists());
}

#[test]
fn the_macos_keychain_gets_the_key_on_standard_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "case $1 in -i) eval \"set -- $(cat)\"; printf '%s' \"$8\" > \"kept-$6\";; find-generic-password) cat \
                  \"kept-$5\";; delete-generic-password) rm \"kept-$5\";; esac\n";
    let store = with(folder.path(), Keyring::Security(fake(folder.path(), "security", script)));
    assert_eq!(store.set("openai", &Secret::new(KEY)), Ok(KeyLocation::Keyring));
    assert_eq!(store.get("openai"), Ok(Some(Secret::new(KEY))));
    assert_eq!(store.remove("openai"), Ok(Some(KeyLocation::Keyring)));
}

#[test]
fn without_a_working_keyring_the_key_is_stored_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for script in ["exit 1\n", "exit 0\n"] {
        let store = with(folder.path(), Keyring::SecretTool(fake(folder.path(), "secret-tool", script)));
        assert_eq!(store.set("openai", &Secret::new(KEY)), Ok(KeyLocation::File), "{script}");
        assert_eq!(store.get("openai"), Ok(Some(Secret::new(KEY))));
    }
    let store = with(folder.path(), Keyring::SecretTool(fake(folder.path(), "secret-tool", "exit 1\n")));
    std::fs::write(store.file(), "{\"openai\": \"keyring\"}").expect("written");
    let error = store.get("openai").expect_err("locked").to_string();
    assert!(error.contains("unlock it"), "{error}");
}
