//! Typed text stays where it belongs, whatever is rendered around it.

use fantoccini::key::Key;
use serde_json::json;

use crate::studio::Studio;
use crate::views::api;

#[test]
fn unsaved_input_survives_a_reload_until_cancelled_or_saved() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    studio.act_on(1, "insert");
    browser.until("document.activeElement.matches('.inserting textarea')");
    browser.type_text("in the middle");
    studio.reload();
    browser.until_count(".inserting", 1);
    assert_eq!(browser.holds(".inserting textarea"), "in the middle");
    browser.click(".inserting [data-act=leave-insert]");
    studio.confirm();
    browser.until_gone(".inserting");
    studio.reload();
    assert_eq!(browser.value("document.querySelectorAll('.inserting').length"), 0);

    studio.act_on(1, "insert");
    browser.until("document.activeElement.matches('.inserting textarea')");
    browser.type_text("second");
    browser.choose(".inserting select", "System");
    browser.click(".inserting .primary");
    studio.until_entries(3);
    assert_eq!(studio.transcript()[1], ("System".to_owned(), "second".to_owned()));
    studio.reload();
    assert_eq!(browser.value("document.querySelectorAll('.inserting').length"), 0);
}

#[test]
fn an_open_edit_follows_its_entry_into_another_chunk() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.add((0..30).map(|number| format!("entry {number}")));
    studio.until_entries(30);
    studio.reload();
    // The last entry of the first piece, as long as nothing is inserted before it.
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
fn a_focused_list_is_refreshed_on_blur() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.click("#find");
    api(browser, "POST", "/v1/threads", &json!({"title": "made elsewhere"}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    browser.click("#draft");
    browser.until_text("#tree", "made elsewhere");
}

#[test]
fn discarding_typed_text_asks_first() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    let area = format!("{} .editor textarea", Studio::entry(2));
    studio.act_on(2, "edit");
    browser.until_count(&area, 1);
    browser.type_into(&area, " and more");
    browser.press(&[], Key::Escape.into());
    browser.until_text("#dialog-body", "Discard");
    browser.click("#dialog-no");
    browser.until("!document.getElementById('dialog').open");
    assert_eq!(browser.holds(&area), "answer and more");
    browser.click(&format!("{} .editor [data-act=leave-edit]", Studio::entry(2)));
    studio.confirm();
    browser.until_gone(".editor");
    assert_eq!(studio.texts(), ["question", "answer"]);
}

#[test]
fn a_tool_result_is_edited_rendered_and_copied() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.server.sandbox.write("a.txt", "what is in it\n");
    studio.ask("read a.txt");
    let number =
        1 + studio.transcript().iter().position(|(role, _)| role == "Tool").expect("a tool answered");
    studio.act_on(number, "source");
    browser.until_text(&format!("{} > .plain", Studio::entry(number)), "what is in it");
    studio.act_on(number, "edit");
    let area = format!("{} .editor textarea", Studio::entry(number));
    browser.until(&format!("document.querySelector({area:?})?.value.includes('what is in it')"));
    browser.fill(&area, "something else");
    browser.click(&format!("{} .editor .primary", Studio::entry(number)));
    browser.until_text(&format!("{} > .plain", Studio::entry(number)), "something else");
    // The answer was changed, not a copy of it.
    let shown = studio.server.sandbox.json(&["thread", "show", &studio.thread()]);
    let blocks = &shown["entries"][number - 1]["entry"]["blocks"];
    assert_eq!(
        (blocks.as_array().map(Vec::len), &blocks[0]["text"]),
        (Some(1), &json!("something else")),
        "{shown}"
    );
}

#[test]
fn a_new_entry_appears_while_another_is_being_inserted() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.add((0..20).map(|number| format!("entry {number}")));
    studio.reload();
    studio.act_on(20, "insert");
    browser.until_count(".inserting", 1);
    studio.add(["said elsewhere".to_owned()]);
    browser.until("[...document.querySelectorAll('.piece > .entry')].some((one) => one.textContent.includes('said elsewhere'))");
    assert_eq!(browser.value("document.querySelectorAll('.inserting').length"), 1);
}

#[test]
fn thinking_is_distinguished_from_the_answer() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "<thinking>hm</thinking>")]);
    studio.act_on(2, "edit");
    let area = format!("{} .editor textarea", Studio::entry(2));
    studio.browser.until_count(&area, 1);
    assert_eq!(studio.browser.holds(&area), "");
}
