//! The test harness: login, page content, and detection of errors.

use serde_json::json;

use crate::browser::{Browser, Look, Scheme};
use crate::studio::Studio;

#[test]
fn the_printed_link_logs_in_and_a_first_turn_runs() {
    let studio = Studio::open();
    studio.browser.until_text("h1", "Go back, try again, compare");
    studio.browser.picture("welcome");
    studio.make_thread();
    studio.browser.choose("#approve", "edits");
    studio.ask("create hello.txt with Hello");
    assert_eq!(studio.server.sandbox.read("hello.txt").as_deref(), Some("Hello\n"));
    studio.browser.picture("first-turn");
    assert_eq!(studio.browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_glossary_is_linked() {
    let studio = Studio::open();
    studio.browser.click("#tree footer a[href$=glossary]");
    studio.browser.until_text("h1", "Glossary");
    let words = studio.browser.texts("#glossary strong");
    assert!(words.len() >= 15 && words.contains(&"take".to_owned()), "{words:?}");
    studio.browser.click("#glossary a");
    studio.browser.until_text("h1", "Go back, try again, compare");
    assert_eq!(studio.browser.complaints(), Vec::<String>::new());
}

#[test]
fn without_the_link_nobody_can_log_in() {
    let studio = Studio::open();
    let stranger = Browser::open(Look::default());
    stranger.go(&format!("{}/studio", studio.server.url));
    assert!(!stranger.text("body").contains("Create a thread"), "{}", stranger.text("body"));
}

#[test]
fn the_test_browser_has_the_requested_width_and_theme() {
    for (width, scheme) in [(360, Scheme::Dark), (1920, Scheme::Light)] {
        let browser = Browser::open(Look { width, height: 800, scheme });
        browser.go("data:text/html,<meta name=viewport content='width=device-width'>");
        assert_eq!(browser.value("innerWidth"), width);
        assert_eq!(
            browser.value("matchMedia('(prefers-color-scheme: dark)').matches"),
            scheme == Scheme::Dark
        );
    }
}

/// Control: messages of a page are detected.
#[test]
fn script_errors_are_reported() {
    let browser = Browser::open(Look::default());
    browser.go("data:text/html,<script>nothing.of.this.exists()</script>");
    // The browser reports them asynchronously.
    let mut complaints = Vec::new();
    for _ in 0..100 {
        complaints.extend(browser.complaints());
        if complaints.iter().any(|line| line.contains("nothing is not defined")) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{complaints:?}");
}

#[test]
fn the_combined_stylesheet_equals_its_parts() {
    let studio = Studio::open();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../studio/src/assets/style");
    let mut parts = 0;
    let script = "
        const rules = (text) => {
          const sheet = new CSSStyleSheet();
          sheet.replaceSync(text);
          return [...sheet.cssRules].map((rule) => rule.cssText);
        };
        return fetch('/studio/studio.css').then((answer) => answer.text()).then((sent) => {
          const known = new Set(rules(sent));
          return rules(arguments[0]).filter((rule) => !known.has(rule));
        });";
    for file in std::fs::read_dir(folder).expect("the parts are there") {
        let text = std::fs::read_to_string(file.expect("a part").path()).expect("a text");
        assert_eq!(studio.browser.run(script, &[json!(text)]), json!([]));
        parts += 1;
    }
    assert!(parts > 5, "only {parts} parts");
}
