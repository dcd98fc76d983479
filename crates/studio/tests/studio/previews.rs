//! The preview of a move: entries, settings and files that would change.

use serde_json::json;

use crate::studio::Studio;
use crate::views::api;

#[test]
fn the_undo_preview_lists_entries_and_files() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with first line");
    let count = studio.entries();
    browser.click("[data-act=undo]:not(:disabled)");
    browser.until_text("#dialog-body .between", &format!("{count} entries removed"));
    // Entries by their text, and the file line by line.
    browser.until_text("#dialog-body .differs .removed", "create a.txt with first line");
    browser.until_text("#dialog-body tr.removed", "first line");
    browser.until_text("#dialog-body .paths", "a.txt");
    browser.picture("undo-preview");
    studio.confirm();
    studio.until_entries(0);

    // The reverse: the same content returns, and the restored draft disappears.
    browser.click("[data-act=redo]:not(:disabled)");
    browser.until_text("#dialog-body .between", &format!("{count} entries added"));
    browser.until_text("#dialog-body .differs .added", "create a.txt with first line");
    browser.until_text("#dialog-body tr.added", "first line");
    studio.confirm();
    studio.until_entries(count);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_undo_preview_lists_settings_and_the_draft() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    let thread = studio.thread();
    api(browser, "PATCH", &format!("/v1/threads/{thread}/settings"), &json!({"temperature": 0.5}));
    browser.until_count("[data-act=undo]:not(:disabled)", 1);
    browser.until_text("#set-to", "temperature 0.5");
    browser.click("[data-act=undo]:not(:disabled)");
    browser.until_text("#dialog-body .fields", "temperature");
    browser.until_text("#dialog-body .fields del", "0.5");
    browser.until_text("#dialog-body .between", "No entries change");
    studio.confirm_move();
    browser.until("!document.getElementById('set-to').textContent.includes('temperature')");

    api(browser, "PUT", &format!("/v1/threads/{thread}/draft"), &json!({"text": "half a thought"}));
    browser.until_count("[data-act=undo]:not(:disabled)", 1);
    browser.until("document.getElementById('draft').value === 'half a thought'");
    browser.click("[data-act=undo]:not(:disabled)");
    browser.until_text("#dialog-body .fields del", "half a thought");
    browser.click("#dialog button[value=no]");
    assert_eq!(browser.holds("#draft"), "half a thought");
}

#[test]
fn a_long_preview_lists_some_operations_and_counts_the_rest() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.add((0..50).map(|number| format!("entry {number}")));
    studio.until_entries(50);
    browser.click("[data-act=undo]:not(:disabled)");
    browser.until_text("#dialog-body .between", "50 entries removed");
    browser.until_text("#dialog-body .between", "and 38 entries more");
    studio.confirm_move();
    studio.until_entries(0);
}
