//! Every control of an entry.

use fantoccini::key::Key;

use crate::studio::Studio;

const TALK: [(&str, &str); 3] =
    [("User", "one **bold** question"), ("AI", "first line\n\nsecond line"), ("User", "three")];

#[test]
fn an_entry_is_edited_in_place() {
    let studio = Studio::with_entries(&TALK);
    let browser = &studio.browser;
    let entry = Studio::entry(2);

    // Cancelled, by button and by key.
    studio.act_on(2, "edit");
    browser.type_into(&format!("{entry} .editor textarea"), " and more");
    browser.click(&format!("{entry} .editor [data-act=leave-edit]"));
    studio.confirm();
    browser.until_gone(".editor");
    studio.act_on(2, "edit");
    browser.type_into(&format!("{entry} .editor textarea"), " and more");
    browser.press(&[], Key::Escape.into());
    studio.confirm();
    browser.until_gone(".editor");
    assert_eq!(studio.texts(), ["one **bold** question", "first line\n\nsecond line", "three"]);

    // Saved, by button and by key.
    studio.act_on(2, "edit");
    assert_eq!(browser.holds(".editor textarea"), "first line\n\nsecond line");
    browser.fill(".editor textarea", "corrected");
    browser.click(".editor .primary");
    browser.until_text(&format!("{entry} .entry-body"), "corrected");
    browser.until_gone(".editor");
    studio.act_on(3, "edit");
    browser.type_into(".editor textarea", " hundred");
    browser.press(&[Key::Control], Key::Enter.into());
    browser.until_text(&format!("{} .entry-body", Studio::entry(3)), "three hundred");
    assert_eq!(studio.texts(), ["one **bold** question", "corrected", "three hundred"]);
    studio.reload();
    browser.until_text(&format!("{entry} .entry-body"), "corrected");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_entry_switches_between_rendered_and_source() {
    let studio = Studio::with_entries(&TALK);
    let browser = &studio.browser;
    let (entry, other) = (Studio::entry(1), Studio::entry(2));
    // A prompt is shown as source text.
    assert_eq!(browser.text(&format!("{entry} .entry-body .words")), "one **bold** question");

    studio.act_on(1, "source");
    browser.until_text(&format!("{entry} > pre.plain"), "one **bold** question");
    studio.act_on(2, "collapse");
    browser.until_text(&format!("{other} > .preview"), "first line");
    browser.until_gone(&format!("{other} .entry-body"));

    // Remembered, but not part of history.
    studio.reload();
    browser.until_text(&format!("{entry} > pre.plain"), "one **bold** question");
    browser.until_count(&format!("{other} > .preview"), 1);
    assert_eq!(browser.value("document.querySelectorAll('#history li').length"), 4);

    studio.act_on(1, "source");
    browser.until_count(&format!("{entry} .entry-body .words"), 1);
    studio.act_on(2, "collapse");
    browser.until_text(&format!("{other} .entry-body"), "second line");
}

#[test]
fn an_entry_is_re_roled_inserted_after_copied_and_deleted() {
    let studio = Studio::with_entries(&TALK);
    let browser = &studio.browser;

    studio.act_on(1, "role");
    browser.choose("#dialog select", "System");
    studio.confirm();
    browser.until(&format!("document.querySelector('{}').dataset.role === 'System'", Studio::entry(1)));

    studio.act_on(1, "insert");
    browser.choose(".inserting select", "AI");
    browser.type_into(".inserting textarea", "put in between");
    browser.click(".inserting .primary");
    studio.until_entries(4);
    browser.until_text(&Studio::entry(2), "put in between");
    browser.until_gone(".inserting");
    studio.act_on(1, "insert");
    browser.click(".inserting [data-act=leave-insert]");
    browser.until_gone(".inserting");

    studio.act_on(2, "copy");
    browser.until_text("#toasts", "Copied");
    browser.click("#draft");
    browser.press(&[Key::Control], 'v');
    assert_eq!(browser.holds("#draft"), "put in between");

    studio.act_on(3, "delete");
    studio.until_entries(3);
    let shown = studio.transcript();
    let shown: Vec<(&str, &str)> = shown.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect();
    assert_eq!(shown, [("System", "one **bold** question"), ("AI", "put in between"), ("User", "three")]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn forking_at_an_entry_restores_its_files() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with first");
    let after_first = studio.entries();
    studio.ask("create a.txt with second");
    let all = studio.entries();
    let was = browser.url();

    // Files move, so a preview is shown first.
    studio.act_on(after_first, "branch");
    browser.until_text("#dialog-body", "a.txt");
    studio.confirm();
    studio.until_entries(after_first);
    assert_eq!(studio.server.sandbox.read("a.txt").as_deref(), Some("first\n"));
    browser.until_count("#tree .here .takes li", 2);
    browser.picture("tree-with-branch");

    // Back, from the tree: first read-only, then active.
    browser.click("#tree .here .takes li:first-child a");
    studio.until_entries(all);
    assert_eq!(studio.server.sandbox.read("a.txt").as_deref(), Some("first\n"));
    browser.until_text(".notice", "This take is not active");
    browser.click(".notice [data-act=switch]");
    browser.until_text("#dialog-body", "a.txt");
    studio.confirm();
    browser.until_gone(".notice");
    browser.until(&format!("location.href === {was:?}"));
    assert_eq!(studio.server.sandbox.read("a.txt").as_deref(), Some("second\n"));
}

#[test]
fn a_retry_creates_another_take() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "all");
    studio.ask("run date +%N > when.txt");
    let (count, first) = (studio.entries(), studio.server.sandbox.read("when.txt"));
    browser.choose("#approve", "all");
    studio.act_on(1, "retry");
    // Files move, so a preview is shown first; cancelling changes nothing.
    browser.until_text("#dialog .paths", "when.txt");
    browser.click("#dialog-no");
    browser.until_gone("#dialog[open]");
    assert_eq!((studio.entries(), studio.server.sandbox.read("when.txt")), (count, first.clone()));
    studio.act_on(1, "retry");
    browser.until_text("#dialog .paths", "when.txt");
    studio.confirm();
    browser.until("location.search.includes('take=')");
    studio.until_entries(count);
    studio.until_idle();
    browser.until_count("#tree .here .takes li", 2);
    assert_ne!(studio.server.sandbox.read("when.txt"), first);
    // An answer cannot be retried.
    assert_eq!(browser.value("document.querySelectorAll('.entry:not(.user) [data-act=retry]').length"), 0);
}

#[test]
fn a_tool_result_shows_its_file_changes() {
    let studio = Studio::open();
    let browser = &studio.browser;
    studio.make_thread();
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with hello then read a.txt");
    // One of the two calls changed something.
    browser.until_text(".files-of summary", "1 file +");
    browser.click(".files-of summary");
    browser.until_text(".of-call .file", "a.txt");
    browser.until_text(".of-call tr.added", "hello");
    // No longer offered once the call was undone with its turn.
    browser.click("[data-act=undo]:not(:disabled)");
    studio.confirm();
    browser.until_gone(".of-call");
    // The next call reuses the id of the undone one, and is described by its own changes.
    browser.choose("#approve", "all");
    studio.ask("run echo 1 > b.txt; echo 2 > c.txt");
    browser.until_text(".files-of summary", "2 files +2");
    browser.click(".files-of summary");
    browser.until_text(".of-call", "c.txt");
    assert!(!browser.text(".of-call").contains("a.txt"), "{}", browser.text(".of-call"));
}

#[test]
fn messages_of_users_are_shown_verbatim_in_any_role() {
    let studio = Studio::with_entries(&[("Boss", "2*3*4 is _not_ bold"), ("AI", "it **is**")]);
    let browser = &studio.browser;
    assert_eq!(browser.text(&format!("{} .entry-body .words", Studio::entry(1))), "2*3*4 is _not_ bold");
    assert_eq!(browser.text(&format!("{} .entry-body strong", Studio::entry(2))), "is");
}
