//! Search, blame, older operations, and old versions.

use fantoccini::key::Key;

use crate::browser::{Look, Scheme};
use crate::server::Server;
use crate::studio::Studio;

#[test]
fn search_covers_all_threads_and_links_to_entries() {
    let studio = Studio::with_entries(&[("User", "where is the needle"), ("AI", "in the haystack")]);
    let browser = &studio.browser;
    let first = studio.thread();
    studio.make_thread();
    browser.type_into("#find", "haystack");
    browser.press(&[], Key::Enter.into());
    browser.until_count("#found li", 1);
    browser.until_text("#found mark", "haystack");
    browser.click("#found li a");
    browser.until(&format!("document.getElementById('fact-thread')?.value === {first:?}"));
    browser.until("document.activeElement.textContent.includes('in the haystack')");
    browser.type_into("#find", "nobody said this");
    browser.press(&[], Key::Enter.into());
    browser.until_text("#found", "No results");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn older_operations_are_loaded_on_request() {
    let studio = Studio::with_entries(&[("User", "one")]);
    let browser = &studio.browser;
    // On a page that is not rendered after each of them.
    let (thread, here) = (studio.thread(), browser.url());
    browser.go(&format!("{}/studio/threads/none", studio.server.url));
    browser.run(
        "const [path] = arguments;
         const headers = {'Content-Type': 'application/json'};
         return (async () => {
             for (let number = 0; number < 62; number++) {
                 await fetch(path, {method: 'PUT', headers, body: JSON.stringify({pinned: number % 2 === 0})});
             }
         })();",
        &[serde_json::json!(format!("/v1/threads/{thread}/pinned"))],
    );
    browser.go(&here);
    browser.until("document.getElementById('draft')");
    while !browser.text("#panel").contains("created the thread") {
        let shown = browser.texts("#panel .history li").len();
        browser.click("#panel [data-act=more]");
        browser.until(&format!("document.querySelectorAll('#panel .history li').length > {shown}"));
    }
    browser.until_gone("#panel [data-act=more]");
}

#[test]
fn clear_applies_to_the_displayed_take() {
    let studio = Studio::with_entries(&[("User", "one"), ("AI", "two")]);
    let browser = &studio.browser;
    studio.act_on(1, "branch");
    studio.until_entries(1);
    browser.click("#tree .here .takes li:first-child a");
    studio.until_entries(2);
    browser.until_text(".notice", "This take is not active");
    studio.more("clear");
    studio.confirm_move();
    studio.until_entries(0);
    assert_eq!(studio.texts(), ["one"], "the take that is worked on is as it was");
}

#[test]
fn escape_closes_a_dialog_with_a_focused_field() {
    let studio = Studio::with_entries(&[("User", "one")]);
    let browser = &studio.browser;
    studio.more("save");
    browser.until("document.activeElement.matches('#dialog input')");
    browser.press(&[], Key::Escape.into());
    browser.until("!document.getElementById('dialog').open");
}

#[test]
fn a_narrow_window_hides_threads_and_details_behind_buttons() {
    let look = Look { width: 360, height: 740, scheme: Scheme::Dark };
    let studio = Studio::over(Server::start(), look);
    let browser = &studio.browser;
    browser.click("main [data-about=new-thread]");
    browser.until("document.getElementById('draft')");
    let across = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.value(across), true);
    for (act, side) in [("menu", "left"), ("details", "right")] {
        let seen = format!("document.getElementById('{side}').checkVisibility({{visibilityProperty: true}})");
        assert_eq!(browser.value(&seen), false);
        browser.click(&format!("#bar [data-act={act}]"));
        browser.until(&seen);
        browser.picture(&format!("narrow-{side}"));
        // The same button is below the opened part; the keyboard still reaches it.
        browser.run(&format!("document.querySelector('#bar [data-act={act}]').click();"), &[]);
        browser.until(&format!("!{seen}"));
    }
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    browser.picture("narrow");
    assert_eq!(browser.value(across), true);
}
