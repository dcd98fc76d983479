//! Settings: every field is saved when it loses focus, and can be undone.

use fantoccini::key::Key;
use serde_json::{Value, json};

use crate::studio::Studio;
use crate::views::api;

/// Changes a field and leaves it.
fn set(studio: &Studio, field: &str, value: &str) {
    studio.browser.fill(field, value);
    studio.browser.click("#draft");
}

fn tick(studio: &Studio, field: &str) {
    studio.browser.click(field);
}

/// The server's view of the thread.
fn ask(studio: &Studio, path: &str) -> Value {
    let script = "return fetch(arguments[0]).then((answer) => answer.json());";
    studio.browser.run(script, &[json!(format!("/v1/threads/{}{path}", studio.thread()))])
}

/// Waits until the server has this value.
fn until(studio: &Studio, path: &str, pointer: &str, wanted: Value) {
    let mut seen = Value::Null;
    for _ in 0..200 {
        seen = ask(studio, path);
        if seen.pointer(pointer) == Some(&wanted) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{path} {pointer} is not {wanted}: {seen}");
}

#[test]
fn every_setting_is_saved_on_blur() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.server.sandbox.write("seen.txt", "something");
    browser.click("[data-tab=settings]");
    browser.until_count("#settings", 1);
    let texts = [
        ("provider", "offline", json!("offline")),
        ("model", "assistant", json!("assistant")),
        ("temperature", "0.5", json!(0.5)),
        ("top_p", "0.75", json!(0.75)),
        ("max_tokens", "1234", json!(1234)),
        ("effort", "high", json!("high")),
        ("project_system_prompt", "Be brief.", json!("Be brief.")),
        ("global_system_prompt", "Be kind.", json!("Be kind.")),
        ("base_system_prompt", "Be right.", json!("Be right.")),
    ];
    for (name, typed, kept) in texts {
        set(&studio, &format!("#settings [name={name}]"), typed);
        until(&studio, "/settings", &format!("/{name}"), kept);
    }
    // An emptied field returns to its default.
    for (name, usual) in [("temperature", json!(null)), ("top_p", json!(null)), ("max_tokens", json!(null))] {
        set(&studio, &format!("#settings [name={name}]"), "");
        until(&studio, "/settings", &format!("/{name}"), usual);
    }
    for name in ["auto_add_history", "use_default_base_prompt"] {
        let was = ask(&studio, "/settings")[name].as_bool().expect("yes or no");
        tick(&studio, &format!("#settings [name={name}]"));
        until(&studio, "/settings", &format!("/{name}"), json!(!was));
    }
    browser.picture("settings");
    // Unsaved text survives leaving the page.
    browser.fill("#settings [name=project_system_prompt]", "Be brief, and");
    studio.reload();
    browser.click("[data-tab=settings]");
    until(&studio, "/settings", "/project_system_prompt", json!("Be brief, and"));
    assert_eq!(browser.holds("#settings [name=project_system_prompt]"), "Be brief, and");
    // Reverted typing is discarded: it must not overwrite a value set elsewhere.
    browser.click("#settings [name=global_system_prompt]");
    browser.type_text("x");
    browser.press(&[], Key::Backspace.into());
    browser.click("#draft");
    studio.server.sandbox.done(&["settings", "set", "global_system_prompt", "Set elsewhere."]);
    browser
        .until("document.querySelector('#settings [name=global_system_prompt]').value === 'Set elsewhere.'");
    std::thread::sleep(std::time::Duration::from_millis(300));
    until(&studio, "/settings", "/global_system_prompt", json!("Set elsewhere."));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn thread_properties_are_set_in_the_settings_tab() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.server.sandbox.write("seen.txt", "something");
    browser.click("[data-tab=settings]");
    set(&studio, "#settings [name=title]", "A good title");
    browser.until_text("#bar h1", "A good title");
    tick(&studio, "#settings [name=private]");
    browser.until_text("#tree .here", "private");
    tick(&studio, "#settings [name=pinned]");
    browser.until_count("#tree .here .pin", 1);
    set(&studio, "#settings [name=roles]", "User, AI, System, Critic");
    browser.until("[...document.querySelectorAll('#filter input')].some((one) => one.value === 'Critic')");
    browser.until("document.getElementById('inserting').innerHTML.includes('Critic')");
    for list in ["context_files", "files"] {
        set(&studio, &format!("#settings [name={list}]"), "seen.txt");
        let items = format!("/lists/{list}");
        until(&studio, &items, "/items/0/path", json!("seen.txt"));
    }
    // One undo reverts the last change, and the field shows it.
    studio.undo();
    browser.until("document.querySelector(\"#settings [name=files]\").value === ''");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn context_presets_are_saved_loaded_and_deleted() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.click("[data-tab=settings]");
    browser.until_count("#settings", 1);
    let use_file = |name: &str| {
        set(&studio, "#settings [name=context_files]", name);
        until(&studio, "/lists/context_files", "/items/0/path", json!(name));
    };
    use_file("seen.txt");
    browser.click("#presets [data-about=save-preset]");
    browser.until("document.getElementById('dialog').open");
    browser.fill("#dialog-body [name=name]", "mine & yours");
    studio.confirm();
    browser.until_text("#presets", "mine & yours");
    use_file("other.txt");
    browser.click("#presets [data-about=load-preset]");
    until(&studio, "/lists/context_files", "/items/0/path", json!("seen.txt"));
    browser.click("#presets [data-about=delete-preset]");
    browser.until_gone("#presets [data-about=load-preset]");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_last_request_to_the_model_is_shown() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.server.sandbox.write("seen.txt", "seen by the model");
    let path = format!("/v1/threads/{}/lists/context_files", studio.thread());
    api(browser, "PUT", &path, &json!({"items": [{"path": "seen.txt"}]}));
    browser.until_text("#set-to", "1 file");
    studio.ask("say hello");
    browser.click("[role=tab][data-tab=settings]");
    browser.until_count("#settings", 1);
    browser.click("#settings .sent summary");
    browser.until_text("#settings .sent", "System prompt");
    browser.until_text("#settings .sent", "seen by the model");
}
