//! All main actions with the keyboard alone.

use fantoccini::key::Key;

use crate::studio::Studio;

#[test]
fn a_thread_is_usable_by_keyboard_alone() {
    let studio = Studio::open();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.until("document.querySelector('[data-about=new-thread]')");
    browser.press(&[], 'n');
    browser.until("document.getElementById('draft')");

    browser.press(&[], 'i');
    browser.until("document.activeElement.id === 'draft'");
    // Settings and approval come later in the tab order.
    browser.press(&[], Key::Tab.into());
    browser.until("document.activeElement.id === 'set-to'");
    browser.press(&[], Key::Tab.into());
    browser.until("document.activeElement.id === 'approve'");
    browser.type_text("Tools: write");
    assert_eq!(browser.holds("#approve"), "edits");
    browser.press(&[Key::Shift], Key::Tab.into());
    browser.press(&[Key::Shift], Key::Tab.into());
    browser.type_text("create a.txt with keys");
    browser.press(&[Key::Control], Key::Enter.into());
    browser.until_count(".entry.user", 1);
    studio.until_idle();
    let count = studio.entries();
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("keys\n"));

    // Out of the message, up and down the entries.
    browser.press(&[], Key::Escape.into());
    browser.until("document.activeElement.id !== 'draft'");
    browser.press(&[], 'k');
    browser.until(&format!("document.activeElement.dataset.number === '{count}'"));
    for _ in 1..count {
        browser.press(&[], 'k');
    }
    browser.until("document.activeElement.dataset.number === '1'");
    browser.press(&[], 'j');
    browser.until("document.activeElement.dataset.number === '2'");
    browser.press(&[], 'k');
    browser.until("document.activeElement.dataset.number === '1'");

    browser.press(&[], 'e');
    browser.until("document.activeElement.matches('.editor textarea')");
    browser.type_text(" please");
    browser.press(&[Key::Control], Key::Enter.into());
    browser.until_text(".entry.user .entry-body", "create a.txt with keys please");
    browser.until("document.activeElement.matches('.entry.user')");

    browser.press(&[], 'c');
    browser.until_count(".entry.user > .preview", 1);
    browser.until("document.activeElement.matches('.entry.user')");
    browser.press(&[], 'c');
    browser.until_count(".entry.user > .entry-body", 1);

    // Two undos: the edit, then the turn with its file.
    for (entries, file) in [(count, Some("keys\n")), (0, None)] {
        browser.until_count("[data-act=undo]:not(:disabled)", 1);
        browser.press(&[Key::Control], 'z');
        browser.until("document.getElementById('dialog').open");
        browser.press(&[], Key::Enter.into());
        browser.until("!document.getElementById('dialog').open");
        studio.until_entries(entries);
        browser.until_gone(".edited");
        assert_eq!(sandbox.read("a.txt").as_deref(), file);
    }
    browser.until_count("[data-act=redo]:not(:disabled)", 1);
    browser.press(&[Key::Control], 'y');
    browser.until("document.getElementById('dialog').open");
    browser.press(&[], Key::Enter.into());
    studio.until_entries(count);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("keys\n"));

    browser.press(&[], '/');
    browser.until("document.activeElement.id === 'find'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
