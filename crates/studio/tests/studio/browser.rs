//! Drives Chromium like a user: opens pages, clicks, types, reads.
//!
//! Every action waits until it is possible, within a generous timeout: a page that is being rendered is not a failure,
//! one that stays wrong is. Every failure leaves a screenshot.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::key::Key;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand, WindowHandle};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Timeout for every action. Long, for busy machines.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(25);

/// Chromium has no narrower windows; the page is emulated as narrow instead.
const NARROWEST_WINDOW: u32 = 500;

/// How the page is displayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scheme: Scheme,
}

/// The preferred colour scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

impl Default for Look {
    fn default() -> Self {
        Self { width: 1440, height: 900, scheme: Scheme::Light }
    }
}

/// A Chromium with its own profile, and its driver.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Child,
    profile: TempDir,
}

/// A window of the browser.
pub(crate) struct Window(WindowHandle);

#[expect(clippy::result_large_err, reason = "the error type is that of the WebDriver client")]
impl Browser {
    /// Opens a browser. If there is none, the error says what to install.
    pub(crate) fn open(look: Look) -> Self {
        let (driver, port) = start_driver();
        let profile = TempDir::new().expect("there is room for a temporary folder");
        // Single-threaded: the browser does nothing while the test does something else.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the system has room for a runtime");
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities(look, profile.path()));
        let client = runtime
            .block_on(builder.connect(&format!("http://127.0.0.1:{port}")))
            .unwrap_or_else(|error| panic!("Chromium does not start: {error}. Is `chromium` installed?"));
        Self { runtime, client, driver, profile }
    }

    pub(crate) fn go(&self, url: &str) {
        self.done(self.client.goto(url));
    }

    pub(crate) fn reload(&self) {
        self.done(self.client.refresh());
    }

    /// The current address.
    pub(crate) fn url(&self) -> String {
        self.done(self.client.current_url()).to_string()
    }

    /// Runs a script in the page: `return` gives its value, `arguments` are the given values.
    pub(crate) fn run(&self, script: &str, arguments: &[Value]) -> Value {
        self.done(self.client.execute(script, arguments.to_vec()))
    }

    pub(crate) fn value(&self, expression: &str) -> Value {
        self.run(&format!("return ({expression});"), &[])
    }

    /// Waits until an expression in the page is true, or a promise of something true.
    pub(crate) fn until(&self, expression: &str) {
        self.patiently(expression, || {
            let script = format!("return Promise.resolve({expression}).then((value) => !!value);");
            // A page that is being left does not answer.
            let seen = self.runtime.block_on(self.client.execute(&script, Vec::new()));
            match seen {
                Ok(Value::Bool(true)) => Ok(()),
                Ok(_) => Err("it is not so".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        });
    }

    /// Waits until there are exactly this many elements.
    pub(crate) fn until_count(&self, selector: &str, count: usize) {
        self.until(&format!("document.querySelectorAll({}).length === {count}", json!(selector)));
    }

    /// Waits until the text of the first such element contains a text.
    pub(crate) fn until_text(&self, selector: &str, text: &str) {
        self.until(&format!(
            "document.querySelector({})?.textContent.includes({})",
            json!(selector),
            json!(text)
        ));
    }

    /// Waits until there is no such element.
    pub(crate) fn until_gone(&self, selector: &str) {
        self.until_count(selector, 0);
    }

    /// Clicks the first such element.
    pub(crate) fn click(&self, selector: &str) {
        self.with(selector, |element| self.runtime.block_on(element.click()));
    }

    /// Types into the first such element, after its content.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        self.with(selector, |element| self.runtime.block_on(element.is_enabled()));
        // Typed only once: a retry could duplicate a part of it.
        let element = self.done(self.client.find(Locator::Css(selector)));
        self.done(element.send_keys(text));
    }

    /// Replaces the content of a field, like select all and type.
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        let field = format!("document.querySelector({})", json!(selector));
        self.until(&format!("({field}.focus(), {field}.select(), document.activeElement === {field})"));
        if text.is_empty() {
            self.press(&[], Key::Delete.into());
        } else {
            self.type_text(text);
        }
    }

    /// Selects an option.
    pub(crate) fn choose(&self, selector: &str, value: &str) {
        self.with(selector, |element| self.runtime.block_on(element.select_by_value(value)));
    }

    /// Presses a key with modifiers, wherever the focus is.
    pub(crate) fn press(&self, modifiers: &[Key], key: char) {
        let mut keys = KeyActions::new("keyboard".to_owned());
        for modifier in modifiers {
            keys = keys.then(KeyAction::Down { value: (*modifier).into() });
        }
        keys = keys.then(KeyAction::Down { value: key }).then(KeyAction::Up { value: key });
        for modifier in modifiers.iter().rev() {
            keys = keys.then(KeyAction::Up { value: (*modifier).into() });
        }
        self.done(self.client.perform_actions(keys));
    }

    /// Types text, wherever the focus is.
    pub(crate) fn type_text(&self, text: &str) {
        let mut keys = KeyActions::new("keyboard".to_owned());
        for letter in text.chars() {
            let letter = if letter == '\n' { Key::Enter.into() } else { letter };
            keys = keys.then(KeyAction::Down { value: letter }).then(KeyAction::Up { value: letter });
        }
        self.done(self.client.perform_actions(keys));
    }

    /// The text of the first such element, visible or not.
    pub(crate) fn text(&self, selector: &str) -> String {
        self.of(selector, "textContent")
    }

    pub(crate) fn texts(&self, selector: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent);";
        let texts = self.run(script, &[json!(selector)]);
        texts.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The value of a field.
    pub(crate) fn holds(&self, selector: &str) -> String {
        self.of(selector, "value")
    }

    /// A text property of the first such element.
    fn of(&self, selector: &str, property: &str) -> String {
        self.until(&format!("document.querySelector({})", json!(selector)));
        let value = self.run(
            "return document.querySelector(arguments[0])?.[arguments[1]];",
            &[json!(selector), json!(property)],
        );
        value.as_str().unwrap_or_default().to_owned()
    }

    /// The first such element, as an argument of a script.
    pub(crate) fn element(&self, selector: &str) -> Value {
        let element = self.patiently(selector, || {
            let found = self.runtime.block_on(self.client.find(Locator::Css(selector)));
            found.map_err(|error| error.to_string())
        });
        serde_json::to_value(element).expect("an element has a name")
    }

    pub(crate) fn window(&self) -> Window {
        Window(self.done(self.client.window()))
    }

    /// Opens another window without switching to it.
    pub(crate) fn another_window(&self) -> Window {
        Window(self.done(self.client.new_window(false)).handle)
    }

    /// Switches to another window.
    pub(crate) fn look_at(&self, window: &Window) {
        self.done(self.client.switch_to_window(window.0.clone()));
    }

    /// Takes a screenshot.
    pub(crate) fn picture(&self, name: &str) -> PathBuf {
        let picture = self.done(self.client.screenshot());
        keep_picture(name, &picture)
    }

    /// The browser's messages so far: failed scripts and blocked actions.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.profile.path().join("chrome_debug.log")).unwrap_or_default();
        // The page reports a refused request itself; the browser's message about it is redundant.
        let of_page = |line: &&str| line.contains("CONSOLE") && !line.contains("Failed to load resource");
        log.lines().filter(of_page).map(str::to_owned).collect()
    }

    /// Sends a command to the driver.
    pub(crate) fn command(&self, command: impl WebDriverCompatibleCommand + Send + 'static) -> Value {
        self.done(self.client.issue_cmd(command))
    }

    /// Repeats an action on an element until it succeeds.
    fn with<T>(&self, selector: &str, does: impl Fn(Element) -> Result<T, CmdError>) -> T {
        self.patiently(selector, || {
            let found = self.runtime.block_on(self.client.find(Locator::Css(selector)));
            found.and_then(&does).map_err(|error| error.to_string())
        })
    }

    fn patiently<T>(&self, what: &str, mut does: impl FnMut() -> Result<T, String>) -> T {
        let started = Instant::now();
        loop {
            match does() {
                Ok(value) => return value,
                Err(_) if started.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(error) => self.fail(&format!("waited in vain for `{what}`: {error}")),
            }
        }
    }

    fn done<T>(&self, work: impl Future<Output = Result<T, CmdError>>) -> T {
        self.runtime.block_on(work).unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    fn fail(&self, why: &str) -> ! {
        let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
        let picture = self.runtime.block_on(self.client.screenshot()).unwrap_or_default();
        let picture = keep_picture(&format!("failed-{test}"), &picture);
        panic!("{why}\nthe page: {}\nthe browser: {:#?}", picture.display(), self.complaints());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let client = self.client.clone();
        let closing = async { tokio::time::timeout(Duration::from_secs(5), client.close()).await };
        // A browser that does not close ends with its driver.
        let _ = self.runtime.block_on(closing);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts the driver on a free port. If another process took the port meanwhile, it exits silently and is started
/// again.
fn start_driver() -> (Child, u16) {
    let tries = std::iter::repeat_with(try_driver).take(10);
    tries.flatten().next().expect("chromedriver says on which port it listens")
}

fn try_driver() -> Option<(Child, u16)> {
    let started = Command::new("chromedriver")
        .args(["--port=0", "--log-level=SEVERE"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut driver = started.unwrap_or_else(|error| {
        panic!(
            "chromedriver does not start ({error}). The studio is tested in a real Chromium; please install it: \
             apt-get install chromium chromium-driver"
        )
    });
    let output = BufReader::new(driver.stdout.take().expect("standard output is a pipe"));
    let mut lines = output.lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("successfully on port ")?;
        rest.trim_end_matches('.').parse().ok()
    });
    // Keeps reading, since it may print more later.
    std::thread::spawn(move || lines.for_each(drop));
    if port.is_none() {
        let _ = driver.wait();
    }
    Some((driver, port?))
}

fn capabilities(look: Look, profile: &Path) -> Capabilities {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        // The sandbox needs rights that containers lack, and no foreign page is opened.
        "--no-sandbox".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--disable-gpu".to_owned(),
        // It only connects to the server under test.
        "--disable-quic".to_owned(),
        "--no-first-run".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--force-device-scale-factor=1".to_owned(),
        // The page's messages are logged to the profile.
        "--enable-logging".to_owned(),
        format!("--user-data-dir={}", profile.display()),
        format!("--window-size={},{}", look.width, look.height),
    ];
    if look.scheme == Scheme::Dark {
        arguments.push("--force-dark-mode".to_owned());
    }
    let mut options = json!({"args": arguments});
    if look.width < NARROWEST_WINDOW {
        let metrics = json!({"width": look.width, "height": look.height, "pixelRatio": 1.0, "touch": false});
        options["mobileEmulation"] = json!({"deviceMetrics": metrics});
    }
    let mut capabilities = Capabilities::new();
    capabilities.insert("goog:chromeOptions".to_owned(), options);
    // Leaving a page with typed text must not ask.
    capabilities.insert("unhandledPromptBehavior".to_owned(), json!("accept"));
    capabilities
}

fn keep_picture(name: &str, picture: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("studio-screenshots");
    std::fs::create_dir_all(&folder).expect("the target folder is ours");
    let path = folder.join(format!("{name}.png"));
    std::fs::write(&path, picture).expect("the target folder is ours");
    path
}
