//! Actions on the whole conversation: the bar's menu and the filter.

use fantoccini::key::Key;

use crate::studio::Studio;

const TALK: [(&str, &str); 6] = [
    ("User", "question one"),
    ("AI", "answer one"),
    ("User", "question two"),
    ("AI", "answer two"),
    ("User", "question three"),
    ("AI", "answer three"),
];

#[test]
fn all_entries_are_collapsed_expanded_and_filtered_by_role() {
    let studio = Studio::with_entries(&TALK);
    let browser = &studio.browser;
    studio.more("collapse-all");
    browser.until_count(".piece > .entry > .preview", 6);
    studio.more("expand-all");
    browser.until_count(".piece > .entry > .entry-body", 6);
    studio.filter(&["AI"]);
    browser.until_count("#picked > .entry", 3);
    assert!(browser.texts("#picked > .entry .entry-body").iter().all(|text| text.contains("answer")));
    // Read-only: no actions here, and each entry links to its position.
    assert_eq!(browser.value("document.querySelectorAll('#picked [data-act], #composer').length"), 0);
    browser.click("#picked .place");
    browser.until("document.activeElement.matches('.entry') && document.activeElement.textContent.includes('answer one')");
    browser.until_count(".piece > .entry", 6);
}

#[test]
fn several_roles_are_shown_at_once() {
    let studio =
        Studio::with_entries(&[("User", "asked"), ("AI", "answered"), ("System", "ruled"), ("AI", "added")]);
    let browser = &studio.browser;
    studio.filter(&["User", "AI"]);
    browser.until_count("#picked > .entry", 3);
    browser.until_text("#main > .notice", "User and AI");
    browser.until("document.querySelectorAll('#filter input:checked').length === 2");
    // The bar is rendered again after a change, and keeps its state.
    studio.server.sandbox.done(&["thread", "rename", "Renamed"]);
    browser.until_text("#bar h1", "Renamed");
    assert_eq!(browser.text("#filter > summary"), "User, AI");
    assert_eq!(browser.value("document.querySelectorAll('#filter input:checked').length"), 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_conversation_is_truncated_cleared_and_restored_by_undo() {
    let studio = Studio::with_entries(&TALK);
    let browser = &studio.browser;
    studio.more("truncate");
    browser.until("document.getElementById('dialog').open");
    browser.fill("#dialog input", "1");
    studio.confirm();
    studio.until_entries(2);
    assert_eq!(studio.texts(), ["question three", "answer three"]);

    studio.more("clear");
    studio.confirm();
    studio.until_entries(0);
    assert_eq!(studio.texts(), Vec::<String>::new());

    for count in [2, 6] {
        studio.undo();
        studio.until_entries(count);
        browser.until_count(".piece > .entry", count);
    }
    assert_eq!(studio.texts().len(), 6);
}

#[test]
fn a_version_is_saved_and_a_thread_is_reset() {
    let studio = Studio::with_entries(&TALK);
    let browser = &studio.browser;
    studio.more("save");
    browser.until("document.getElementById('dialog').open");
    browser.type_into("#dialog input", "before the reset");
    // Enter is enough.
    browser.press(&[], Key::Enter.into());
    browser.until_text("#toasts", "Saved");
    browser.until_text("#history li:first-child", "before the reset");

    studio.more("reset");
    browser.until_text("#dialog-body", "6 entries of 1 take");
    // Not yet.
    browser.click("#dialog button[value=no]");
    browser.until("!document.getElementById('dialog').open");
    assert_eq!(studio.texts().len(), 6);
    studio.more("reset");
    studio.confirm();
    studio.until_entries(0);
    studio.undo();
    studio.until_entries(6);
}

#[test]
fn old_entries_are_replaced_by_a_summary() {
    let long = "words that fill the context of a model ".repeat(200);
    let talk: Vec<(&str, &str)> =
        (0..12).map(|number| (if number % 2 == 0 { "User" } else { "AI" }, long.as_str())).collect();
    let studio = Studio::with_entries(&talk);
    studio.more("compress");
    studio.browser.until_text("#toasts", "Compressed");
    studio.browser.until("Number(document.getElementById('conversation').dataset.count) < 12");
    let shown = studio.transcript();
    assert!(shown.len() < 12, "{}", shown.len());
    assert!(shown.iter().any(|(role, _)| role == "Summary"), "{shown:?}");
}
