//! What is half typed stays where it belongs, whatever is drawn around it.

use serde_json::json;

use crate::studio::Studio;
use crate::views::api;

#[test]
fn what_is_being_put_in_outlives_a_reload_until_it_is_left_or_kept() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    studio.act_on(1, "insert");
    browser.until("document.activeElement.matches('.inserting textarea')");
    browser.type_text("in the middle");
    studio.reload();
    browser.until_count(".inserting", 1);
    assert_eq!(browser.holds(".inserting textarea"), "in the middle");
    browser.click(".inserting [data-act=leave-insert]");
    browser.until_gone(".inserting");
    studio.reload();
    assert_eq!(browser.value("document.querySelectorAll('.inserting').length"), 0);

    studio.act_on(1, "insert");
    browser.until("document.activeElement.matches('.inserting textarea')");
    browser.type_text("second");
    browser.choose(".inserting select", "System");
    browser.click(".inserting .primary");
    studio.until_entries(3);
    assert_eq!(studio.said()[1], ("System".to_owned(), "second".to_owned()));
    studio.reload();
    assert_eq!(browser.value("document.querySelectorAll('.inserting').length"), 0);
}

#[test]
fn an_edit_goes_along_when_its_entry_moves_into_another_piece() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.add((0..30).map(|number| format!("entry {number}")));
    studio.until_entries(30);
    studio.reload();
    // The last of the first piece, as long as nothing is put in before it.
    let last = "[data-number='20']";
    browser.until_count(last, 1);
    let id = browser.run("return arguments[0].id;", &[browser.element(last)]);
    let entry = format!("#{}", id.as_str().expect("an id"));
    browser.click(&format!("{entry} [data-act=edit]"));
    browser.until_count(&format!("{entry} .editor"), 1);
    browser.fill(&format!("{entry} .editor textarea"), "half typed");

    let first = browser.run("return document.querySelector(\"[data-number='1']\").id.slice(2);", &[]);
    let body = json!({"entries": [{"role": "User", "content": "put in before it"}], "after": first});
    api(browser, "POST", &format!("/v1/threads/{}/entries", studio.thread()), &body);
    studio.until_entries(31);
    browser.until(&format!("document.querySelector({entry:?}).closest('.piece').dataset.from === '20'"));
    assert_eq!(browser.holds(&format!("{entry} .editor textarea")), "half typed");
    assert_eq!(browser.value(&format!("document.querySelectorAll({entry:?}).length")), 1);
    assert_eq!(browser.value("document.querySelectorAll('.conflict').length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_list_in_which_somebody_types_is_up_to_date_again_when_they_leave_it() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.click("#find");
    api(browser, "POST", "/v1/threads", &json!({"title": "made elsewhere"}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    browser.click("#draft");
    browser.until_text("#tree", "made elsewhere");
}
