//! Two windows on one thread: changes in one appear in the other without disturbing it.

use serde_json::{Value, json};

use crate::studio::Studio;

const MANY: usize = 60;

/// A thread of many entries in two windows, with the first one focused.
fn two_windows() -> (Studio, crate::browser::Window, crate::browser::Window) {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    studio.add((1..=MANY).map(|number| format!("entry {number}\n\n{}", "more words. ".repeat(40))));
    studio.reload();
    let (one, other) = (browser.window(), browser.another_window());
    let url = browser.url();
    browser.look_at(&other);
    browser.go(&url);
    browser.until("document.getElementById('draft')");
    browser.look_at(&one);
    (studio, one, other)
}

/// The position of an entry on the screen, once scrolling has rendered everything.
fn settled_top_of(studio: &Studio, entry: &str) -> f64 {
    let mut last = f64::NAN;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = top_of(studio, entry);
        if (now - last).abs() < 0.5 {
            return now;
        }
        last = now;
    }
}

fn top_of(studio: &Studio, entry: &str) -> f64 {
    let top = studio
        .browser
        .run("return arguments[0].getBoundingClientRect().top;", &[studio.browser.element(entry)]);
    top.as_f64().expect("a number")
}

fn id_of(studio: &Studio, number: usize) -> String {
    let selector = format!("[data-number='{number}']");
    let id = studio.browser.run("return arguments[0].id;", &[studio.browser.element(&selector)]);
    format!("#{}", id.as_str().expect("an entry has an id"))
}

fn edit_as(studio: &Studio, entry: &str, text: &str) {
    studio.browser.click(&format!("{entry} [data-act=edit]"));
    studio.browser.fill(&format!("{entry} .editor textarea"), text);
    studio.browser.click(&format!("{entry} .editor .primary"));
    studio.browser.until_text(&format!("{entry} .entry-body"), text);
}

#[test]
fn an_edit_appears_in_the_other_window_without_scrolling() {
    let (studio, one, other) = two_windows();
    let browser = &studio.browser;
    let (changed, read) = (id_of(&studio, 44), id_of(&studio, 52));
    browser.run("arguments[0].scrollIntoView({block: 'start'});", &[browser.element(&read)]);
    let before = settled_top_of(&studio, &read);

    browser.look_at(&other);
    edit_as(&studio, &changed, "changed, and much shorter");
    studio.add(["said in the other window".to_owned()]);

    browser.look_at(&one);
    browser.until_text(&format!("{changed} .entry-body"), "changed, and much shorter");
    browser.until(&format!("document.getElementById('conversation').dataset.count === '{}'", MANY + 1));
    let after = top_of(&studio, &read);
    assert!((before - after).abs() < 3.0, "what was being read moved from {before} to {after}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_unsaved_edit_is_preserved_and_a_conflict_shows_both() {
    let (studio, one, other) = two_windows();
    let browser = &studio.browser;
    let (mine, above) = (id_of(&studio, 58), id_of(&studio, 57));
    let area = format!("{mine} .editor textarea");
    browser.click(&format!("{mine} [data-act=edit]"));
    browser.fill(&area, "half of my");
    // Another entry is being inserted, too.
    browser.click(&format!("{above} [data-act=insert]"));
    browser.type_into(".inserting textarea", "half an entry");
    browser.click(&area);

    browser.look_at(&other);
    edit_as(&studio, &above, "something else");
    browser.look_at(&one);
    browser.until_text(&format!("{above} .entry-body"), "something else");
    assert_eq!(browser.holds(&area), "half of my");
    assert_eq!(browser.holds(".inserting textarea"), "half an entry");
    assert_eq!(browser.value("document.querySelectorAll('.conflict').length"), 0);
    assert_eq!(
        browser.value("document.activeElement.matches('.editor textarea')"),
        true,
        "the keyboard is still there"
    );

    browser.look_at(&other);
    edit_as(&studio, &mine, "their whole sentence");
    browser.look_at(&one);
    browser.until_text(&format!("{mine} .conflict"), "their whole sentence");
    assert_eq!(browser.holds(&area), "half of my");
    browser.picture("edit-conflict");
    browser.type_into(&area, " sentence");
    browser.click(&format!("{mine} .editor .primary"));
    browser.until_text(&format!("{mine} .entry-body"), "half of my sentence");

    browser.look_at(&other);
    browser.until_text(&format!("{mine} .entry-body"), "half of my sentence");
    browser.click(&format!("{mine} [data-act=delete]"));
    browser.until_gone(&mine);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn deleting_an_entry_elsewhere_preserves_an_unsaved_edit() {
    let (studio, one, other) = two_windows();
    let browser = &studio.browser;
    let mine = id_of(&studio, 58);
    browser.click(&format!("{mine} [data-act=edit]"));
    browser.fill(&format!("{mine} .editor textarea"), "half of my");
    browser.look_at(&other);
    browser.click(&format!("{mine} [data-act=delete]"));
    browser.until_gone(&mine);
    browser.look_at(&one);
    browser.until_text(&format!("{mine} .conflict"), "Deleted elsewhere");
    assert_eq!(browser.holds(&format!("{mine} .editor textarea")), "half of my");
}

#[test]
fn a_turn_is_followed_in_both_windows() {
    let (studio, one, other) = two_windows();
    let browser = &studio.browser;
    studio.send("say here\nwait 2");
    browser.look_at(&other);
    browser.until("!document.getElementById('live').hidden && !document.getElementById('stop').hidden");
    browser.look_at(&one);
    studio.until_idle();
    let shown: Vec<Value> = [&one, &other]
        .into_iter()
        .map(|window| {
            browser.look_at(window);
            studio.until_idle();
            studio.until_entries(MANY + 2);
            json!(browser.texts(".piece:last-of-type > .entry .entry-body"))
        })
        .collect();
    assert_eq!(shown[0], shown[1]);
}
