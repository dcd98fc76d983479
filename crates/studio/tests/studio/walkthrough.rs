//! The main scenario of Retake, from start to end, in a browser.
//!
//! An agent went wrong three turns ago and edited many files, partly through the shell. The user goes back, with files
//! and conversation; keeps hand edits made since; corrects one wrong sentence of the assistant; retries the same prompt
//! twice; compares; keeps the better take; closes the browser; and continues elsewhere.

use crate::browser::{Browser, Look};
use crate::studio::Studio;

const FILES: usize = 14;

#[test]
fn a_whole_session_from_first_prompt_to_comparison() {
    let studio = Studio::with_thread();
    let Studio { browser, server } = &studio;
    let sandbox = &server.sandbox;
    browser.choose("#approve", "all");

    // Good work first.
    studio.ask(
        "create app.txt with \"name: app\\nport: 80\\nmode: slow\\n\"\nsay The port is 81, as you asked.",
    );
    assert_eq!(sandbox.read("app.txt").as_deref(), Some("name: app\nport: 80\nmode: slow\n"));
    let good = studio.entries();

    // Then three wrong turns, which create and change files, mostly through the shell.
    studio.ask(&format!("run for n in $(seq 1 {FILES}); do echo wrong > part-$n.txt; done"));
    studio.ask("edit app.txt: replace \"mode: slow\" with \"mode: wrong\"\nrun rm part-1.txt && echo worse >> part-2.txt");
    studio.ask("create notes.txt with all wrong\nrun mkdir -p deep && echo wrong > deep/inside.txt");
    assert_eq!(sandbox.read("part-2.txt").as_deref(), Some("wrong\nworse\n"));

    // Hand edits: elsewhere in a file that the turns changed, and in another file.
    sandbox.write("app.txt", "name: my app\nport: 80\nmode: wrong\n");
    sandbox.write("mine.txt", "by hand\n");

    // Three undos, each with a preview. The typed draft is restored as a separate step.
    let mut preview = String::new();
    while studio.entries() > good {
        browser.click("[data-act=undo]:not(:disabled)");
        browser.until("document.getElementById('dialog').open");
        preview.push_str(&browser.text("#dialog-body"));
        browser.picture("story-undo");
        studio.confirm_move();
    }
    for path in ["notes.txt", "deep/inside.txt", "app.txt", "part-1.txt", "part-14.txt"] {
        assert!(preview.contains(path), "{path} is not in {preview}");
    }
    assert!(
        browser.holds("#draft").contains("part-$n.txt"),
        "the message is there to be changed and sent again"
    );
    for gone in ["notes.txt", "deep/inside.txt", "part-1.txt", "part-2.txt", "part-14.txt"] {
        assert_eq!(sandbox.read(gone), None, "{gone} went with the turn that made it");
    }
    assert_eq!(sandbox.read("app.txt").as_deref(), Some("name: my app\nport: 80\nmode: slow\n"));
    assert_eq!(sandbox.read("mine.txt").as_deref(), Some("by hand\n"));

    // One wrong sentence of the assistant is corrected in place.
    let wrong = browser.value(
        "[...document.querySelectorAll('.entry.assistant')].find((one) => one.textContent.includes('81')).id",
    );
    let wrong = format!("#{}", wrong.as_str().expect("the assistant said it"));
    studio.act_in(&wrong, "edit");
    let text = browser.holds(&format!("{wrong} .editor textarea"));
    browser.fill(&format!("{wrong} .editor textarea"), &text.replace("81", "80"));
    browser.click(&format!("{wrong} .editor .primary"));
    browser.until_text(&format!("{wrong} .entry-body"), "The port is 80");
    browser.until_text(&wrong, "edited");
    assert_eq!(studio.entries(), good);

    // The same prompt twice.
    studio.ask("run date +%N > answer.txt; cat answer.txt");
    let first = sandbox.read("answer.txt").expect("the first take wrote it");
    let count = studio.entries();
    let prompt = good + 1;
    studio.act_on(prompt, "retry");
    browser.until_text("#dialog .paths", "answer.txt");
    studio.confirm();
    browser.until(&format!("location.search.includes('take=') && Number(document.getElementById('conversation')?.dataset.count) === {count}"));
    studio.until_idle();
    let take = browser.url();
    browser.picture("story-retry");

    // Side by side.
    browser.click("#bar details.menu:first-of-type > summary");
    browser.click("#bar details.menu:first-of-type a");
    browser.until_count("#compare .side", 2);
    browser.until_text("#compare .differ", "answer.txt");
    assert!(browser.text("#compare .differ").contains(first.trim()), "{}", browser.text("#compare .differ"));
    browser.picture("story-compare");

    // The second take is active, its files are in the folder, and the hand edits too.
    browser.click("#compare .side:first-child [data-act=switch]");
    browser.until("document.querySelector('#draft')");
    browser.until_gone(".notice");
    let second = sandbox.read("answer.txt").expect("the second take wrote it");
    assert_ne!(second, first);
    assert_eq!(sandbox.read("app.txt").as_deref(), Some("name: my app\nport: 80\nmode: slow\n"));
    assert_eq!(sandbox.read("mine.txt").as_deref(), Some("by hand\n"));

    // A reload, and another browser, show the same.
    let shown = browser.texts(".piece > .entry .entry-body");
    browser.reload();
    browser.until("document.querySelector('#draft')");
    assert_eq!(browser.texts(".piece > .entry .entry-body"), shown);
    let elsewhere = Browser::open(Look::default());
    elsewhere.go(&server.another_link());
    elsewhere.go(&take);
    elsewhere.until("document.querySelector('#draft')");
    assert_eq!(elsewhere.texts(".piece > .entry .entry-body"), shown);
    elsewhere.picture("story-elsewhere");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
