//! The studio in a browser: common actions of the tests.

use retake_testing::fault_server::FaultServer;
use serde_json::{Value, json};

use crate::browser::{Browser, Look};
use crate::server::Server;
use retake_testing::Sandbox;

/// A server, and a logged-in browser.
pub(crate) struct Studio {
    // Closed first: a page without its server keeps reconnecting.
    pub(crate) browser: Browser,
    pub(crate) server: Server,
}

impl Studio {
    /// The first page of an empty project.
    pub(crate) fn open() -> Self {
        Self::open_as(Look::default())
    }

    /// The first page, with these display options.
    pub(crate) fn open_as(look: Look) -> Self {
        Self::over(Server::start(), look)
    }

    /// The first page of a running server.
    pub(crate) fn over(server: Server, look: Look) -> Self {
        let browser = Browser::open(look);
        browser.go(&server.link);
        browser.until("location.pathname.startsWith('/studio')");
        Self { browser, server }
    }

    /// The first page, with a scripted model.
    pub(crate) fn answered_by(model: &FaultServer) -> Self {
        let sandbox = Sandbox::new();
        let config = format!(
            "[agent]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\n\
             [providers.scripted]\nwire = \"chat\"\nbase_url = \"{}\"\nmodels = [\"scripted\"]\n",
            model.url()
        );
        std::fs::write(sandbox.config(), config).expect("our folder");
        Self::over(Server::over(sandbox), Look::default())
    }

    /// The page of a thread with these entries (role and text).
    pub(crate) fn with_entries(entries: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::new();
        sandbox.done(&["thread", "new", "A thread"]);
        for (role, text) in entries {
            sandbox.done(&["entry", "add", "--role", role, text]);
        }
        let studio = Self::over(Server::over(sandbox), Look::default());
        studio.browser.until_count(".piece > .entry", entries.len());
        studio
    }

    /// The page of a new thread.
    pub(crate) fn with_thread() -> Self {
        let studio = Self::open();
        studio.make_thread();
        studio
    }

    /// Creates a thread and opens it.
    pub(crate) fn make_thread(&self) {
        let before = self.browser.url();
        self.browser.click("[data-about=new-thread]");
        self.browser.until(&format!("location.href !== {before:?} && document.querySelector('#draft')"));
    }

    /// The id of the shown thread.
    pub(crate) fn thread(&self) -> String {
        self.browser
            .run("return document.getElementById('fact-thread').value;", &[])
            .as_str()
            .expect("a text")
            .to_owned()
    }

    /// Sends a message and waits for the end of the turn.
    pub(crate) fn ask(&self, prompt: &str) {
        self.send(prompt);
        self.until_idle();
    }

    /// Sends a message without waiting.
    pub(crate) fn send(&self, prompt: &str) {
        self.browser.fill("#draft", prompt);
        self.browser.click("#send");
        self.browser.until("document.getElementById('draft').value === ''");
    }

    /// Waits until no turn runs and everything is rendered.
    pub(crate) fn until_idle(&self) {
        self.browser.until(
            "(async () => {
                const fact = (name) => document.getElementById(`fact-${name}`).value;
                const of = (path) => `${path}${path.includes('?') ? '&' : '?'}take=${fact('take')}`;
                const turn = await (await fetch(of(`/v1/threads/${fact('thread')}/turn`))).json();
                const piece = await (await fetch(of(`/studio/threads/${fact('thread')}/entries?from=0`))).text();
                const count = piece.match(/data-count=\"(\\d+)\"/)[1];
                return !turn.running && document.getElementById('turn').dataset.running === 'false'
                    && document.getElementById('live').hidden && document.getElementById('conversation').dataset.count === count;
            })()",
        );
    }

    /// Number of entries in the conversation.
    pub(crate) fn entries(&self) -> usize {
        let count = self.browser.run("return document.getElementById('conversation').dataset.count;", &[]);
        count.as_str().and_then(|count| count.parse().ok()).expect("a number")
    }

    /// Adds entries through the API.
    pub(crate) fn add(&self, texts: impl IntoIterator<Item = String>) {
        let entries: Vec<Value> = texts.into_iter().map(|text| json!({"content": text})).collect();
        let script = "return fetch(arguments[0], {
            method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({entries: arguments[1]}),
        }).then((answer) => answer.status);";
        let path = format!("/v1/threads/{}/entries", self.thread());
        let status = self.browser.run(script, &[json!(path), json!(entries)]);
        assert!(matches!(status.as_u64(), Some(200..300)), "entries are taken: {status}");
    }

    /// Role and text of the active take's entries, from the store.
    pub(crate) fn transcript(&self) -> Vec<(String, String)> {
        let shown = self.server.sandbox.json(&["thread", "show", &self.thread()]);
        let text = |entry: &Value, name: &str| entry["entry"][name].as_str().unwrap_or_default().to_owned();
        let entries = shown["entries"].as_array().expect("a list");
        entries.iter().map(|entry| (text(entry, "role"), text(entry, "content"))).collect()
    }

    /// Only the texts.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.transcript().into_iter().map(|(_, text)| text).collect()
    }

    /// Waits until the conversation has this many entries.
    pub(crate) fn until_entries(&self, count: usize) {
        self.browser.until(&format!("document.getElementById('conversation')?.dataset.count === '{count}'"));
    }

    pub(crate) fn reload(&self) {
        self.browser.reload();
        self.browser.until("document.getElementById('draft')");
    }

    /// The selector of the n-th rendered entry, from 1.
    pub(crate) fn entry(number: usize) -> String {
        format!(".piece > .entry:nth-child({number})")
    }

    /// Clicks a button of an entry.
    pub(crate) fn act_on(&self, number: usize, act: &str) {
        self.act_in(&Self::entry(number), act);
    }

    /// The same for the entry with a selector.
    pub(crate) fn act_in(&self, entry: &str, act: &str) {
        self.browser.until(&format!(
            "(document.querySelector({0})?.focus(), document.activeElement.matches({0}))",
            json!(entry)
        ));
        // The buttons of a step appear when it has the focus.
        self.browser.run(
            "document.querySelector(arguments[0])?.focus();",
            &[json!(format!("{entry} > header button"))],
        );
        self.browser.click(&format!("{entry} :is([data-act={act}], [data-about={act}])"));
    }

    /// Clicks a button in the bar's menu.
    pub(crate) fn more(&self, act: &str) {
        self.browser.click("#bar details.menu:nth-last-of-type(2) > summary");
        self.browser.click(&format!("#bar :is([data-act={act}], [data-about={act}])"));
    }

    /// Shows only entries of these roles.
    pub(crate) fn filter(&self, roles: &[&str]) {
        self.browser.click("#filter > summary");
        for role in roles {
            self.browser.click(&format!("#filter [value='{role}']"));
        }
        self.browser.click("#filter button");
    }

    /// Undoes the last turn by button, and waits until it is rendered.
    pub(crate) fn undo(&self) {
        self.move_by("undo");
    }

    /// Redoes the last turn.
    pub(crate) fn redo(&self) {
        self.move_by("redo");
    }

    fn move_by(&self, act: &str) {
        self.browser.click(&format!("[data-act={act}]:not(:disabled)"));
        self.confirm_move();
    }

    /// Confirms a move and waits until it is rendered.
    pub(crate) fn confirm_move(&self) {
        self.browser.until("document.getElementById('dialog').open");
        self.browser
            .run("document.getElementById('toasts').replaceChildren(); document.body.dataset.was = 1;", &[]);
        self.confirm();
        // The page reports it, or opens the take that is then active.
        self.browser.until(
            "!document.body.dataset.was || document.getElementById('toasts').textContent.includes('Done')",
        );
        self.until_idle();
    }

    /// Confirms a dialog.
    pub(crate) fn confirm(&self) {
        self.browser.until("document.getElementById('dialog').open");
        self.browser.click("#dialog-yes");
        self.browser.until("!document.getElementById('dialog').open");
    }
}
