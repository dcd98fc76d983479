//! Read-only views change nothing: old versions, and entries of one role in a long conversation.

use serde_json::json;

use crate::studio::Studio;
use crate::views::api;

#[test]
fn earlier_versions_are_read_only() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    let thread = studio.thread();
    api(browser, "PUT", &format!("/v1/threads/{thread}/draft"), &json!({"text": "of the present"}));
    browser.go(&format!("{}/studio/threads/{thread}?at=2", studio.server.url));
    browser.until_text(".notice", "of this thread");
    browser.until_count(".piece > .entry", 1);
    assert_eq!(browser.value("document.querySelectorAll('.entry [data-act], #composer').length"), 0);
    browser.click(".notice a");
    browser.until("document.getElementById('draft')?.value === 'of the present'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_long_conversation_is_filtered_by_role() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    let body = json!({"entries": [{"role": "System", "content": "the only one"}]});
    api(browser, "POST", &format!("/v1/threads/{}/entries", studio.thread()), &body);
    studio.add((0..3_500).map(|number| format!("entry {number}")));
    studio.reload();
    studio.filter(&["System"]);
    browser.until_text("#picked", "so far");
    browser.click("#picked [data-act=more]");
    browser.until_text("#picked .entry", "the only one");
    browser.click("#picked .place");
    browser.until("document.activeElement.matches('.entry') && document.activeElement.textContent.includes('the only one')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_undo_preview_lists_no_unchanged_file() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.server.sandbox.write("mine.txt", "by hand\n");
    browser.choose("#approve", "edits");
    studio.ask("create second.txt with two");
    browser.click("[data-act=undo]:not(:disabled)");
    browser.until_text("#dialog-body .file", "second.txt");
    let preview = browser.text("#dialog-body");
    assert!(!preview.contains("mine.txt"), "{preview}");
    studio.confirm_move();
    assert_eq!(studio.server.sandbox.read("mine.txt").as_deref(), Some("by hand\n"));
    assert_eq!(studio.server.sandbox.read("second.txt"), None);
}
