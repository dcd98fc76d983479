//! Takes by name: each can be called something else, and deleted, which an undo takes back.

use crate::studio::Studio;

#[test]
fn a_take_is_renamed_and_a_name_that_is_taken_is_refused() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    studio.act_on(1, "branch");
    studio.until_entries(1);
    browser.until_text("#bar .take-name", "main_take_1");

    studio.more("rename-take");
    browser.until("document.activeElement.matches('#dialog input')");
    browser.fill("#dialog input", "main");
    studio.confirm();
    browser.until_text("#toasts .bad", "main");
    assert_eq!(browser.text("#bar .take-name"), "main_take_1");

    studio.more("rename-take");
    browser.until("document.activeElement.matches('#dialog input')");
    browser.fill("#dialog input", "shorter");
    studio.confirm();
    browser.until_text("#bar .take-name", "shorter");
    browser.until_text("#tree .here .takes", "shorter");
}

#[test]
fn a_take_is_deleted_and_an_undo_brings_it_back() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    // The only one cannot be.
    assert_eq!(browser.value("document.querySelectorAll('[data-about=delete-take]').length"), 0);
    studio.act_on(1, "branch");
    studio.until_entries(1);
    browser.until_count("#tree .here .takes li", 2);
    studio.more("delete-take");
    browser.until_text("#dialog-body", "main_take_1");
    studio.confirm();
    studio.until_entries(2);
    browser.until_text("#bar .take-name", "main");
    browser.until("document.querySelectorAll('#tree .here .takes li').length < 2");
    studio.undo();
    browser.until_count("#tree .here .takes li", 2);
}

#[test]
fn a_take_that_is_deleted_elsewhere_says_so_and_leads_on() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    studio.act_on(1, "branch");
    studio.until_entries(1);
    browser.until_text("#bar .take-name", "main_take_1");
    studio.server.sandbox.done(&["take", "delete", "main_take_1"]);
    browser.until_text("#bar", "deleted or undone elsewhere");
    browser.until("document.querySelectorAll('#tree .here .takes li').length < 2");
    // What is looked at stays until it is left.
    assert_eq!(studio.entries(), 1);
    browser.click("#bar .notice a");
    studio.until_entries(2);
    browser.until_text("#bar .take-name", "main");
}
