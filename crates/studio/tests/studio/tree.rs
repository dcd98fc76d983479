//! The tree of threads and takes, with labels, filters and search.

use fantoccini::key::Key;
use serde_json::{Value, json};

use crate::browser::{Browser, Look, Scheme};
use crate::studio::Studio;
use crate::views::api;

/// Creates numbered threads.
fn make_many(browser: &Browser, count: usize) {
    let script = "
        const headers = { 'Content-Type': 'application/json' };
        return (async (count) => {
            for (let number = 1; number <= count; number++) {
                const body = JSON.stringify({ title: `Number ${number}` });
                const { status } = await fetch('/v1/threads', { method: 'POST', headers, body });
                if (status !== 201) throw Error(status);
            }
        })(arguments[0]);";
    browser.run(script, &[json!(count)]);
}

/// Creates a thread with this title.
fn make(browser: &Browser, title: &str) -> String {
    let made = api(browser, "POST", "/v1/threads", &json!({"title": title}));
    made["thread"].as_str().expect("an id").to_owned()
}

/// Selects which kind of threads is shown.
fn choose(browser: &Browser, kind: &str) {
    browser.click(&format!("#filters label:has([value='{kind}'])"));
}

/// Waits until exactly these threads are shown, in order.
fn until_titles(browser: &Browser, titles: &[&str]) {
    browser.until(&format!(
        "JSON.stringify([...document.querySelectorAll('#tree .title')].map((one) => one.lastChild.textContent.trim())) === {}",
        json!(json!(titles).to_string())
    ));
}

/// Changes another thread, and waits until it is rendered.
fn happens_elsewhere(browser: &Browser, thread: &str) {
    browser.run("document.getElementById('threads').dataset.old = 'yes';", &[]);
    api(
        browser,
        "POST",
        &format!("/v1/threads/{thread}/entries"),
        &json!({"entries": [{"content": "something"}]}),
    );
    browser.until("!document.getElementById('threads').dataset.old");
}

fn takes(studio: &Studio) -> Vec<Value> {
    let path = format!("/v1/threads/{}/takes", studio.thread());
    let takes = api(&studio.browser, "GET", &path, &Value::Null);
    takes["items"].as_array().expect("a list").clone()
}

#[test]
fn a_branch_shows_the_git_commit_of_its_source() {
    let studio = Studio::with_thread();
    let (browser, sandbox) = (&studio.browser, &studio.server.sandbox);
    for folder in [".git/objects", ".git/refs/heads"] {
        std::fs::create_dir_all(sandbox.project().join(folder)).expect("a new folder");
    }
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write(".git/refs/heads/main", &format!("{}\n", "c".repeat(40)));
    studio.add(["one".to_owned(), "two".to_owned()]);
    studio.until_entries(2);
    studio.act_on(1, "branch");
    browser.until_text("#tree .here .takes li:nth-child(2)", "from #1 @ccccccc");
}

#[test]
fn a_take_shows_its_fork_point_file_changes_and_link() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    browser.until_count("#tree .here .takes li", 1);
    browser.choose("#approve", "edits");
    studio.ask("create a.txt with \"one\\ntwo\\n\"");
    browser.until_text("#tree .here .changed", "1 file +2");
    let branched_at = studio.entries();
    studio.ask("edit a.txt: replace \"two\" with \"three\"");
    studio.ask("create b.txt with main only");
    browser.until_text("#tree .here .changed", "2 files +3");
    let all = studio.entries();
    studio.act_on(branched_at, "branch");
    studio.confirm();
    studio.until_entries(branched_at);
    browser.until_count("#tree .here .takes li", 2);
    browser.choose("#approve", "edits");
    studio.ask("edit a.txt: replace \"two\" with \"four\\nfive\"");

    let line = |number: usize| format!("#tree .here .takes li:nth-child({number})");
    browser.until_text(&line(1), "2 files +3");
    browser.until_text(&line(2), "1 file +2 −1");
    browser.until_text(&line(2), &format!("from #{branched_at}"));
    browser.until_count("#tree .here .graph path.way", 1);
    browser.until_count("#tree .here .graph circle.active", 1);
    browser.until_count("#tree .here .graph circle.point", 1);
    browser.until_count(&format!("{} > a.active[aria-current=page]", line(2)), 1);
    browser.picture("tree-takes");

    // In another thread's view, the active take represents the thread.
    let (thread, other) = (studio.thread(), make(browser, "Other"));
    browser.go(&format!("{}/studio/threads/{other}", studio.server.url));
    browser.until_text(&format!("[data-thread='{thread}'] > a .changed"), "1 file +2 −1");
    browser.go(&format!("{}/studio/threads/{thread}", studio.server.url));
    browser.until("document.getElementById('draft')");

    // An undo removes the badge with the files.
    studio.undo();
    browser.until_gone(&format!("{} .changed", line(2)));
    studio.redo();
    browser.until_count(&format!("{} .changed", line(2)), 1);

    // The fork point links to the entry in the source take.
    browser.click(&format!("{} p a", line(2)));
    studio.until_entries(all);
    browser.until(&format!("document.activeElement.dataset.number === '{branched_at}'"));
    browser.until_count(&format!("{} > a[aria-current=page]", line(1)), 1);
    browser.until_count(&format!("{} > a.active", line(2)), 1);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_running_turn_is_marked_in_the_tree() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    make(browser, "Idle");
    studio.send("say here\nwait 3");
    browser.until_text("#tree .here .runs", "running");
    browser.until_count("#tree .here .graph .running", 1);
    choose(browser, "running");
    browser.until_count("#tree .thread", 1);
    browser.until_count("#tree .thread.here", 1);
    studio.until_idle();
    browser.until_text("#threads", "No turn is running.");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_promoted_thread_is_listed_below_its_parent() {
    let studio = Studio::with_entries(&[("User", "one"), ("AI", "two")]);
    let browser = &studio.browser;
    studio.act_on(1, "branch");
    studio.until_entries(1);
    let thread = studio.thread();
    let take = takes(&studio)[1]["id"].as_str().expect("an id").to_owned();
    let promoted = api(browser, "POST", &format!("/v1/threads/{thread}/takes/{take}/promote"), &json!({}));
    let promoted = promoted["promoted"]["thread"].as_str().expect("an id");
    browser.until_count(&format!("[data-thread='{thread}'] > ul.below > [data-thread='{promoted}']"), 1);
    browser.picture("tree-below");
    // Alone it represents itself.
    browser.type_into("#find", &promoted[..13]);
    browser.until_count("#tree .thread", 1);
    browser.until_count(&format!("#threads section > ul > [data-thread='{promoted}']"), 1);
}

#[test]
fn labels_show_the_properties_of_a_thread() {
    let studio = Studio::with_entries(&[("User", "one")]);
    let browser = &studio.browser;
    let thread = format!("/v1/threads/{}", studio.thread());
    api(browser, "POST", &format!("{thread}/tags"), &json!({"add": ["login"]}));
    api(browser, "PUT", &format!("{thread}/pinned"), &json!({"pinned": true}));
    api(browser, "PUT", &format!("{thread}/sharing"), &json!({"private": true}));
    api(browser, "PATCH", &format!("{thread}/settings"), &json!({"model": "claude-sonnet-4"}));
    api(browser, "POST", &format!("{thread}/save"), &json!({"name": "before the rewrite"}));
    browser.until_text("#tree .here .moments", "before the rewrite");
    browser.until_text("#tree .here .tag", "login");
    browser.until_count("#tree .here .pin", 1);
    browser.until_text("#tree .here > a .facts", "private · claude-sonnet-4");
    browser.picture("tree-labels");
    browser.click("#tree .moments a");
    browser.until_text(".notice", "of this thread");
}

#[test]
fn filters_narrow_the_tree_and_survive_updates() {
    let studio = Studio::with_entries(&[("User", "one")]);
    let browser = &studio.browser;
    let here = studio.thread();
    let [pinned, private, away] =
        ["Pinned one", "Private one", "Put away one"].map(|title| make(browser, title));
    api(browser, "PUT", &format!("/v1/threads/{pinned}/pinned"), &json!({"pinned": true}));
    api(browser, "PUT", &format!("/v1/threads/{private}/sharing"), &json!({"private": true}));
    api(browser, "DELETE", &format!("/v1/threads/{away}"), &Value::Null);
    until_titles(browser, &["Pinned one", "Private one", "A thread"]);

    choose(browser, "private");
    until_titles(browser, &["Private one"]);
    happens_elsewhere(browser, &here);
    until_titles(browser, &["Private one"]);
    choose(browser, "pinned");
    until_titles(browser, &["Pinned one"]);
    // A page opened from there has the same filter.
    browser.click("#tree .thread > a");
    browser.until_text("#bar h1", "Pinned one");
    until_titles(browser, &["Pinned one"]);
    browser.until("document.querySelector('#filters [value=pinned]').checked");

    choose(browser, "deleted");
    until_titles(browser, &["Put away one"]);
    browser.picture("tree-deleted");
    browser.click("#tree .thread .back");
    browser.until_text("#threads", "No thread is deleted.");
    choose(browser, "");
    until_titles(browser, &["Pinned one", "Put away one", "A thread", "Private one"]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn clicking_a_tag_filters_threads() {
    let studio = Studio::with_entries(&[("User", "one")]);
    let browser = &studio.browser;
    let here = studio.thread();
    for title in ["Login", "Other"] {
        let thread = make(browser, title);
        let tag = json!({"add": [if title == "Login" { "urgent" } else { "later" }]});
        api(browser, "POST", &format!("/v1/threads/{thread}/tags"), &tag);
    }
    until_titles(browser, &["Other", "Login", "A thread"]);
    browser.click("#tree .tag[value='#urgent']");
    until_titles(browser, &["Login"]);
    assert_eq!(browser.holds("#find"), "#urgent");
    happens_elsewhere(browser, &here);
    until_titles(browser, &["Login"]);
    browser.click("#tree .thread > a");
    browser.until_text("#bar h1", "Login");
    until_titles(browser, &["Login"]);
    browser.fill("#find", "");
    until_titles(browser, &["A thread", "Other", "Login"]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn threads_on_later_pages_are_found_by_name_take_id_and_paging() {
    const MANY: usize = 130;
    let studio = Studio::with_entries(&[("User", "one"), ("AI", "two")]);
    let browser = &studio.browser;
    let first = studio.thread();
    let entry = browser.run("return document.querySelector('.piece > .entry').id.slice(2);", &[]);
    let branch = json!({"entry": entry, "name": "A cunning plan"});
    api(browser, "POST", &format!("/v1/threads/{first}/branch"), &branch);
    let take = takes(&studio)[1]["id"].as_str().expect("an id").to_owned();
    make_many(browser, MANY);
    let last = make(browser, "The last");
    browser.go(&format!("{}/studio/threads/{last}", studio.server.url));
    browser.until_count("#tree .thread", 60);
    for typed in ["a thread", "CUNNING", &first, &take] {
        browser.fill("#find", typed);
        until_titles(browser, &["A thread"]);
        happens_elsewhere(browser, &last);
        until_titles(browser, &["A thread"]);
        assert_eq!(browser.value("document.activeElement.id"), "find", "who types is not disturbed");
    }
    browser.fill("#find", "no such thread");
    browser.until_text("#threads", "No thread with this name.");
    browser.fill("#find", "");
    browser.until_count("#tree .thread", 60);

    browser.click("#threads [data-act=more]");
    browser.until_count("#tree .thread", 120);
    browser.click("#threads [data-act=more]");
    browser.until_count("#tree .thread", MANY + 2);
    browser.until_gone("#threads [data-act=more]");
    happens_elsewhere(browser, &last);
    browser.until_count("#tree .thread", MANY + 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn search_results_and_focus_survive_updates() {
    let studio = Studio::with_entries(&[("User", "where is the needle"), ("AI", "in the haystack")]);
    let browser = &studio.browser;
    let (here, other) = (studio.thread(), make(browser, "Other"));
    browser.until_count("#tree .thread", 2);
    browser.type_into("#find", "haystack");
    browser.press(&[], Key::Enter.into());
    browser.until_count("#found li", 1);
    happens_elsewhere(browser, &other);
    browser.until_count("#found li", 1);
    browser.fill("#find", "");
    browser.until_gone("#found");

    // On a link of the list, by keyboard alone.
    browser.until_count("#tree .thread", 2);
    let link = format!("t-{here}");
    for _ in 0..12 {
        browser.press(&[], Key::Tab.into());
        if browser.value("document.activeElement.id") == json!(link) {
            break;
        }
    }
    assert_eq!(browser.value("document.activeElement.id"), json!(link));
    happens_elsewhere(browser, &other);
    assert_eq!(browser.value("document.activeElement.id"), json!(link), "the keyboard is where it was");
}

/// The tree is rendered after every change, so its cost must stay small.
#[test]
fn a_tree_of_many_threads_is_small_and_loads_quickly() {
    let studio = Studio::with_entries(&[("User", "one"), ("AI", "two")]);
    let browser = &studio.browser;
    let here = studio.thread();
    // On a page that is not rendered after each of them.
    browser.go(&format!("{}/studio/threads/none", studio.server.url));
    let ask = "
        const ask = (path, body) => fetch(path, {
            method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
        }).then((answer) => answer.json());";
    let make = "
        const make = async (number) => {
            const { thread } = await ask('/v1/threads', { title: `Number ${number}` });
            await ask(`/v1/threads/${thread}/entries`, { entries: [{ content: 'one' }] });
            const { items: [{ id: entry }] } = await (await fetch(`/v1/threads/${thread}/entries`)).json();
            for (let take = 0; take < 2; take++) await ask(`/v1/threads/${thread}/fork`, { entry });
        };
        return Promise.all(Array.from({ length: 10 }, (_, number) => make(arguments[0] + number))).then(() => {});";
    for tens in 0..10 {
        browser.run(&format!("{ask}{make}"), &[json!(tens * 10)]);
    }
    let measure = "
        const [here] = arguments;
        return (async () => {
            const times = [];
            let bytes;
            for (let time = 0; time < 9; time++) {
                await ask(`/v1/threads/${here}/entries`, { entries: [{ content: 'one' }] });
                const began = performance.now();
                bytes = (await (await fetch(`/studio/tree?path=${here}`)).text()).length;
                times.push(performance.now() - began);
            }
            return { bytes, median: times.sort((one, other) => one - other)[4] };
        })();";
    let measured = browser.run(&format!("{ask}{measure}"), &[json!(here)]);
    assert!(measured["bytes"].as_u64().is_some_and(|bytes| bytes < 60_000), "{measured}");
    // Generous, for a slow build on a busy machine.
    assert!(measured["median"].as_f64().is_some_and(|median| median < 500.0), "{measured}");
}

/// A tree with everything in it, for screenshots.
#[test]
fn the_tree_renders_in_light_and_dark_narrow_and_wide() {
    let studio = Studio::with_thread();
    let browser = &studio.browser;
    let thread = studio.thread();
    api(browser, "POST", &format!("/v1/threads/{thread}/rename"), &json!({"title": "Fix the login"}));
    browser.choose("#approve", "edits");
    studio.ask("create login.txt with \"one\\ntwo\\nthree\\n\"");
    let first = browser.run("return document.querySelector('.piece > .entry:last-child').id.slice(2);", &[]);
    let main = takes(&studio)[0]["id"].as_str().expect("an id").to_owned();
    studio.ask("edit login.txt: replace \"two\" with \"zwei\\ndrei\"\ncreate notes.txt with a note");
    for (name, text) in [
        ("stricter", "create strict.txt with \"a\\nb\\nc\\n\""),
        ("with a limit", "edit login.txt: replace \"one\" with \"1\""),
    ] {
        let path = format!("/v1/threads/{thread}/branch?take={main}");
        api(browser, "POST", &path, &json!({"entry": first, "name": name}));
        browser.go(&format!("{}/studio/threads/{thread}", studio.server.url));
        browser.until("document.getElementById('draft')");
        browser.choose("#approve", "edits");
        studio.ask(text);
    }
    let last = browser.run("return document.querySelector('.piece > .entry:last-child').id.slice(2);", &[]);
    let body = json!({"entry": last, "name": "with a limit, and tests"});
    api(browser, "POST", &format!("/v1/threads/{thread}/branch"), &body);
    api(browser, "POST", &format!("/v1/threads/{thread}/branch"), &json!({"entry": first}));
    let away = takes(&studio).last().expect("takes")["id"].as_str().expect("an id").to_owned();
    let limit = takes(&studio)[3]["id"].as_str().expect("an id").to_owned();
    api(browser, "POST", &format!("/v1/threads/{thread}/takes/{limit}/switch"), &json!({}));
    api(
        browser,
        "POST",
        &format!("/v1/threads/{thread}/takes/{away}/promote"),
        &json!({"title": "Login by key"}),
    );
    api(browser, "POST", &format!("/v1/threads/{thread}/tags"), &json!({"add": ["login", "urgent"]}));
    api(browser, "POST", &format!("/v1/threads/{thread}/save"), &json!({"name": "before the rewrite"}));
    api(browser, "PATCH", &format!("/v1/threads/{thread}/settings"), &json!({"model": "claude-sonnet-4"}));
    let pinned = make(browser, "Ideas");
    api(browser, "PUT", &format!("/v1/threads/{pinned}/pinned"), &json!({"pinned": true}));
    let private = make(browser, "A very long title of a thread that nobody can read in a narrow column");
    api(browser, "PUT", &format!("/v1/threads/{private}/sharing"), &json!({"private": true}));
    browser.go(&format!("{}/studio/threads/{thread}", studio.server.url));
    browser.until("document.getElementById('draft')");
    for (width, height) in [(1280, 800), (360, 740)] {
        for scheme in [Scheme::Light, Scheme::Dark] {
            browser.look_as(Look { width, height, scheme });
            browser.run("document.body.classList.add('show-left');", &[]);
            std::thread::sleep(std::time::Duration::from_millis(200));
            let dark = if scheme == Scheme::Dark { "dark" } else { "light" };
            browser.picture(&format!("tree-{width}-{dark}"));
            let wide = "[...document.querySelectorAll('#left, #left *')].filter((one) => one.scrollWidth > one.clientWidth + 1
                && getComputedStyle(one).overflowX === 'visible' && one.clientWidth && !one.closest('.hidden, svg')).map((one) => one.outerHTML)";
            assert_eq!(browser.value(wide), json!([]), "nothing sticks out");
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
