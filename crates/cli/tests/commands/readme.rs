//! Every command in the README works as written, in order, without a key.
//!
//! `./demo`, `./check` and `cargo install` build for minutes or run this test, so cheaper tests replace them: see
//! [`run`]. Any other line that is not a `retake` command fails the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::Sandbox;

const README: &str = include_str!("../../../../README.md");
const COMMANDS: &str = include_str!("../../../../docs/commands.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shell commands of a page, without comments.
fn lines(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let commands = block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
        found.extend(commands.filter(|line| !line.is_empty()).map(str::to_owned));
    }
    found
}

/// Runs one line of the README.
fn run(sandbox: &Sandbox, path: &str, line: &str) -> String {
    match line {
        "./demo" => {
            let script = fs::read_to_string(root().join("demo")).expect("the script");
            assert!(script.trim_end().ends_with("--package retake -- demo \"$@\""), "{script}");
            shell(sandbox, path, "retake demo --fast")
        }
        "./check" => shell(sandbox, path, &format!("{} --help", root().join("check").display())),
        "retake serve --open" => serve(sandbox, path),
        _ if line.starts_with("cargo install --locked --path ") => {
            let package = line.split_whitespace().last().unwrap_or_default();
            let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).expect("a manifest");
            assert!(manifest.contains("name = \"retake\""), "{manifest}");
            String::new()
        }
        _ => {
            assert!(line.starts_with("retake "), "nothing here runs `{line}`");
            shell(sandbox, path, line)
        }
    }
}

fn bash(sandbox: &Sandbox, path: &str, line: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(sandbox.project()).env_clear().envs(sandbox.environment());
    command.env("PATH", path).stdin(Stdio::null());
    command
}

fn shell(sandbox: &Sandbox, path: &str, line: &str) -> String {
    let output = bash(sandbox, path, line).output().expect("bash is there");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{line}\n{stdout}\n--\n{stderr}");
    stdout.into_owned()
}

/// Starts the server, waits until the browser was given the link, and stops the server.
fn serve(sandbox: &Sandbox, path: &str) -> String {
    let listen = format!("serve.listen=\"127.0.0.1:{}\"", crate::support::free_port());
    fs::write(sandbox.config(), listen).expect("our folder");
    let mut child = bash(sandbox, path, "exec retake serve --open --log off")
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash is there");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("an address");
    let opened = sandbox.project().with_file_name("opened");
    let waited = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::read_to_string(&opened).is_ok_and(|url| url.contains("http://127.0.0.1:"))
    });
    let stopped = Command::new("kill").arg(child.id().to_string()).status().expect("kill is there");
    assert!(stopped.success() && child.wait().is_ok(), "the server ends");
    assert!(waited, "no browser was opened: {line}");
    fs::remove_file(sandbox.config()).expect("our folder");
    line
}

/// The `PATH` for `bash`: the program, and a browser that only records addresses.
fn path(sandbox: &Sandbox) -> String {
    let folder = sandbox.project().with_file_name("bin");
    let browser = folder.join("xdg-open");
    fs::create_dir(&folder).expect("our folder");
    let opened = sandbox.project().with_file_name("opened");
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display())).expect("our folder");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("our file");
    let program = Path::new(env!("CARGO_BIN_EXE_retake")).parent().expect("a folder");
    format!("{}:{}:{}", folder.display(), program.display(), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn every_command_of_the_readme_works_in_the_order_shown() {
    let sandbox = Sandbox::new();
    let path = path(&sandbox);
    let shown = lines(README);
    assert_eq!(shown[..2], ["./demo", "./check"], "the two commands that set everything up come first");
    let mut ran = 0;
    for line in &shown {
        let printed = run(&sandbox, &path, line);
        let file = sandbox.read("app.conf").unwrap_or_default();
        match line.split(' ').nth(1) {
            Some("undo") => assert_eq!(file, "port = 80\n", "{printed}"),
            Some("retry") if line.contains("second") => assert_eq!(file, "port = 8080\n", "{printed}"),
            Some("compare") if line.contains("second") => assert!(printed.contains("second"), "{printed}"),
            Some("redo" | "retry") => assert_eq!(file, "port = 80\ndebug = true\n", "{printed}"),
            Some("compare") => assert!(printed.contains("main_take_1"), "{printed}"),
            _ => {}
        }
        ran += usize::from(line.starts_with("retake "));
    }
    assert!(ran > 6, "six commands and the studio: {shown:?}");
    let verified = sandbox.json(&["verify"]);
    assert_eq!(verified["clean"], true, "{verified}");
}

/// Control: a failing line is noticed.
#[test]
#[should_panic(expected = "retake entry show 99")]
fn a_command_that_fails_is_noticed() {
    let sandbox = Sandbox::new();
    let path = path(&sandbox);
    let page = "```sh\nretake thread new\nretake entry show 99   # there is none\n```\n";
    for line in lines(page) {
        run(&sandbox, &path, &line);
    }
}

#[test]
fn commands_named_in_prose_exist() {
    let sandbox = Sandbox::new();
    for page in [README, COMMANDS] {
        for span in page.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("retake ")) {
            let is_word =
                |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
            let words = span.split(' ').take_while(|word| is_word(word) && !word.starts_with('-'));
            let arguments: Vec<&str> = words.take(2).chain(["--help"]).collect();
            // A second word may be an argument, such as the name of a take.
            let worked =
                sandbox.run(&arguments).code == 0 || sandbox.run(&[arguments[0], "--help"]).code == 0;
            assert!(worked, "`retake {span}`");
        }
    }
}

#[test]
fn every_command_is_in_the_reference() {
    let help = Sandbox::new().done(&["--help"]);
    let listed = help.split("Options:").next().expect("groups of commands");
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names.iter().filter(|name| **name != "help") {
        let is_named = COMMANDS
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
            .any(|word| word == *name);
        assert!(is_named, "`retake {name}` is not in docs/commands.md");
    }
}

#[test]
fn the_readme_is_short_and_its_pictures_are_small() {
    assert!(README.lines().count() <= 150, "{} lines", README.lines().count());
    let targets = README.split("](").filter_map(|rest| rest.split(')').next());
    for picture in targets.filter(|target| target.starts_with("docs/pictures/")) {
        let bytes = fs::metadata(root().join(picture)).expect("a picture").len();
        assert!(bytes < 150_000, "{picture} has {bytes} bytes");
    }
    assert!(README.contains("docs/glossary.md"));
    assert!(Sandbox::new().done(&["--help"]).contains("docs/glossary.md"));
}
