//! Threads: created, found, deleted; takes compared, activated, promoted.

use crate::studio::Studio;

#[test]
fn threads_are_created_found_renamed_and_deleted() {
    let studio = Studio::open();
    let browser = &studio.browser;
    browser.until_text("#tree", "No threads yet.");
    studio.make_thread();
    let first = studio.thread();
    browser.click("[data-tab=settings]");
    browser.fill("#settings [name=title]", "Apples");
    browser.click("#draft");
    browser.until_text("#bar h1", "Apples");
    browser.until_text("#tree .here .title", "Apples");

    studio.make_thread();
    let second = studio.thread();
    assert_ne!(first, second);
    browser.until_count("#tree .thread", 2);
    browser.type_into("#find", "apple");
    browser.until(
        "[...document.querySelectorAll('#tree .thread')].filter((one) => one.checkVisibility()).length === 1",
    );
    browser.click(&format!("#tree [data-thread='{first}'] > a"));
    browser.until(&format!("document.getElementById('fact-thread')?.value === {first:?}"));

    studio.more("delete-thread");
    studio.confirm();
    browser.until(&format!("!document.querySelector('#tree [data-thread=\"{first}\"]')"));
    browser.until_count("#tree .thread", 1);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn takes_are_compared_switched_and_promoted() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    let branched_at = studio.entries();
    studio.ask("create b.txt with main only");
    let first = studio.thread();
    studio.act_on(branched_at, "branch");
    studio.confirm();
    studio.until_entries(branched_at);
    browser.choose("#approve", "edits");
    studio.ask("create c.txt with branch only");
    assert_eq!(sandbox.read("b.txt"), None);

    let compare = |studio: &Studio| {
        studio.browser.click("#bar details.menu:first-of-type > summary");
        studio.browser.click("#bar details.menu:first-of-type a");
        studio.browser.until_count("#compare .side", 2);
    };
    compare(&studio);
    browser.until_text("#compare .differ", "b.txt");
    browser.until_text("#compare .differ", "c.txt");
    browser.picture("compare");
    browser.click("#compare .side:last-child [data-act=switch]");
    browser.until_text("#dialog-body", "c.txt");
    studio.confirm();
    browser.until("document.getElementById('draft')");
    assert_eq!(sandbox.read("b.txt").as_deref(), Some("main only\n"));
    assert_eq!(sandbox.read("c.txt"), None);

    compare(&studio);
    browser.click("#compare .side:last-child [data-about=promote]");
    browser.until(&format!(
        "document.getElementById('draft') && document.getElementById('fact-thread').value !== {first:?}"
    ));
    browser.until_count("#tree .thread", 2);
    assert!(studio.texts().iter().any(|text| text.contains("c.txt")), "{:?}", studio.texts());
    // The file changes of its calls are in the source's log, and still shown.
    browser.until_text("#conversation", "1 file");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
