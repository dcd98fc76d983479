//! The studio in a browser: what most tests do with it.

use retake_agent::fault_server::FaultServer;
use serde_json::{Value, json};

use crate::browser::{Browser, Look};
use crate::server::Server;
use crate::support::Sandbox;

/// A server, and a browser that is let in.
pub(crate) struct Studio {
    // Closed first: a page without its server asks for it again and again.
    pub(crate) browser: Browser,
    pub(crate) server: Server,
}

impl Studio {
    /// The first page over an empty project.
    pub(crate) fn open() -> Self {
        Self::open_as(Look::default())
    }

    /// The first page, for somebody with another window.
    pub(crate) fn open_as(look: Look) -> Self {
        Self::over(Server::start(), look)
    }

    /// The first page over whatever a server serves.
    pub(crate) fn over(server: Server, look: Look) -> Self {
        let browser = Browser::open(look);
        browser.go(&server.link);
        browser.until("location.pathname.startsWith('/studio')");
        Self { browser, server }
    }

    /// The first page, where a model answers by its script.
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

    /// The page of a thread in which this was said already: role and text of each entry.
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

    /// Makes a thread, and goes there.
    pub(crate) fn make_thread(&self) {
        let before = self.browser.url();
        self.browser.click("[data-about=new-thread]");
        self.browser.until(&format!("location.href !== {before:?} && document.querySelector('#draft')"));
    }

    /// The id of the thread that is shown.
    pub(crate) fn thread(&self) -> String {
        self.browser
            .run("return document.getElementById('fact-thread').value;", &[])
            .as_str()
            .expect("a text")
            .to_owned()
    }

    /// Sends a message, and waits until the turn has ended.
    pub(crate) fn ask(&self, prompt: &str) {
        self.send(prompt);
        self.until_idle();
    }

    /// Sends a message, and does not wait.
    pub(crate) fn send(&self, prompt: &str) {
        self.browser.fill("#draft", prompt);
        self.browser.click("#send");
        self.browser.until("document.getElementById('draft').value === ''");
    }

    /// Waits until no turn runs, as the server knows it, and all that was said is drawn.
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

    /// How many entries the conversation has.
    pub(crate) fn entries(&self) -> usize {
        let count = self.browser.run("return document.getElementById('conversation').dataset.count;", &[]);
        count.as_str().and_then(|count| count.parse().ok()).expect("a number")
    }

    /// Adds entries, as a program does.
    pub(crate) fn add(&self, texts: impl IntoIterator<Item = String>) {
        let entries: Vec<Value> = texts.into_iter().map(|text| json!({"content": text})).collect();
        let script = "return fetch(arguments[0], {
            method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({entries: arguments[1]}),
        }).then((answer) => answer.status);";
        let path = format!("/v1/threads/{}/entries", self.thread());
        let status = self.browser.run(script, &[json!(path), json!(entries)]);
        assert!(matches!(status.as_u64(), Some(200..300)), "entries are taken: {status}");
    }

    /// What was said in the take that is worked on, as the store knows it: role and text of each entry.
    pub(crate) fn said(&self) -> Vec<(String, String)> {
        let shown = self.server.sandbox.json(&["thread", "show", &self.thread()]);
        let text = |entry: &Value, name: &str| entry["entry"][name].as_str().unwrap_or_default().to_owned();
        let entries = shown["entries"].as_array().expect("a list");
        entries.iter().map(|entry| (text(entry, "role"), text(entry, "content"))).collect()
    }

    /// The texts of it alone.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.said().into_iter().map(|(_, text)| text).collect()
    }

    /// Waits until the conversation has exactly so many entries.
    pub(crate) fn until_entries(&self, count: usize) {
        self.browser.until(&format!("document.getElementById('conversation')?.dataset.count === '{count}'"));
    }

    /// Loads the page again, as somebody does who wants to be sure.
    pub(crate) fn reload(&self) {
        self.browser.reload();
        self.browser.until("document.getElementById('draft')");
    }

    /// The selector of the n-th entry that is drawn, counted from 1.
    pub(crate) fn entry(number: usize) -> String {
        format!(".piece > .entry:nth-child({number})")
    }

    /// Clicks on a button of an entry, as a person does who has gone to it.
    pub(crate) fn act_on(&self, number: usize, act: &str) {
        self.act_in(&Self::entry(number), act);
    }

    /// The same for the entry with a selector.
    pub(crate) fn act_in(&self, entry: &str, act: &str) {
        self.browser.until(&format!(
            "(document.querySelector({0})?.focus(), document.activeElement.matches({0}))",
            json!(entry)
        ));
        // Beside a step of a turn the buttons are there for who is among them.
        self.browser.run(
            "document.querySelector(arguments[0])?.focus();",
            &[json!(format!("{entry} > header button"))],
        );
        self.browser.click(&format!("{entry} :is([data-act={act}], [data-about={act}])"));
    }

    /// Clicks on a button in the menu of the bar.
    pub(crate) fn more(&self, act: &str) {
        self.browser.click("#bar details.menu:nth-last-of-type(2) > summary");
        self.browser.click(&format!("#bar :is([data-act={act}], [data-about={act}])"));
    }

    /// Shows entries of these roles alone.
    pub(crate) fn filter(&self, roles: &[&str]) {
        self.browser.click("#filter > summary");
        for role in roles {
            self.browser.click(&format!("#filter [value='{role}']"));
        }
        self.browser.click("#filter button");
    }

    /// Takes the last turn back, by button, and waits until that is done and drawn.
    pub(crate) fn undo(&self) {
        self.move_by("undo");
    }

    /// Makes again what was taken back.
    pub(crate) fn redo(&self) {
        self.move_by("redo");
    }

    fn move_by(&self, act: &str) {
        self.browser.click(&format!("[data-act={act}]:not(:disabled)"));
        self.confirm_move();
    }

    /// Says yes to a move along the log, and waits until it is done and drawn.
    pub(crate) fn confirm_move(&self) {
        self.browser.until("document.getElementById('dialog').open");
        self.browser
            .run("document.getElementById('toasts').replaceChildren(); document.body.dataset.was = 1;", &[]);
        self.confirm();
        // The page says so, or goes to the take that is active then.
        self.browser.until(
            "!document.body.dataset.was || document.getElementById('toasts').textContent.includes('Done')",
        );
        self.until_idle();
    }

    /// Says yes to what a dialog asks.
    pub(crate) fn confirm(&self) {
        self.browser.until("document.getElementById('dialog').open");
        self.browser.click("#dialog-yes");
        self.browser.until("!document.getElementById('dialog').open");
    }
}
