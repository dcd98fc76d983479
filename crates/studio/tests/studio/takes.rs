//! Takes can be renamed and deleted, and undo restores them.

use serde_json::json;

use crate::studio::Studio;

#[test]
fn a_take_is_renamed_and_a_duplicate_name_is_refused() {
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
fn a_deleted_take_is_restored_by_undo() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    // The only take cannot be deleted.
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
fn a_take_deleted_elsewhere_is_reported_with_a_link() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let browser = &studio.browser;
    studio.act_on(1, "branch");
    studio.until_entries(1);
    browser.until_text("#bar .take-name", "main_take_1");
    studio.server.sandbox.done(&["take", "delete", "main_take_1"]);
    browser.until_text("#bar", "deleted or undone elsewhere");
    browser.until("document.querySelectorAll('#tree .here .takes li').length < 2");
    // A read-only view stays until it is left.
    assert_eq!(studio.entries(), 1);
    browser.click("#bar .notice a");
    studio.until_entries(2);
    browser.until_text("#bar .take-name", "main");
}

/// The shown take, once its page is loaded.
fn take_shown(studio: &Studio) -> String {
    studio.browser.until("document.getElementById('draft') && document.getElementById('fact-take').value");
    studio.browser.value("document.getElementById('fact-take').value").as_str().expect("an id").to_owned()
}

#[test]
fn undoing_a_branch_returns_to_its_source_take() {
    let studio = Studio::with_entries(&[("User", "one"), ("AI", "two"), ("User", "three")]);
    let browser = &studio.browser;
    let first = take_shown(&studio);
    studio.act_on(2, "branch");
    browser.until(&format!("document.getElementById('fact-take').value !== '{first}'"));
    studio.until_entries(2);
    browser.click("#bar [data-act=undo]:not(:disabled)");
    studio.confirm();
    browser.until(&format!("document.getElementById('fact-take').value === '{first}'"));
    studio.until_entries(3);
    browser.until_count("#bar .notice", 0);
    studio.ask("say hello");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn typed_text_is_preserved_when_its_take_is_deleted() {
    let studio = Studio::with_entries(&[("User", "one"), ("AI", "two")]);
    let browser = &studio.browser;
    let first = take_shown(&studio);
    let thread = studio.thread();
    let version = studio.server.sandbox.json(&["thread", "info", &thread])["version"].clone();
    studio.act_on(1, "branch");
    browser.until(&format!("document.getElementById('fact-take').value !== '{first}'"));
    browser.type_into("#draft", "half typed");
    let jump = "return fetch(arguments[0], {
        method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({version: arguments[1]}),
    }).then((answer) => answer.status);";
    assert_eq!(browser.run(jump, &[json!(format!("/v1/threads/{thread}/jump")), version]), 200);
    // A read-only view stays until it is left.
    browser.click("#bar .notice a");
    browser.until(&format!("document.getElementById('fact-take').value === '{first}'"));
    browser.until("document.getElementById('draft').value.includes('half typed')");
}

#[test]
fn entry_tools_cover_no_text_and_a_deletion_can_be_undone() {
    let long = "a rather long line that a tool has answered with ".repeat(20);
    let studio = Studio::with_entries(&[("User", "2*3*4 is _not_ <b>bold</b>\n  twice"), ("AI", "yes")]);
    let browser = &studio.browser;
    let text = browser.value("document.querySelector('.entry.user .words').textContent");
    assert_eq!(text, "2*3*4 is _not_ <b>bold</b>\n  twice", "a prompt is shown as it was typed");
    let result = json!({"entries": [{"role": "Tool", "blocks": [{"type": "tool_result", "call": "c", "text": long}]}]});
    let add = "return fetch(arguments[0], {
        method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(arguments[1]),
    }).then((answer) => answer.status);";
    assert_eq!(browser.run(add, &[json!(format!("/v1/threads/{}/entries", studio.thread())), result]), 201);
    studio.until_entries(3);
    browser.until_count(".piece > .entry", 3);
    let covered = "[...document.querySelectorAll('.piece > .entry')].filter((entry) => {
        const text = entry.querySelector('summary, .entry-body > *').getBoundingClientRect();
        return [0.02, 0.5, 0.98].some((part) => {
            const hit = document.elementFromPoint(text.left + text.width * part, text.top + text.height / 2);
            return hit?.closest('header');
        });
    }).length";
    for number in 1..=3 {
        // Pointing at its text and clicking selects the text.
        browser.click(&format!("{} .entry-body > *", Studio::entry(number)));
        assert_eq!(browser.value(covered), 0, "entry {number}");
    }
    studio.act_on(3, "delete");
    studio.until_entries(2);
    browser.click("#toasts [data-act=undo]");
    studio.confirm_move();
    studio.until_entries(3);
}

#[test]
fn a_page_undoes_changes_of_its_own_take() {
    let studio = Studio::with_entries(&[("User", "question"), ("AI", "answer")]);
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    sandbox.done(&["take", "branch", "--name", "second"]);
    sandbox.done(&["take", "switch", "main"]);
    sandbox.agent("echo work > work.txt");
    let takes = sandbox.json(&["take", "list"])["takes"].clone();
    let second = takes.as_array().expect("a list").iter().find(|take| take["name"] == "second");
    let second = second.expect("it was made")["id"].as_str().expect("an id").to_owned();
    let here = browser.url();
    browser.go(&format!("{}?take={second}", here.split('?').next().unwrap_or_default()));
    browser.until_text("#bar .take-name", "second");
    studio.until_entries(2);
    // The active take has something to undo, this one does not.
    browser.until("document.querySelector('#bar [data-act=undo]').disabled");
    studio.act_on(2, "delete");
    studio.until_entries(1);
    browser.until("!document.querySelector('#bar [data-act=undo]').disabled");
    browser.click("#toasts [data-act=undo]");
    studio.confirm_move();
    studio.until_entries(2);
    assert_eq!(sandbox.read("work.txt").as_deref(), Some("work\n"), "the files of the active take stay");
    browser.until("!document.querySelector('#bar [data-act=redo]').disabled");
    studio.redo();
    studio.until_entries(1);
    browser.until_text("#bar .take-name", "second");
    let shown =
        |take: &str| sandbox.json(&["thread", "show", "-k", take])["entries"].as_array().map(Vec::len);
    assert_eq!((shown("second"), shown("main")), (Some(1), Some(2)));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
