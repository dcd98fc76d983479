//! `retake serve` as a process that can be killed and restarted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use retake_testing::Sandbox;

/// A server with its own sandbox.
pub(crate) struct Server {
    /// The store and the project's folder.
    pub(crate) sandbox: Sandbox,
    program: Child,
    /// Its address, such as `http://127.0.0.1:1234`.
    pub(crate) url: String,
    /// The login link of the first browser.
    pub(crate) link: String,
}

impl Server {
    /// Starts a server with an empty project.
    pub(crate) fn start() -> Self {
        Self::over(Sandbox::new())
    }

    /// Starts a server with an existing sandbox.
    pub(crate) fn over(sandbox: Sandbox) -> Self {
        let (program, started) = serve(&sandbox, "127.0.0.1:0");
        Self { sandbox, program, url: field(&started, "url"), link: field(&started, "link") }
    }

    /// Sends SIGKILL, like a crash.
    pub(crate) fn kill(&mut self) {
        self.program.kill().expect("the server is ours");
        self.program.wait().expect("a child can be waited for");
    }

    /// Restarts it at the same address.
    pub(crate) fn start_again(&mut self) {
        let address = self.url.strip_prefix("http://").expect("it answers by HTTP").to_owned();
        let (program, started) = serve(&self.sandbox, &address);
        self.program = program;
        self.link = field(&started, "link");
    }

    /// Another login link, for another browser.
    pub(crate) fn another_link(&self) -> String {
        let address = self.url.strip_prefix("http://").expect("it answers by HTTP");
        self.sandbox.done(&["serve", "link", "--listen", address]).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[expect(
    clippy::zombie_processes,
    reason = "whoever gets the program waits for it; a test that fails before ends itself"
)]
fn serve(sandbox: &Sandbox, address: &str) -> (Child, Value) {
    let mut program = Command::new(retake_testing::program())
        .args(["serve", "--listen", address, "--log", "off", "--json"])
        .current_dir(sandbox.project())
        .env_clear()
        .envs(sandbox.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was just built");
    let mut output = BufReader::new(program.stdout.take().expect("standard output is a pipe"));
    let mut text = String::new();
    // An answer may span several lines; it is complete once it parses.
    loop {
        let read = output.read_line(&mut text).expect("the program writes text");
        assert_ne!(read, 0, "the server ended before it said where it is: {text}");
        if let Ok(started) = serde_json::from_str(&text) {
            return (program, started);
        }
    }
}

fn field(started: &Value, name: &str) -> String {
    started[name].as_str().unwrap_or_else(|| panic!("the server says its {name}: {started}")).to_owned()
}
