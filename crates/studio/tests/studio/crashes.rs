//! Reloads and crashes while typing and during a turn.

use crate::browser::Look;
use crate::server::Server;
use crate::studio::Studio;
use retake_testing::interrupted_move;

#[test]
fn a_draft_survives_a_reload_and_a_crash() {
    let mut studio = Studio::with_thread();
    studio.browser.type_into("#draft", "half a thought");
    studio.reload();
    assert_eq!(studio.browser.holds("#draft"), "half a thought");
    studio.browser.until_text("#history li:first-child", "half a thought");
    let thread = studio.thread();
    let shown = studio.server.sandbox.json(&["thread", "show", &thread]);
    assert_eq!(shown["draft"], "half a thought");

    studio.server.kill();
    studio.browser.type_into("#draft", ", and the other half");
    studio.browser.until("document.body.classList.contains('offline')");
    studio.browser.picture("offline");
    studio.server.start_again();
    studio.browser.until("!document.body.classList.contains('offline')");
    studio.reload();
    assert_eq!(studio.browser.holds("#draft"), "half a thought, and the other half");
    studio.browser.until_text("#history li:first-child", "half a thought, and the other half");
    let shown = studio.server.sandbox.json(&["thread", "show", &thread]);
    assert_eq!(shown["draft"], "half a thought, and the other half");
}

#[test]
fn an_unsaved_edit_survives_a_crash_and_a_reload() {
    let mut studio = Studio::with_entries(&[("User", "question"), ("AI", "wrong answer")]);
    let area = format!("{} .editor textarea", Studio::entry(2));
    studio.act_on(2, "edit");
    studio.browser.fill(&area, "right");
    studio.server.kill();
    studio.browser.type_into(&area, " answer");
    studio.browser.until("document.body.classList.contains('offline')");
    studio.server.start_again();
    studio.browser.until("!document.body.classList.contains('offline')");
    assert_eq!(studio.browser.holds(&area), "right answer");
    studio.reload();
    studio.browser.until_count(&area, 1);
    assert_eq!(studio.browser.holds(&area), "right answer");
    studio.browser.click(&format!("{} .editor .primary", Studio::entry(2)));
    studio.browser.until_text(&format!("{} .entry-body", Studio::entry(2)), "right answer");
    assert_eq!(studio.texts(), ["question", "right answer"]);
    studio.reload();
    assert_eq!(studio.browser.value("document.querySelectorAll('.editor').length"), 0);
}

#[test]
fn a_reloaded_page_shows_the_running_turn() {
    let studio = Studio::with_thread();
    studio.send("say here\nwait 60");
    studio.browser.until("!document.getElementById('stop').hidden");
    studio.reload();
    studio.browser.until("!document.getElementById('stop').hidden");
    studio.browser.until_text("#send", "Steer");
    studio.browser.click("#stop");
    studio.until_idle();
}

#[test]
fn a_turn_of_a_killed_server_is_shown_as_unfinished_and_resumed() {
    let mut studio = Studio::with_thread();
    studio.browser.choose("#approve", "all");
    studio.send("create a.txt with done before\nrun sleep 5; echo done >> b.txt\nsay all done");
    studio.browser.until_text(".piece", "a.txt");
    studio.browser.until("document.getElementById('turn').dataset.running === 'true'");
    studio.server.kill();
    studio.browser.until("document.body.classList.contains('offline')");
    studio.server.start_again();
    // Without a reload.
    studio.browser.until_text(".question", "A turn is unfinished");
    studio.browser.picture("unfinished");
    studio.browser.click(".question [data-act=resume]");
    studio.browser.until_gone(".question");
    studio.until_idle();
    studio.browser.until("document.querySelector('.entry.assistant:last-child')");
    assert_eq!(studio.server.sandbox.read("a.txt").as_deref(), Some("done before\n"));
    // The page is usable as before.
    studio.ask("say after");
    assert!(studio.texts().iter().any(|text| text == "after"), "{:?}", studio.texts());
}

#[test]
fn an_interrupted_move_is_shown_and_completed_by_an_undo() {
    let studio = Studio::over(Server::over(interrupted_move::changed()), Look::default());
    studio.browser.until_count("#draft", 1);
    interrupted_move::interrupt(&studio.server.sandbox);
    studio.reload();
    studio.browser.until_text("[data-about=pending-move]", "A move of files was interrupted");
    studio.browser.picture("interrupted move");
    studio.browser.click("#bar [data-act=undo]");
    studio.browser.until_text("#toasts", "An interrupted move was finished first");
    studio.browser.until("document.querySelector('dialog[open]')");
    assert_eq!(studio.server.sandbox.read("a").as_deref(), Some("one\n"));
    studio.browser.until_gone("[data-about=pending-move]");
}
