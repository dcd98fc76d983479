//! The composer: approval, images, messages to a running turn, and questions.

use crate::studio::Studio;

#[test]
fn a_call_shows_its_effect_and_waits_for_approval() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "ask");

    studio.send("create a.txt with allowed");
    browser.until_text(".question", "a.txt");
    browser.until_text(".question pre", "allowed");
    browser.picture("question");
    assert_eq!(sandbox.read("a.txt"), None);
    browser.click(".question [data-about=allow]");
    browser.until_gone(".question");
    studio.until_idle();
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("allowed\n"));

    let before = studio.entries();
    studio.send("create b.txt with denied");
    browser.until_text(".question", "b.txt");
    browser.click(".question [data-about=deny]");
    browser.until_gone(".question");
    browser.until(&format!("Number(document.getElementById('conversation').dataset.count) > {before}"));
    studio.until_idle();
    assert_eq!(sandbox.read("b.txt"), None);

    // The same call is not asked about again.
    studio.send("run echo always >> c.txt");
    browser.until_text(".question", "echo always");
    browser.click(".question [data-about=always]");
    browser.until_gone(".question");
    studio.until_idle();
    studio.ask("run echo always >> c.txt");
    assert_eq!(sandbox.read("c.txt").as_deref(), Some("always\nalways\n"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_approval_mode_is_chosen_before_a_turn() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    browser.choose("#approve", "none");
    studio.ask("create a.txt with no");
    assert_eq!(sandbox.read("a.txt"), None);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with yes");
    assert_eq!(sandbox.read("a.txt").as_deref(), Some("yes\n"));
    browser.choose("#approve", "all");
    studio.ask("run echo shell > b.txt");
    assert_eq!(sandbox.read("b.txt").as_deref(), Some("shell\n"));
}

#[test]
fn a_running_turn_is_steered_and_stopped() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.send("say before\nwait 60");
    browser.until("!document.getElementById('stop').hidden");
    browser.until_text("#send", "Steer");
    // Text is visible as it arrives.
    browser.until("!document.getElementById('live').hidden && document.getElementById('live-text').textContent.length > 5");
    browser.picture("streaming");
    browser.until_text("#tree .here", "running");
    studio.send("say heard you");
    browser.click("#stop");
    studio.until_idle();
    browser.until("document.getElementById('stop').hidden");
    browser.until_text("#send", "Send");
    browser.until_gone(".question");
    browser.until("document.getElementById('live-text').textContent === ''");
    // The page is usable right away.
    studio.ask("say after");
    assert!(studio.texts().iter().any(|text| text == "after"), "{:?}", studio.texts());
}

#[test]
fn a_steering_message_reaches_the_turn() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.choose("#approve", "all");
    studio.send("wait 2\nrun true");
    browser.until_text("#send", "Steer");
    studio.send("say heard you");
    // The message is shown as pending until the next model request.
    browser.until_text("#turn .queue", "say heard you");
    browser.picture("queue");
    studio.until_idle();
    browser.until_gone(".queue");
    browser.until("[...document.querySelectorAll('.entry.assistant')].some((one) => one.textContent.includes('heard you'))");
    assert!(studio.texts().contains(&"say heard you".to_owned()), "{:?}", studio.texts());
}

#[test]
fn a_picture_is_sent_with_the_prompt() {
    // A minimal image of one pixel.
    const PIXEL: &[u8] = &[
        0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T', 0x78, 0x9c,
        0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0, 0, 0, 0, b'I', b'E',
        b'N', b'D', 0xae, 0x42, 0x60, 0x82,
    ];
    let mut studio = Studio::with_thread();
    let path = studio.server.sandbox.config().with_file_name("pixel.png");
    std::fs::write(&path, PIXEL).expect("our folder");
    let attached = "document.querySelector('#attached img')?.naturalWidth === 1";
    studio.browser.type_into("#pictures", path.to_str().expect("a plain path"));
    studio.browser.until(attached);
    assert_eq!(studio.browser.holds("#pictures"), "");
    // It is part of the draft: it survives a reload, a crash and an undo of its removal.
    studio.reload();
    studio.browser.until(attached);
    studio.server.kill();
    studio.server.start_again();
    studio.reload();
    studio.browser.until(attached);
    studio.browser.click("#attached button");
    studio.browser.until_gone("#attached img");
    studio.browser.until("document.activeElement.id === 'draft'");
    studio.undo();
    studio.browser.until(attached);
    studio.browser.click("#attached button");
    studio.browser.until_gone("#attached img");
    // Pasting works too.
    let given = "const given = new DataTransfer();
        given.items.add(new File([new Uint8Array(arguments[0])], 'given.png', {type: 'image/png'}));";
    let pixel = [serde_json::json!(PIXEL)];
    let paste = "document.getElementById('draft').dispatchEvent(
        new ClipboardEvent('paste', {clipboardData: given, bubbles: true, cancelable: true}));";
    studio.browser.run(&format!("{given} {paste}"), &pixel);
    studio.browser.until(attached);
    studio.browser.picture("attached");
    studio.browser.click("#attached button");
    studio.browser.until_gone("#attached img");
    // Dropped beside the field together with another file, and sent at once: it is still attached.
    let drop = "given.items.add(new File(['text'], 'notes.txt', {type: 'text/plain'}));
        return !document.getElementById('conversation').dispatchEvent(
            new DragEvent('drop', {dataTransfer: given, bubbles: true, cancelable: true}));";
    let prevented = studio.browser.run(&format!("{given} {drop}"), &pixel);
    assert_eq!(prevented, true, "a browser would open the file");
    studio.send("say seen");
    studio
        .browser
        .until_text("#toasts .bad", "notes.txt: not a png, jpg, gif or webp picture, nor a PDF document");
    studio.until_entries(2);
    studio.until_idle();
    studio.browser.until("document.querySelector('.entry.user img.picture')?.naturalWidth === 1");
    studio.browser.until_gone("#attached img");
    studio.undo();
    studio.browser.until(attached);
    assert_eq!(studio.browser.holds("#draft"), "say seen");
    studio.redo();
    studio.browser.until_gone("#attached img");
    studio.reload();
    studio.browser.until("document.querySelector('.entry.user img.picture')?.naturalWidth === 1");
    assert_eq!(studio.browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_empty_thread_offers_examples() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.click("[data-act=try]");
    assert_eq!(browser.holds("#draft"), "create hello.txt with Hello from Retake");
    browser.choose("#approve", "edits");
    browser.click("#send");
    browser.until_count(".entry.user", 1);
    studio.until_idle();
    browser.until_gone(".empty:not([hidden])");
    assert_eq!(studio.server.sandbox.read("hello.txt").as_deref(), Some("Hello from Retake\n"));
}
