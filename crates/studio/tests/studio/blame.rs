//! Blame in the panel and as a page; all changed files, and excluded files.

use serde_json::json;

use crate::browser::Look;
use crate::server::Server;
use crate::studio::Studio;
use crate::views::look_at;
use retake_testing::Sandbox;

#[test]
fn blame_shows_the_prompt_of_each_line_and_links_to_it() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with \"one\\ntwo\\nthree\\nfour\\n\"");
    studio.ask("edit a.txt: replace \"two\" with \"2\"");
    sandbox.write("a.txt", "one\n2\nthree\nby hand\n");
    studio.ask("create b.txt with b");
    browser.click("[data-tab=files]");
    browser.until_text("#files .in-all", "a.txt");
    browser.until_text("#files .in-all .stat", "2 files");
    browser.click("#files .in-all li a");
    browser.until_count("#blame .blame td.number", 4);
    let who = browser.texts("#blame .who a");
    assert_eq!(who.len(), 4, "lines that were written together are told once: {who:?}");
    assert!(who[0].starts_with("create a.txt") && who[2] == who[0], "{who:?}");
    assert!(who[1].starts_with("edit a.txt"), "{who:?}");
    assert_eq!(who[3], "you");
    browser.picture("blame-panel");

    // Links to the entry itself.
    browser.click("#blame tbody:nth-of-type(2) .who a");
    browser.until("location.hash && document.activeElement.id === location.hash.slice(1)");
    let shown = browser.value("document.activeElement.textContent");
    assert!(shown.as_str().is_some_and(|shown| shown.contains("edit a.txt")), "{shown}");

    // A line that no longer exists links to its version.
    let entries = studio.texts().len();
    studio.act_on(1, "delete");
    studio.until_entries(entries - 1);
    browser.click("[data-tab=files]");
    browser.click("#files .in-all li a");
    browser.click("#blame .who a");
    browser.until_text(".notice", "of this thread");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn blame_has_an_address_and_is_loaded_in_bounded_pieces() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "all");
    studio.ask("run seq 1 4500 > long.txt");
    let thread = studio.thread();
    let at = format!("{}/studio/threads/{thread}/blame?path=long.txt", studio.server.url);
    // As a part, it is inserted into the panel.
    let part = browser.run("return fetch(arguments[0]).then((answer) => answer.text());", &[json!(at)]);
    assert!(part.as_str().is_some_and(|part| part.starts_with("<div id=\"blame\">")), "{part:.100}");

    browser.go(&at);
    browser.until_text("h1", "long.txt");
    browser.until_text("#whole .who a", "run seq");
    browser.until_text(".bounded", "Lines 1 to 2,000 of 4,500");
    assert_eq!(look_at(browser, "blame"), Vec::<String>::new());
    browser.click(".bounded a");
    browser.until_text(".bounded", "Lines 2,001 to 4,000 of 4,500");
    browser.click(".bounded a:last-child");
    browser.until_text(".bounded", "Lines 4,001 to 4,500 of 4,500");
    browser.until_count("#blame td.number", 500);
    // A missing file is reported on a page.
    browser.go(&at.replace("long.txt", "none.txt"));
    browser.until_text("#failed", "the file does not exist");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_change_of_very_many_files_is_summarised() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "all");
    studio.ask("run for n in $(seq 1 300); do seq 1 100 > $n.txt; done");
    browser.until_text("#history li.turn .stat", "300 files");
    browser.click("[data-tab=files]");
    browser.until_count("#files .change .file", 50);
    browser.until_text("#files .change", "And 250 files more.");
    browser.until_text("#files .change .stat", "300 files +30000");
    browser.until_text("#files .in-all", "And 250 more.");
    // Only the names of the last ones are shown.
    browser.until_text("#files .change .file:last-of-type", "Further lines are not shown.");
    let rows = browser.value("document.querySelectorAll('#files .diff tr').length");
    assert!(rows.as_u64().is_some_and(|rows| rows < 4_000), "{rows}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn excluded_files_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "ignored.txt\n");
    sandbox.write("ignored.txt", "nobody looks\n");
    sandbox.write(".env", "PASSWORD=x\n");
    let studio = Studio::over(Server::over(sandbox), Look::default());
    let browser = &studio.browser;
    studio.make_thread();
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    browser.click("[data-tab=files]");
    browser.until_text("#files .in-all", "a.txt");
    browser.until_text("#files .not-held", ".env");
    browser.until_text("#files .not-held", "likely a secret");
    browser.click("#files .ignored summary");
    browser.until_text("#files .ignored", "ignored.txt");
    browser.picture("not-held");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
