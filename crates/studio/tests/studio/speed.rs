//! Measures the speed of the studio in Chromium.
//!
//! ```text
//!   cargo test -p retake-studio --test studio speed                         small and generous: a smoke test
//!   RETAKE_PACE=full cargo test --release -p retake-studio --test studio speed -- --nocapture the real sizes and goals
//! ```
//!
//! Long and short threads are interleaved, so that other load affects both alike.

use std::time::Duration;

use retake_testing::fault_server::{FaultServer, Script, ScriptStep};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::studio::Studio;
use crate::views::api;

/// The scale and the goals.
struct Extent {
    /// Entries of the long thread; the short one has 100.
    entries: usize,
    loads: usize,
    keystrokes: usize,
    /// How long a model writes.
    seconds: usize,
    /// How often it does, since other load may affect one run.
    answers: usize,
    places: usize,
    /// Maximum first paint of a long thread, relative to a short one, and in milliseconds.
    paint: (f64, f64),
    /// Maximum main thread time of a keystroke, in milliseconds.
    keystroke: f64,
    /// Longest task while a model writes, in milliseconds.
    longest_task: f64,
}

const FULL: Extent = Extent {
    entries: 100_000,
    loads: 15,
    keystrokes: 60,
    seconds: 10,
    answers: 5,
    places: 150,
    paint: (1.5, 300.0),
    keystroke: 16.0,
    longest_task: 50.0,
};

/// For a debug build on a busy machine.
const QUICK: Extent = Extent {
    entries: 3_000,
    loads: 3,
    keystrokes: 10,
    seconds: 2,
    answers: 1,
    places: 12,
    paint: (4.0, 6_000.0),
    keystroke: 200.0,
    longest_task: 500.0,
};

/// Limits in bytes on the wire: all modules, and everything that the first page loads.
const MODULES: f64 = 60_000.0;
const FIRST_PAGE: f64 = 150_000.0;
/// The most elements that a page may have, however long its thread is.
const ELEMENTS: f64 = 8_000.0;

fn extent() -> &'static Extent {
    if std::env::var("RETAKE_PACE").is_ok_and(|wanted| wanted == "full") { &FULL } else { &QUICK }
}

/// Prints a measurement with its goal, and checks it.
fn hold(what: &str, measured: f64, goal: f64) {
    println!("{what:<52} {measured:>10.1}   goal {goal:>10.1}   {:>5.2} of it", measured / goal);
    assert!(measured <= goal, "{what}: {measured:.1}, and the goal is {goal:.1}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
fn a_long_thread_loads_as_fast_as_a_short_one() {
    let extent = extent();
    let studio = Studio::open();
    let browser = &studio.browser;
    let [short, long] = [100, extent.entries].map(|count| thread_of(browser, count));
    let at = |thread: &str| format!("{}/studio/threads/{thread}", studio.server.url);
    let mut paints = [Vec::new(), Vec::new()];
    for load in 0..=extent.loads {
        for (thread, paints) in [&short, &long].into_iter().zip(&mut paints) {
            browser.go(&at(thread));
            browser.until("performance.getEntriesByName('first-contentful-paint').length");
            let paint = browser.value("performance.getEntriesByName('first-contentful-paint')[0].startTime");
            // The first load of each warms common caches.
            if load > 0 {
                paints.push(number(&paint));
            }
        }
    }
    let [short_paint, long_paint] = paints.map(median);
    println!("first paint of 100 entries: {short_paint:.1} ms");
    let (ratio, most) = extent.paint;
    hold(&format!("first paint of {} entries, of that", extent.entries), long_paint / short_paint, ratio);
    hold(&format!("first paint of {} entries, ms", extent.entries), long_paint, most);

    // The resources of a first visit.
    browser.devtools("Network.enable", json!({}));
    browser.devtools("Network.setCacheDisabled", json!({"cacheDisabled": true}));
    browser.go(&at(&long));
    browser.until("document.readyState === 'complete'");
    let bytes = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')
        .filter(({ name }) => /\\.(js|css|svg)$/.test(name))]";
    hold(
        "first page, bytes",
        number(&browser.value(&format!("{bytes}.reduce((sum, one) => sum + one.transferSize, 0)"))),
        FIRST_PAGE,
    );
    hold(
        "the modules, bytes",
        number(&browser.value("performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js')).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)")),
        MODULES,
    );

    // All the way up, by large and small steps.
    let mut most = 0.0_f64;
    for place in 0..extent.places {
        let step = if place % 5 == 0 {
            format!("conversation.scrollHeight * {}", 1.0 - place as f64 / extent.places as f64)
        } else {
            "conversation.scrollTop - conversation.clientHeight * 0.8".to_owned()
        };
        browser.run(&format!("const conversation = document.getElementById('conversation'); conversation.scrollTop = {step};"), &[]);
        // Wherever the reader is, entries are visible.
        browser.until(
            "[...document.querySelectorAll('.piece > .entry')].some((one) => {
                const { top, bottom } = one.getBoundingClientRect();
                return bottom > 60 && top < innerHeight - 200;
            })",
        );
        most = most.max(number(&browser.value("document.querySelectorAll('*').length")));
    }
    hold("elements while scrolling, at most", most, ELEMENTS);
}

#[test]
fn a_keystroke_takes_less_than_a_frame() {
    let extent = extent();
    let studio = Studio::open();
    let browser = &studio.browser;
    let thread = thread_of(browser, extent.entries);
    browser.go(&format!("{}/studio/threads/{thread}", studio.server.url));
    browser.until("document.querySelectorAll('.piece > .entry').length > 0");
    browser.devtools("Performance.enable", json!({"timeDomain": "threadTicks"}));
    let type_in = |selector: &str| {
        browser.run("document.querySelector(arguments[0]).focus();", &[json!(selector)]);
        let mut took: Vec<f64> = (0..extent.keystrokes).map(|_| work_of_a_key(browser)).collect();
        assert!(browser.holds(selector).ends_with(&"a".repeat(extent.keystrokes)), "it was typed");
        took.sort_by(f64::total_cmp);
        println!("{:<52} {:>10.1}", format!("a keystroke in {selector}, median, ms"), took[took.len() / 2]);
        println!("{:<52} {:>10.1}", "the longest of them, ms", took[took.len() - 1]);
        took[(took.len() - 1) * 95 / 100]
    };
    hold("a keystroke in the composer, of 95 in 100, ms", type_in("#draft"), extent.keystroke);
    browser.run("document.querySelector('.piece > .entry:last-child [data-act=edit]').click();", &[]);
    browser.until("document.querySelector('.editor textarea')");
    hold("a keystroke in an entry, of 95 in 100, ms", type_in(".editor textarea"), extent.keystroke);
}

/// Presses a key; returns the main thread time until it was rendered, in milliseconds, independent of other load.
fn work_of_a_key(browser: &Browser) -> f64 {
    let worked = || {
        let metrics = browser.devtools("Performance.getMetrics", json!({}));
        let all = metrics["metrics"].as_array().expect("a list");
        let task = all.iter().find(|metric| metric["name"] == "TaskDuration").expect("it is measured");
        number(&task["value"]) * 1000.0
    };
    let before = worked();
    for kind in ["keyDown", "keyUp"] {
        let key = json!({"type": kind, "key": "a", "code": "KeyA", "text": if kind == "keyDown" { "a" } else { "" }});
        browser.devtools("Input.dispatchKeyEvent", key);
    }
    std::thread::sleep(Duration::from_millis(50));
    worked() - before
}

#[test]
fn streaming_fifty_words_a_second_causes_no_long_task() {
    let extent = extent();
    let words = extent.seconds * 50;
    let model = FaultServer::with((0..extent.answers).map(|answer| written(answer, words)).collect())
        .expect("a port is free");
    let studio = Studio::answered_by(&model);
    let browser = &studio.browser;
    let thread = thread_of(browser, 1_000);
    browser.go(&format!("{}/studio/threads/{thread}", studio.server.url));
    browser.until("document.querySelectorAll('.piece > .entry').length > 0");
    let mut longest = Vec::new();
    for answer in 0..extent.answers {
        browser.run(WATCH, &[]);
        studio.send("write");
        let last = json!(format!("answer{answer}word{}", words - 1));
        browser
            .until(&format!("document.querySelector('.piece:last-of-type')?.textContent.includes({last})"));
        let pace = number(&browser.value("1000 * (shown.most - shown.few) / (shown.last - shown.first)"));
        println!("{:<52} {pace:>10.1}", "words shown a second");
        assert!(pace > 20.0, "{pace:.1} words a second were shown");
        longest.push(number(&browser.value("Math.max(0, ...tasks)")));
        studio.until_idle();
    }
    println!("the longest task of each answer, ms: {longest:?}");
    hold("the longest task while a model writes, median, ms", median(longest), extent.longest_task);
}

/// An answer of this many words, fifty a second.
fn written(answer: usize, words: usize) -> Script {
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"id": "c", "model": "scripted", "choices": [choice]}))
    };
    let word = |word: usize| chunk(json!({"content": format!("answer{answer}word{word} ")}), Value::Null);
    let mut script = Script::events((0..words).map(word));
    script.acts =
        script.acts.into_iter().flat_map(|act| [act, ScriptStep::Pause(Duration::from_millis(20))]).collect();
    script.acts.push(ScriptStep::Send(chunk(json!({}), json!("stop")).into_bytes()));
    script.acts.push(ScriptStep::Send(b"data: [DONE]\n\n".to_vec()));
    script
}

/// Counts the visible words of a streaming answer, and the longest main thread task.
const WATCH: &str = "
    const note = (list) => tasks.push(...list.getEntries().map(({ duration }) => duration));
    if (!window.tasks) new PerformanceObserver(note).observe({ type: 'longtask' });
    window.tasks = [];
    window.shown = { most: 0 };
    const text = document.getElementById('live-text');
    new MutationObserver(() => {
      const words = text.textContent.split(' ').length;
      if (words <= shown.most) return;
      const now = performance.now();
      shown.first ??= now;
      shown.few ??= words;
      Object.assign(shown, { most: words, last: now });
    }).observe(text, { childList: true, characterData: true, subtree: true });";

/// A thread with this many entries, some of them long.
fn thread_of(browser: &Browser, count: usize) -> String {
    let made = api(browser, "POST", "/v1/threads", &json!({"title": format!("{count} entries")}));
    let thread = made["thread"].as_str().expect("an id").to_owned();
    let text = "It takes a *name* and says whether it is **not empty**.\n\n```rust\nfn login(name: &str) -> bool {\n    !name.is_empty()\n}\n```\n";
    for from in (0..count).step_by(5_000) {
        let entries: Vec<Value> = (from..count.min(from + 5_000))
            .map(|number| match number % 4 {
                0 => json!({"role": "User", "content": format!("Question {number}: how does it work?")}),
                1 => json!({"role": "AI", "content": format!("Answer {number}. {text}")}),
                2 => json!({"role": "AI", "blocks": [{"type": "tool_call", "call": format!("c{number}"), "name": "read", "input": {"path": "a.rs"}}]}),
                _ => json!({"role": "Tool", "blocks": [{"type": "tool_result", "call": format!("c{}", number - 1), "text": "fn a() {}\n".repeat(20)}]}),
            })
            .collect();
        api(browser, "POST", &format!("/v1/threads/{thread}/entries"), &json!({"entries": entries}));
    }
    thread
}
