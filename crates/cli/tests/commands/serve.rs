//! The server as a process: the documented session runs line by line, and changes of other processes are seen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::support::Sandbox;
use serde_json::Value;

/// The shell blocks of a document, in order.
fn blocks(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = document;
    while let Some(start) = rest.find("```sh\n") {
        rest = &rest[start + 6..];
        let end = rest.find("```").expect("a block ends");
        found.push(rest[..end].to_owned());
        rest = &rest[end + 3..];
    }
    found
}

#[test]
fn the_walkthrough_in_the_documentation_works() {
    let sandbox = Sandbox::new();
    let document = include_str!("../../../../docs/api.md");
    let walk = blocks(document);
    assert!(walk.len() >= 6, "the walk is there");
    let port = crate::support::free_port();
    let script = format!("set -euo pipefail\n{}", walk.join("\n")).replace("7878", &port.to_string());
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_retake"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a program is in a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .current_dir(sandbox.project())
        .env_clear()
        .envs(sandbox.environment())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("bash is there");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n--\n{stderr}");
    for part in ["\"code\":\"version_conflict\"", "\"dry_run\":true", "\"undoable\":true"] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    assert_eq!(sandbox.read("hello.txt").as_deref().map(str::trim_end), Some("hi"), "{stdout}");
}

/// A server that runs until it is dropped, and its first output.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: Value,
}

impl Serving {
    pub(crate) fn start(sandbox: &Sandbox, listen: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_retake"))
            .args(["serve", "--json", "--log", "off", "--listen", listen])
            .current_dir(sandbox.project())
            .env_clear()
            .envs(sandbox.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program is there");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says where it is");
        let address =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{listen}: {error} in {line:?}"));
        Self { child, address }
    }

    /// Sends SIGTERM, as a terminal or a service manager does, and waits for the exit.
    fn end(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(&id).status().expect("kill is there").success());
        self.child.wait().expect("it ends");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of following a link in a browser.
fn followed(link: &Value) -> String {
    let link = link.as_str().expect("a link is text");
    let (host, path) = link.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a link");
    let mut connection = TcpStream::connect(host).unwrap_or_else(|error| panic!("{link}: {error}"));
    write!(connection, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .expect("it is read");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    answer.split_whitespace().nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_login_link_has_the_address_of_the_server() {
    for listen in ["127.0.0.1:0", "localhost:0", "127.0.0.2:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
        let sandbox = Sandbox::new();
        let mut serving = Serving::start(&sandbox, listen);
        assert_eq!(followed(&serving.address["link"]), "303", "{listen}: {}", serving.address);
        // Another link needs no address.
        let another = sandbox.json(&["serve", "link"]);
        assert_eq!(followed(&another["link"]), "303", "{listen}: {another}");
        serving.end();
        let usual = sandbox.json(&["serve", "link"])["link"].to_string();
        assert!(usual.contains("http://127.0.0.1:7878/"), "{listen}: nobody is there any more: {usual}");
    }
}

#[test]
fn the_address_file_of_a_killed_server_is_ignored() {
    let sandbox = Sandbox::new();
    drop(Serving::start(&sandbox, "127.0.0.1:0"));
    let usual = sandbox.json(&["serve", "link"])["link"].to_string();
    assert!(usual.contains("http://127.0.0.1:7878/"), "{usual}");
    // Of two servers, the remaining one is still found.
    let (mut first, second) =
        (Serving::start(&sandbox, "127.0.0.1:0"), Serving::start(&sandbox, "127.0.0.1:0"));
    first.end();
    let link = sandbox.json(&["serve", "link"])["link"].clone();
    assert!(
        link.as_str().is_some_and(|link| link.contains(second.address["address"].as_str().expect("text"))),
        "{link}"
    );
    assert_eq!(followed(&link), "303");
}

#[test]
fn an_invalid_address_is_refused_with_an_example() {
    let sandbox = Sandbox::new();
    for none in ["7878", "localhost", "localhost:http", "no such:80"] {
        let output = sandbox.run(&["serve", "--listen", none]);
        assert!(output.code != 0 && output.stderr.contains("localhost:7878"), "{none}: {}", output.stderr);
    }
}

/// A browser that only records the address.
fn noting_browser(sandbox: &Sandbox) -> (String, std::path::PathBuf) {
    let folder = sandbox.config().with_file_name("browser");
    std::fs::create_dir_all(&folder).expect("our folder");
    let noted = folder.join("opened");
    let script = format!("#!/bin/sh\necho \"$1\" > '{0}.part' && mv '{0}.part' '{0}'\n", noted.display());
    let program = folder.join("xdg-open");
    std::fs::write(&program, script).expect("our folder");
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("our file");
    (format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default()), noted)
}

#[test]
fn the_studio_is_opened_in_the_installed_browser() {
    let sandbox = Sandbox::new();
    let (path, noted) = noting_browser(&sandbox);
    let serve = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_retake"))
            .args(arguments)
            .current_dir(sandbox.project())
            .env_clear()
            .envs(sandbox.environment())
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program is there")
    };
    let opened = || {
        for _ in 0..200 {
            if let Ok(link) = std::fs::read_to_string(&noted) {
                std::fs::remove_file(&noted).expect("it was just read");
                return Value::from(link.trim());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no browser was opened");
    };
    let _serving = Serving {
        child: serve(&["studio", "--open", "--log", "off", "--listen", "127.0.0.1:0"]),
        address: Value::Null,
    };
    assert_eq!(followed(&opened()), "303");
    // The running server is used; no second one is started.
    let mut second = serve(&["serve", "--open"]);
    assert_eq!(followed(&opened()), "303");
    assert!(second.wait().expect("it ends").success());
}
