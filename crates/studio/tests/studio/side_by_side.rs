//! Comparison of two takes: shared entries, costs, rows, and copying files.

use serde_json::{Value, json};

use crate::browser::{Look, Scheme};
use crate::studio::Studio;
use crate::views::api;

/// Two takes that diverge after the first turn, and the page that compares them, with the active one first.
fn parted() -> Studio {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    let branched_at = studio.entries();
    studio.ask("edit a.txt: replace \"one\" with \"main\"\nsay That was long, and takes more than one line to say it:\n1\n\n2\n\n3");
    studio.ask("create b.txt with main only");
    studio.act_on(branched_at, "branch");
    studio.confirm();
    studio.until_entries(branched_at);
    browser.choose("#approve", "edits");
    studio.ask("edit a.txt: replace \"one\" with \"branch\"");
    studio.ask("create c.txt with branch only");
    browser.click("#bar details.menu:first-of-type > summary");
    browser.click("#bar details.menu:first-of-type a");
    browser.until_count("#compare .side", 2);
    studio
}

#[test]
fn shared_entries_of_two_takes_are_folded_and_turns_aligned() {
    let studio = parted();
    let browser = &studio.browser;
    browser.until_text("#compare .both summary", "4 shared entries");
    // The last shared entry is shown as their common base.
    browser.until_count("#compare .both > .entry", 1);
    browser.click("#compare .both summary");
    browser.until_count("#compare .both li", 4);
    let facts = browser.texts("#compare .took tbody th");
    assert_eq!(facts, ["Entries", "Tool calls", "Tokens", "Cost", "Time", "Models"]);
    assert_eq!(browser.texts("#compare .took tbody tr:nth-child(2) td").len(), 2);

    let tops = |which: &str| {
        browser.value(&format!(
            "[...document.querySelectorAll('.side:{which} .cell')].map((one) => Math.round(one.getBoundingClientRect().top))"
        ))
    };
    assert_eq!(tops("first-child").as_array().map(Vec::len), Some(2), "a row for each turn");
    assert_eq!(tops("first-child"), tops("last-child"), "turns stand beside turns");
    for (width, scheme) in [(1280, Scheme::Light), (1280, Scheme::Dark), (360, Scheme::Light)] {
        browser.look_as(Look { width, height: 900, scheme });
        std::thread::sleep(std::time::Duration::from_millis(200));
        browser.picture(&format!("beside-{width}-{scheme:?}"));
    }
    // In a narrow window the takes are stacked.
    let edge = |which: &str, edge: &str| {
        let edge = format!("document.querySelector('.side:{which}').getBoundingClientRect().{edge}");
        browser.value(&edge).as_f64().expect("a number")
    };
    assert!(edge("first-child", "bottom") <= edge("last-child", "top"));
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), true);
    browser.look_as(Look { width: 1280, height: 800, scheme: Scheme::Light });
    browser.click("#compare .both li:first-child a");
    browser.until("location.hash && document.activeElement.id === location.hash.slice(1)");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_file_is_copied_from_the_other_take_and_restored_by_undo() {
    let studio = parted();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    let page = browser.url();
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("branch\n"));
    browser.until_count("#compare .differ .file", 3);
    browser.click("#compare .file[data-path='a.txt'] .take-over");
    browser.until_text("#dialog-body .paths", "a.txt written");
    studio.confirm();
    browser.until_count("#compare .differ .file", 2);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("main\n"), "its file");
    assert_eq!(sandbox.read("c.txt").as_deref(), Some("branch only\n"), "and no other");
    assert_eq!(browser.url(), page);
    // A file that only the active take has is removed.
    browser.click("#compare .differ > .acts .take-over");
    studio.confirm();
    browser.until_text("#compare .differ", "The files are the same");
    assert_eq!(sandbox.read("c.txt"), None);
    assert_eq!(sandbox.read("b.txt").as_deref(), Some("main only\n"));

    api(browser, "POST", &format!("/v1/threads/{}/undo", studio.thread()), &json!({}));
    assert_eq!(sandbox.read("c.txt").as_deref(), Some("branch only\n"));
    browser.reload();
    browser.until_count("#compare .differ .file", 2);
    browser.click("#compare .differ .blame-of");
    browser.until_text("#whole h1", ".txt");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_comparison_switches_to_or_promotes_the_other_take() {
    let studio = parted();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    let (thread, page) = (studio.thread(), browser.url());
    browser.until_text("#compare .side:first-child h2", "active");
    browser.until_count("#compare .side:first-child [data-about=promote]", 0);
    // Files move, so a preview is shown first.
    browser.click("#compare .side:last-child [data-act=switch]");
    browser.until_text("#dialog-body", "b.txt");
    browser.picture("compare-switch");
    studio.confirm();
    browser.until("document.getElementById('draft')");
    assert_eq!(sandbox.read("b.txt").as_deref(), Some("main only\n"));
    assert_eq!(sandbox.read("c.txt"), None);

    browser.go(&page);
    browser.until_text("#compare .side:last-child h2", "active");
    browser.click("#compare .side:first-child [data-about=promote]");
    browser.until(&format!(
        "document.getElementById('draft') && document.getElementById('fact-thread').value !== {thread:?}"
    ));
    let takes = api(browser, "GET", &format!("/v1/threads/{thread}/takes"), &Value::Null);
    assert_eq!(takes["items"].as_array().map(Vec::len), Some(1));
    assert!(studio.texts().iter().any(|text| text.contains("c.txt")), "{:?}", studio.texts());
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
