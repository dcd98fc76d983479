//! Text of a model, a file or another person is only text: it runs, loads and restyles nothing.
//!
//! ```text
//!   payloads ─► entries, roles, titles, takes, tags, saved names, files, calls, results, settings, drafts, a stream, addresses
//!                  └─► every view, in a browser with a detector: a script that ran, a request to another server, a
//!                      blocked action, an unexpected element
//! ```
//!
//! The control inserts the same payloads into an unprotected page, where the detector must find them.

use std::time::Duration;

use retake_testing::fault_server::{FaultServer, Script, ScriptStep};
use serde_json::{Value, json};

use crate::browser::{Browser, Look};
use crate::payloads::PAYLOADS;
use crate::server::Server;
use crate::studio::Studio;
use crate::views::api;
use retake_testing::Sandbox;

/// Runs before everything else in every page and frame.
const DETECTOR: &str = r#"
(() => {
  const tell = (what) => { try { (top.found ??= []).push(what); } catch { console.error("found " + what); } };
  window.ran = () => tell(`ran ${window.frameElement?.dataset.payload ?? location.href}`);
  for (const name of ["alert", "confirm", "prompt", "open"]) window[name] = () => tell(name);
  addEventListener("securitypolicyviolation", (event) =>
    tell(`kept from ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
})();
"#;

/// Unexpected content of the page.
const FOREIGN: &str = r#"
const bad = [...(window.found ?? [])];
const ours = new Set(`html head meta title link script body data div a nav main aside header footer section article h1 h2 h3
  h4 h5 h6 p template span b em strong del code pre kbd mark br hr blockquote ul ol li table thead tbody tr th td details summary
  button form fieldset legend label input textarea select option optgroup datalist dialog time img svg path circle line g dl dt dd
  ins i`.split(/\s+/));
const drawn = new Set("above below".split(" "));
for (const element of document.querySelectorAll("*")) {
  const name = element.localName;
  if (!ours.has(name)) bad.push(`an element <${name}>`);
  for (const { name: attribute, value } of element.attributes) {
    if (attribute.startsWith("on")) bad.push(`<${name} ${attribute}=${value}>`);
    if (attribute === "style" && name !== "textarea" && !drawn.has(element.id)) bad.push(`<${name} style=${value}>`);
    if (["href", "src", "action", "formaction", "xlink:href", "srcdoc", "data"].includes(attribute)) {
      const { protocol, origin } = new URL(value, "http://nowhere.invalid/");
      const link = name === "a" && ["http:", "https:", "mailto:"].includes(protocol);
      const shown = name === "img" && protocol === "data:";
      if (!link && !shown && origin !== "http://nowhere.invalid") bad.push(`<${name} ${attribute}=${value}>`);
      if (name === "a" && origin !== "http://nowhere.invalid" && !/noopener/.test(element.rel)) bad.push(`${value} is opened by this page`);
    }
  }
}
const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) bad.push(`#${id} is there twice`);
for (const { name } of performance.getEntriesByType("resource")) {
  if (new URL(name).origin !== location.origin) bad.push(`loaded ${name}`);
}
if (document.styleSheets.length !== 1) bad.push(`${document.styleSheets.length} styles`);
if (document.scripts.length !== 1) bad.push(`${document.scripts.length} scripts`);
if (getComputedStyle(document.body).backgroundColor !== "rgb(251, 251, 250)") bad.push("the ground has another colour");
return bad;
"#;

/// Sends many API requests; returns how many succeeded.
const OFFER: &str = r#"
return (async (offers) => {
  let taken = 0;
  for (const [method, path, body] of offers) {
    const answer = await fetch(path, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
    if (answer.status >= 500) throw new Error(`${method} ${path}: ${answer.status}`);
    taken += answer.ok;
  }
  return taken;
})(arguments[0]);
"#;

/// The payloads, with the address of a server that counts requests.
fn payloads(evil: &FaultServer) -> Vec<String> {
    PAYLOADS.iter().map(|payload| payload.replace("EVIL", &evil.url())).collect()
}

/// Counts requests, and answers with a script.
fn evil() -> FaultServer {
    let script = Script::status(200, "ran()").with_header("access-control-allow-origin", "*");
    FaultServer::with(vec![script]).expect("a port is free")
}

fn watched(browser: &Browser) {
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": DETECTOR}));
}

/// The page contains nothing foreign.
fn clean(browser: &Browser, view: &str) {
    // Waits for content that loads or runs late.
    std::thread::sleep(Duration::from_millis(120));
    assert_eq!(browser.run(FOREIGN, &[]), json!([]), "in {view}");
}

#[test]
fn stored_text_cannot_run_load_or_restyle_anything() {
    let evil = evil();
    let all = payloads(&evil);
    let sandbox = Sandbox::new();
    hostile_files(&sandbox, &all);
    let studio = Studio::over(Server::over(sandbox), Look::default());
    let browser = &studio.browser;
    watched(browser);
    let thread = hostile_thread(&studio, &all);
    let at = |rest: &str| format!("{}/studio/threads/{thread}{rest}", studio.server.url);

    browser.go(&format!("{}/studio", studio.server.url));
    clean(browser, "the first page");
    browser.go(&at(""));
    browser.until("document.querySelectorAll('.piece > .entry').length > 0");
    clean(browser, "the conversation");
    // Opens everything that is folded.
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true;", &[]);
    clean(browser, "the conversation, unfolded");
    let step =
        "conversation.scrollTop = Math.max(0, conversation.scrollTop - conversation.clientHeight * 2);";
    for _ in 0..12 {
        browser.run(&format!("const conversation = document.getElementById('conversation'); {step}"), &[]);
        clean(browser, "the conversation, further up");
    }
    for tab in ["files", "settings", "history"] {
        browser.click(&format!("[data-tab={tab}]"));
        browser.until(&format!("document.querySelector('#panel > #{tab}')"));
        browser.run("for (const one of document.querySelectorAll('#panel details')) one.open = true;", &[]);
        clean(browser, tab);
    }
    for act in ["source", "collapse", "edit", "insert", "role"] {
        browser.run(
            "document.querySelector(`.piece > .entry :is([data-act=${arguments[0]}], [data-about=${arguments[0]}])`).click();",
            &[json!(act)],
        );
        std::thread::sleep(Duration::from_millis(200));
        clean(browser, act);
    }
    browser.run("document.getElementById('dialog').close('no');", &[]);
    browser.run("document.querySelector('[data-act=undo]').click();", &[]);
    browser.until("document.getElementById('dialog').open");
    clean(browser, "the question before an undo");

    let takes = api(browser, "GET", &format!("/v1/threads/{thread}/takes"), &Value::Null);
    let take = |index: usize| takes["items"][index]["id"].as_str().expect("there are takes").to_owned();
    browser.go(&at(&format!("/compare?take={}&other={}", take(0), take(1))));
    clean(browser, "two takes beside each other");
    browser.go(&at("?at=3"));
    clean(browser, "the past");
    for payload in all.iter().step_by(5) {
        let name = percent(payload);
        for place in [name.clone(), format!("{thread}?take={name}"), format!("{thread}/blame?path={name}")] {
            browser.go(&format!("{}/studio/threads/{place}", studio.server.url));
            let found = browser.value("window.found ?? []");
            assert_eq!(found, json!([]), "at /studio/threads/{place}");
            assert_eq!(
                browser.value("document.querySelectorAll('body script, img[onerror], svg[onload]').length"),
                0
            );
        }
    }
    assert_eq!(evil.requests().len(), 0, "{:?}", evil.requests());
}

/// Streamed text and approval questions are only text too.
#[test]
fn streamed_text_cannot_run_anything() {
    let evil = evil();
    let text = payloads(&evil).join("\n\n");
    let command = json!({"command": format!("echo '{}'", text.replace('\'', ""))}).to_string();
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"id": "c", "model": "<svg onload=ran()>", "choices": [choice]}))
    };
    let call = json!({"tool_calls": [{"index": 0, "id": "<img src=x onerror=ran()>", "type": "function",
        "function": {"name": "shell", "arguments": command}}]});
    let letters: Vec<char> = text.chars().collect();
    let pieces = letters
        .chunks(60)
        .map(|piece| chunk(json!({"content": piece.iter().collect::<String>()}), Value::Null));
    let mut events: Vec<String> = pieces.collect();
    events.push(chunk(call, Value::Null));
    events.push(chunk(json!({}), json!("tool_calls")));
    events.push("data: [DONE]\n\n".to_owned());
    let script = Script::events(events).with(40, ScriptStep::Pause(Duration::from_secs(6)));
    let model = FaultServer::with(vec![script]).expect("a port is free");

    let studio = Studio::answered_by(&model);
    watched(&studio.browser);
    studio.make_thread();
    studio.send("go");
    studio.browser.until("document.getElementById('live-text').textContent.length > 300");
    clean(&studio.browser, "words as they come");
    studio.browser.until("document.querySelector('.question [data-about=allow]')");
    clean(&studio.browser, "the question");
    // Bidirectional characters are visible where a user decides by appearance.
    assert!(
        studio.browser.text(".question pre").contains("\\u{202e}"),
        "{}",
        studio.browser.text(".question pre")
    );
    studio.browser.click(".question [data-about=deny]");
    studio.browser.until_gone(".question [data-about=allow]");
    clean(&studio.browser, "the answer");
    assert_eq!(evil.requests().len(), 0, "{:?}", evil.requests());
}

/// Control: in an unprotected page, the same detector finds the same payloads.
#[test]
fn the_detector_finds_injection_in_a_careless_page() {
    let evil = evil();
    let mut page = String::from("<!doctype html><title>careless</title>");
    for (index, payload) in payloads(&evil).iter().enumerate() {
        let escaped = payload.replace('&', "&amp;").replace('"', "&quot;");
        page.extend([format!("<iframe data-payload={index} srcdoc=\"{escaped}\"></iframe>")]);
    }
    page.push_str("<style>body { background: red }</style><p onclick=x></p>");
    let script = Script::status(200, &page);
    let script = Script {
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        ..script
    };
    let careless = FaultServer::with(vec![script]).expect("a port is free");
    let browser = Browser::open(Look::default());
    watched(&browser);
    browser.go(&careless.url());
    browser.until("new Set((window.found ?? []).filter((one) => one.startsWith('ran '))).size > 30");
    let found = browser.run(FOREIGN, &[]).to_string();
    for sign in ["an element <iframe>", "<p onclick=x>", "the ground has another colour"] {
        assert!(found.contains(sign), "{sign} is not in {found}");
    }
    let seen = || evil.requests().iter().map(|request| request.path.clone()).collect::<Vec<_>>();
    for path in ["/script.js", "/style.css", "/frame", "/object", "/background"] {
        assert!(seen().iter().any(|seen| seen == path), "nobody came for {path}: {:?}", seen());
    }
}

/// Files whose names and content are payloads.
fn hostile_files(sandbox: &Sandbox, all: &[String]) {
    sandbox.done(&["thread", "new", "Files"]);
    sandbox.write("page.html", &all.join("\n"));
    sandbox.agent("true");
    let mut made = 0;
    for payload in all.iter().filter(|payload| !payload.contains('/') && payload.len() < 200) {
        std::fs::write(sandbox.project().join(payload), format!("{payload}\n{payload}"))
            .expect("a name like any other");
        made += 1;
    }
    assert!(made > 30, "{made} names");
    sandbox.write("page.html", &format!("{}\nand a line", all.join("\n")));
    sandbox.agent("true");
}

/// A thread in which every text is hostile. Its files are in the folder.
fn hostile_thread(studio: &Studio, all: &[String]) -> String {
    let browser = &studio.browser;
    browser.go(&format!("{}/studio", studio.server.url));
    browser.until("document.getElementById('fact-thread')");
    let thread = studio.thread();
    let path = |rest: &str| format!("/v1/threads/{thread}/{rest}");
    let names: Vec<&String> = all.iter().filter(|one| one.chars().count() <= 60).collect();
    let mut offers = Vec::new();
    let mut offer = |method: &str, path: String, body: Value| offers.push(json!([method, path, body]));
    for name in &names {
        offer("POST", "/v1/threads".to_owned(), json!({"title": name}));
    }
    for name in names.iter().step_by(3) {
        offer("POST", path("tags"), json!({"add": [name]}));
        offer("POST", path("save"), json!({"name": name}));
        offer("POST", path("branch"), json!({"name": name}));
        offer("PUT", path("roles"), json!({"roles": ["User", "AI", name]}));
        offer("POST", path("entries"), json!({"entries": [{"role": name, "content": name}]}));
    }
    offer(
        "POST",
        path("rename"),
        json!({"title": "</title><script>ran()</script>\"><img src=x onerror=ran()>"}),
    );
    offer("PUT", path("draft"), json!({"text": format!("</textarea>{}", all.join("\n"))}));
    let settings = json!({"project_system_prompt": all.join("\n"), "model": all[15], "provider": all[16]});
    offer("PATCH", path("settings"), settings);
    let listed = names.iter().filter(|name| !name.contains('/')).map(|name| json!({"path": name}));
    offer("PUT", path("lists/context_files"), json!({"items": listed.collect::<Vec<_>>()}));
    // The server validates names; many of these are valid. An open page would only slow this down.
    browser.go(&format!("{}/studio/threads/nothing", studio.server.url));
    let taken = browser.run(OFFER, &[json!(offers)]);
    assert!(taken.as_u64() > Some(names.len() as u64 * 2), "only {taken} of {} were taken", offers.len());
    let entries: Vec<Value> = all
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let call = format!("{text}{index}");
            json!({"role": "AI", "model": text, "blocks": [
                {"type": "text", "text": text},
                {"type": "text", "text": format!("before\n\n{text}\n\n```{text}\n{text}\n```\n\n[{text}](https://a.invalid '{text}')")},
                {"type": "thinking", "text": text},
                {"type": "tool_call", "call": call, "name": text, "input": {"path": text, "old": text, "new": text}},
                {"type": "tool_call", "call": format!("{call}b"), "name": text, "input": {text: text}},
                {"type": "tool_result", "call": call, "text": text, "failed": index % 2 == 0},
                {"type": text, "text": text},
            ]})
        })
        .collect();
    api(browser, "POST", &path("entries"), &json!({"entries": entries}));
    thread
}

fn percent(text: &str) -> String {
    let signs: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    signs.concat()
}
