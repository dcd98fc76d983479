//! Undo and redo by button and key, the history, and the tabs on the right.

use fantoccini::key::Key;

use crate::studio::Studio;

#[test]
fn undo_and_redo_work_by_button_and_keys_with_a_preview() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    let count = studio.entries();
    assert_eq!(browser.value("document.querySelector('[data-act=redo]').disabled"), true);

    browser.click("[data-act=undo]");
    browser.until_text("#dialog-body", "a.txt");
    browser.until_text("#dialog-body", &format!("{count} entries removed"));
    browser.picture("undo-preview");
    // Cancelled.
    browser.press(&[], Key::Escape.into());
    browser.until("!document.getElementById('dialog').open");
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));

    studio.undo();
    studio.until_entries(0);
    browser.until_text("#toasts .paths", "a.txt removed");
    assert_eq!(sandbox.read("a.txt"), None);
    studio.redo();
    studio.until_entries(count);
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));

    browser.click("#conversation");
    for (key, act, entries, file) in [('z', "undo", 0, None), ('y', "redo", count, Some("one\n"))] {
        browser.until_count(&format!("[data-act={act}]:not(:disabled)"), 1);
        browser.press(&[Key::Control], key);
        browser.until("document.getElementById('dialog').open");
        browser.press(&[], Key::Enter.into());
        studio.until_entries(entries);
        assert_eq!(sandbox.read("a.txt").as_deref(), file);
    }
    // In a field with content, these keys belong to the field.
    browser.type_into("#draft", "half a thought");
    browser.press(&[Key::Control], 'z');
    browser.until("document.getElementById('draft').value !== 'half a thought'");
    assert_eq!(browser.value("document.getElementById('dialog').open"), false);
    assert_eq!(studio.texts().len(), count);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn every_version_can_be_jumped_to_even_undone_ones() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    let count = studio.entries();
    let reached = browser.text("#history li.current .number");
    studio.undo();
    studio.until_entries(0);
    studio.ask("create b.txt with other");
    browser.until_text("#history", "undone");
    assert_eq!(sandbox.read("a.txt"), None);

    browser.click(&format!("#history [data-act=jump][data-version='{reached}']"));
    browser.until_text("#dialog-body", "a.txt");
    browser.until_text("#dialog-body", "b.txt");
    studio.confirm_move();
    studio.until_entries(count);
    browser.until_text(".piece", "a.txt");
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("one\n"));
    assert_eq!(sandbox.read("b.txt"), None);
    assert!(
        browser.text("#history li.current").contains("one")
            || !browser.texts("#history li.current").is_empty()
    );
    browser.picture("history");
}

#[test]
fn conflicting_files_show_both_versions_and_a_choice() {
    let studio = Studio::open();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    for (way, left) in [("keep", "mine\n"), ("take", "one\n"), ("mark", "<<<<<<<")] {
        let file = format!("{way}.txt");
        studio.make_thread();
        browser.choose("#approve", "edits");
        studio.ask(&format!("create {file} with one"));
        studio.ask(&format!("edit {file}: replace \"one\" with \"two\""));
        sandbox.write(&file, "mine\n");
        browser.click("[data-act=undo]:not(:disabled)");
        browser.until_text("#dialog-body fieldset", &file);
        browser.click("#dialog-body fieldset summary");
        browser.until_text("#dialog-body fieldset details", "mine");
        browser.until_text("#dialog-body fieldset details", "one");
        browser.picture("conflict");
        browser.click(&format!("#dialog-body [value={way}]"));
        if way == "keep" {
            // Skipped paths are listed.
            browser.click("#dialog-yes");
            browser.until_text("#dialog-body h2", "Partly done");
            browser.until_text("#dialog-body .paths", &file);
            studio.confirm();
            studio.until_idle();
        } else {
            studio.confirm_move();
        }
        let now = sandbox.read(&file).expect("it is there");
        assert!(now.starts_with(left), "{way}: {now}");
    }
}

#[test]
fn the_tabs_show_history_files_and_settings() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.click("[data-tab=files]");
    browser.until_text("#files", "No files have changed yet");
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with one");
    // Changes are rendered into the open tab.
    browser.until_text("#files .file", "a.txt");
    browser.until_text("#files .diff tr.added", "one");
    sandbox.write("a.txt", "by hand\n");
    studio.ask("create b.txt with two");
    browser.until_text("#files", "by hand");
    browser.picture("files");
    browser.click("#files .change:last-of-type h2 a");
    browser.until_text(".notice", "of this thread");
    browser.click(".notice a");
    browser.until_gone(".notice");
    browser.click("[data-tab=history]");
    browser.until_count("#history", 1);
    browser.click("[data-tab=settings]");
    browser.until_count("#settings", 1);
    assert_eq!(browser.value("document.querySelector('[role=tab][data-tab=settings]').ariaSelected"), "true");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
