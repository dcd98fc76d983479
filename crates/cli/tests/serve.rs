//! The server as a program: what the documentation says is done, line by line; what other programs do is seen.

mod support;

use std::process::{Command, Stdio};

use support::Sandbox;

/// The blocks of shell in a document, in order.
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
fn the_walk_in_the_documentation_works_as_it_stands_there() {
    let sandbox = Sandbox::new();
    let document = include_str!("../../../docs/api.md");
    let walk = blocks(document);
    assert!(walk.len() >= 6, "the walk is there");
    let port = support::free_port();
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
