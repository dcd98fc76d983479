//! The main views, light and dark, narrow and wide: no accessibility violations, no overflow, and a screenshot of each.
//!
//! `scripts/axe` downloads [axe-core](https://github.com/dequelabs/axe-core). The control is a page full of violations.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::{Browser, Look, Scheme};
use crate::studio::Studio;

/// Sends an API request from the page.
pub(crate) fn api(browser: &Browser, method: &str, path: &str, body: &Value) -> Value {
    const SCRIPT: &str = "
        const [method, path, body] = arguments;
        const headers = { 'Content-Type': 'application/json' };
        const request = body === null ? { method } : { method, headers, body: JSON.stringify(body) };
        return fetch(path, request).then(async (answer) => ({ ok: answer.ok, said: await answer.json().catch(() => null) }));";
    let answer = browser.run(SCRIPT, &[json!(method), json!(path), body.clone()]);
    assert_eq!(answer["ok"], true, "{method} {path}: {}", answer["said"]);
    answer["said"].clone()
}

static AXE: LazyLock<String> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("axe");
    let output = Command::new(root.join("scripts/axe")).arg(&folder).output().expect("bash is there");
    assert!(output.status.success(), "axe-core: {}", String::from_utf8_lossy(&output.stderr));
    let file = String::from_utf8(output.stdout).expect("a path");
    std::fs::read_to_string(file.trim()).expect("it was just fetched")
});

/// Serious and critical violations that axe-core reports.
fn barriers(browser: &Browser) -> Vec<String> {
    if browser.value("!window.axe") == json!(true) {
        browser.run(&AXE, &[]);
    }
    let script = "
        return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .flatMap(({ id, nodes }) => nodes.map(({ target, any, all, none }) =>
            `${id}: ${target.join(' ')}: ${[...any, ...all, ...none][0]?.message}`)));";
    let found = browser.run(script, &[]);
    found.as_array().expect("a list").iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}

/// The first heading that skips a level.
fn skipped(browser: &Browser) -> Option<String> {
    let headings = "[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')]";
    let found = browser.value(&format!(
        "{headings}.find((one, index, all) => all[index - 1] && one.tagName[1] - all[index - 1].tagName[1] > 1)?.outerHTML"
    ));
    found.as_str().map(str::to_owned)
}

/// Narrow and wide, light and dark. Width and colours are independent, so two combinations are tested;
/// `RETAKE_LOOKS=full` tests all four.
const LOOKS: [Look; 4] = [
    Look { width: 360, height: 740, scheme: Scheme::Dark },
    Look { width: 1920, height: 1080, scheme: Scheme::Light },
    Look { width: 360, height: 740, scheme: Scheme::Light },
    Look { width: 1920, height: 1080, scheme: Scheme::Dark },
];

fn looks() -> &'static [Look] {
    if std::env::var("RETAKE_LOOKS").is_ok_and(|wanted| wanted == "full") { &LOOKS } else { &LOOKS[..2] }
}

/// Checks a view in these combinations, takes screenshots, and returns the violations.
pub(crate) fn look_at(browser: &Browser, view: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for look in looks() {
        browser.look_as(*look);
        // Waits until rendering has finished.
        std::thread::sleep(Duration::from_millis(150));
        let colours = if look.scheme == Scheme::Dark { "dark" } else { "light" };
        let name = format!("{view}-{}-{colours}", look.width);
        browser.picture(&name);
        wrong.extend(barriers(browser).into_iter().map(|barrier| format!("{name}: {barrier}")));
        wrong.extend(skipped(browser).map(|heading| format!("{name}: a level is skipped at {heading}")));
        if browser.value("document.documentElement.scrollWidth > innerWidth") == json!(true) {
            wrong.push(format!("{name}: it is wider than the window"));
        }
    }
    browser.look_as(Look { width: 1280, height: 800, scheme: Scheme::Light });
    wrong
}

#[test]
fn every_view_is_accessible_in_light_and_dark_narrow_and_wide() {
    let studio = Studio::open();
    let browser = &studio.browser;
    let mut wrong = look_at(browser, "welcome");
    studio.make_thread();
    wrong.extend(look_at(browser, "empty"));
    let thread = fill(&studio);
    let home = format!("{}/studio/threads/{thread}", studio.server.url);
    browser.go(&home);
    browser.until("document.querySelectorAll('.piece > .entry').length > 10");
    wrong.extend(look_at(browser, "thread"));
    for tab in ["files", "settings", "history"] {
        browser.run("document.querySelector(`[data-tab=${arguments[0]}]`).click();", &[json!(tab)]);
        browser.until(&format!("document.querySelector('#panel > #{tab}')"));
        // In a narrow window the details cover the conversation.
        browser.run("document.body.classList.add('show-right');", &[]);
        wrong.extend(look_at(browser, tab));
    }
    browser.run("document.body.classList.remove('show-right');", &[]);
    browser.run("document.querySelector('[data-act=undo]').click();", &[]);
    browser.until("document.getElementById('dialog').open");
    wrong.extend(look_at(browser, "undo"));
    browser.run("document.getElementById('dialog').close('no');", &[]);
    browser.run("document.querySelector('.piece > .entry:last-child [data-act=edit]').click();", &[]);
    browser.until("document.querySelector('.editor textarea')");
    wrong.extend(look_at(browser, "editing"));

    let entries = api(browser, "GET", &format!("/v1/threads/{thread}/entries"), &Value::Null);
    let asked =
        entries["items"].as_array().expect("a list").iter().rfind(|one| one["entry"]["role"] == "User");
    let asked = asked.expect("somebody asked")["id"].clone();
    api(browser, "POST", &format!("/v1/threads/{thread}/branch"), &json!({"entry": asked}));
    browser.go(&home);
    browser.until("document.getElementById('draft')");
    browser.choose("#approve", "all");
    studio.ask("edit login.txt: replace \"two\" with \"three\"");
    let takes = api(browser, "GET", &format!("/v1/threads/{thread}/takes"), &Value::Null);
    let take = |index: usize| takes["items"][index]["id"].as_str().expect("there are takes").to_owned();
    browser.go(&format!("{home}/compare?take={}&other={}", take(0), take(1)));
    browser.until("document.querySelectorAll('.side').length === 2");
    wrong.extend(look_at(browser, "compare"));
    browser.go(&home);
    browser.until("document.getElementById('draft')");
    browser.choose("#approve", "ask");
    studio.send("create notes.txt with a note");
    browser.until("document.querySelector('.question [data-about=allow]')");
    wrong.extend(look_at(browser, "question"));
    browser.go(&format!("{}/studio/threads/nothing", studio.server.url));
    wrong.extend(look_at(browser, "failed"));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Control: axe-core finds the violations.
#[test]
fn planted_accessibility_violations_are_found() {
    let browser = Browser::open(Look::default());
    browser.go("data:text/html,<img src=x><button></button><input><p style='color:%23eee;background:%23fff'>hardly seen</p>");
    let found = barriers(&browser).join("\n");
    for rule in ["image-alt", "button-name", "label", "color-contrast", "html-has-lang", "document-title"] {
        assert!(found.contains(rule), "{rule} is not in {found}");
    }
}

/// A conversation with all kinds of entries, and files.
fn fill(studio: &Studio) -> String {
    let browser = &studio.browser;
    let thread = studio.thread();
    api(browser, "POST", &format!("/v1/threads/{thread}/rename"), &json!({"title": "Fix the login"}));
    api(browser, "POST", &format!("/v1/threads/{thread}/tags"), &json!({"add": ["login", "urgent"]}));
    browser.choose("#approve", "all");
    studio.ask(
        "create login.txt with one and two\nread login.txt\nrun echo checked\nsay Done: **login** is there.",
    );
    let answer = "# The check\n\nIt takes a *name* and says whether it is **not empty**. What is missing:\n\n1. a password\n2. a limit\n\n\
        > Careful with timing.\n\n```rust\n/// Checks a name.\npub fn login(name: &str) -> bool {\n    let limit = 40; // letters, which \
        is longer than a narrow window is wide\n    !name.is_empty() && name.len() < limit\n}\n```\n\n| case | answer | why |\n|---|---|---|\n\
        | empty | `false` | nobody is called that |\n| long | `false` | nobody types that |\n\nSee [the guide](https://example.com/guide).";
    let entries = json!({"entries": [
        {"role": "User", "content": "How does the check work, and what is missing?"},
        {"role": "AI", "model": "claude-sonnet-4", "usage": {"input_tokens": 1200, "output_tokens": 340}, "blocks": [
            {"type": "thinking", "text": "The user wants an overview."}, {"type": "text", "text": answer}]},
        {"role": "System", "content": "Be brief."},
        {"role": "AI", "blocks": [{"type": "tool_call", "call": "c", "name": "edit",
            "input": {"path": "login.txt", "old": "four", "new": "five\nsix"}}]},
        {"role": "Tool", "blocks": [{"type": "tool_result", "call": "c", "text": "There is no such text.", "failed": true}]},
    ]});
    api(browser, "POST", &format!("/v1/threads/{thread}/entries"), &entries);
    studio.ask(
        "edit login.txt: replace \"one\" with \"at least one\"\nsay Now it asks for **at least one** letter.",
    );
    thread
}
