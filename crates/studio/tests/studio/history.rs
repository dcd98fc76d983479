//! The history as a graph: a row per turn, its steps, and undone turns beside the current line.

use serde_json::json;

use crate::studio::Studio;
use crate::views::{api, look_at};

/// Horizontal positions of the points of the rows with this class.
fn across(studio: &Studio, class: &str) -> Vec<u64> {
    let points = format!(
        "[...document.querySelectorAll('#history .history > li.{class} circle')].map((one) => one.cx.baseVal.value)"
    );
    let found = studio.browser.value(&points);
    found.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number") as u64).collect()
}

#[test]
fn a_turn_is_one_row_whose_steps_are_jump_targets() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    browser.until_count("#history .history > li.turn", 1);
    browser.until_text("#history li.turn .words", "create a.txt with one");
    browser.until_text("#history li.turn .stat", "1 file");
    browser.until_text("#history li.turn .stat .added", "+1");
    assert_eq!(browser.value("document.querySelectorAll('#history circle.current').length"), 1);

    // Its steps are folded; an opened row stays open after a change.
    let steps = "#history li.turn .of-turn";
    assert_eq!(browser.value(&format!("document.querySelector('{steps}').open")), false);
    browser.click(&format!("{steps} > summary"));
    browser.until_text(&format!("{steps} ol"), "answered");
    browser.click(&format!("{steps} .changed > summary"));
    browser.until_text(&format!("{steps} .between"), "4 entries added");
    browser.until_text(&format!("{steps} .between .file"), "a.txt");
    // Lines are next to their numbers, as elsewhere.
    let wide = "document.querySelector('#history .diff tr.added td:last-child').clientWidth > 200";
    assert_eq!(browser.value(wide), true);
    browser.picture("history-steps");
    api(browser, "PUT", &format!("/v1/threads/{}/pinned", studio.thread()), &json!({"pinned": true}));
    browser.until_text("#history li:first-child", "pinned the thread");
    browser.until(&format!("document.querySelector('{steps}').open"));
    browser.until_text(&format!("{steps} .between .file"), "a.txt");

    // Into the middle of the turn, right after the typing: the row splits there, and redo continues.
    let asked = browser.text(&format!("{steps} ol > li:nth-last-child(2) .number"));
    browser.click(&format!("{steps} [data-act=jump][data-version='{asked}']"));
    studio.confirm_move();
    studio.until_entries(1);
    assert_eq!(sandbox.read("a.txt"), None);
    browser.until_text("#history li.current .number", &asked);
    browser.until_text("#history li.redoable .next", "next redo");
    browser.until("document.querySelector('#history .lanes .ahead')");
    assert_eq!(across(&studio, "redoable"), [8, 8], "what redo leads to is on the line");
    studio.redo();
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn undone_operations_are_drawn_beside_the_current_line() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "edits");
    studio.ask("create base.txt with base");
    for name in ["first", "second"] {
        studio.ask(&format!("create {name}.txt with {name}"));
        studio.undo();
        studio.until_entries(4);
    }
    studio.ask("create third.txt with third");
    let thread = studio.thread();
    api(browser, "POST", &format!("/v1/threads/{thread}/save"), &json!({"name": "the third try"}));
    browser.until_text("#history li.saved .label", "the third try");
    browser.until_count("#history li.turn.undone", 2);
    assert_eq!(across(&studio, "turn.undone"), [20, 20], "tried twice on one moment: one lane is enough");
    assert_eq!(across(&studio, "turn.past"), [8]);
    assert_eq!(across(&studio, "current"), [8]);
    browser.run("document.body.classList.add('show-right');", &[]);
    assert_eq!(look_at(browser, "history-undone"), Vec::<String>::new());

    browser.click("#history li.turn.undone [data-act=jump]");
    studio.confirm_move();
    browser.until_text("#history li.current .words", "create second.txt");
    assert_eq!(across(&studio, "current"), [8], "where one is is the line");
    assert_eq!(sandbox.read("second.txt").as_deref(), Some("second\n"));
    assert_eq!(sandbox.read("third.txt"), None);
    // The saved name still belongs to the other version.
    browser.click("#history li.saved [data-act=jump]");
    studio.confirm_move();
    assert_eq!(sandbox.read("third.txt").as_deref(), Some("third\n"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn older_pages_list_every_operation_once_for_any_length_of_turn() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "all");
    let long = |what: &str, many: usize| {
        (1..=many).map(|number| format!("run echo {what} {number}")).collect::<Vec<_>>().join("\n")
    };
    studio.ask(&long("short", 3));
    studio.ask(&long("undone", 6));
    studio.undo();
    studio.ask(&long("long", 24));
    studio.ask(&long("last", 12));
    let versions = "[...document.querySelectorAll('#panel [id^=v-]')].map((one) => Number(one.id.slice(2)))";
    browser.until_text("#history li.current .words", "run echo last");
    let newest: u64 = browser.text("#history li.current .number").parse().expect("a number");
    assert!(newest > 100, "there are several pages: {newest}");
    while browser.value("!!document.querySelector('#panel [data-act=more]')") == json!(true) {
        let shown = browser.value(&format!("{versions}.length"));
        browser.click("#panel [data-act=more]");
        browser.until(&format!("{versions}.length > {shown}"));
    }
    let wanted: Vec<u64> = (1..=newest).rev().collect();
    assert_eq!(browser.value(versions), json!(wanted), "each once, newest first");
    // The requested page stays after a change.
    studio.add(["one more".to_owned()]);
    browser.until_text("#history li.current", "one more");
    let wanted: Vec<u64> = (1..=newest + 1).rev().collect();
    assert_eq!(browser.value(versions), json!(wanted), "as far as it was asked for");
    // The lane of undone turns joins the line, on whichever page that is.
    assert_eq!(browser.value("document.querySelectorAll('#panel li.undone path.aside').length"), 1);
    let titles = browser.texts("#panel .history > li.turn .words:not(ol *)");
    assert!(titles.iter().all(|title| title.starts_with("run echo")), "{titles:?}");
    browser.picture("history-long");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
