//! Endless output uses bounded memory, with and without a reader.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Sandbox;

/// Maximum memory growth of a test, in bytes.
const GROWTH: u64 = 64 << 20;

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    started(sandbox, arguments, Stdio::null())
}

fn started(sandbox: &Sandbox, arguments: &[&str], stderr: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_retake"))
        .args(arguments)
        .current_dir(sandbox.project())
        .env_clear()
        .envs(sandbox.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .expect("the program was just built")
}

/// Peak memory of a process in bytes; `None` once it has ended.
fn most_memory(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Memory use of a turn without output.
fn usual() -> u64 {
    let sandbox = Sandbox::new();
    let mut child = start(&sandbox, &["run", "--json", "--approve", "all", "run sleep 2"]);
    std::thread::sleep(Duration::from_millis(1_500));
    let usual = most_memory(&child).expect("it runs");
    child.wait().expect("it ends");
    usual
}

#[test]
fn run_with_a_blocked_reader_takes_bounded_memory_and_can_be_stopped() {
    let (usual, sandbox) = (usual(), Sandbox::new());
    let mut child = start(&sandbox, &["run", "--json", "--approve", "all", "run timeout 60 yes"]);
    std::thread::sleep(Duration::from_secs(6));
    let taken = most_memory(&child).expect("it runs").saturating_sub(usual);
    assert!(taken < GROWTH, "{} MB", taken >> 20);
    let started = Instant::now();
    sandbox.done(&["stop"]);
    // It must end although nothing reads its output.
    while child.try_wait().expect("a child can be asked").is_none() {
        assert!(started.elapsed() < Duration::from_secs(30), "it does not stop while nobody reads");
        std::thread::sleep(Duration::from_millis(50));
    }
    sandbox.done(&["verify"]);
}

#[test]
fn a_turn_ends_while_nobody_reads_standard_error() {
    let sandbox = Sandbox::new();
    // The message about the call exceeds the size of a pipe.
    let command = format!("run sleep 60 # {}", "x".repeat(100_000));
    let mut child = started(&sandbox, &["run", "--approve", "all", &command], Stdio::piped());
    std::thread::sleep(Duration::from_secs(2));
    assert!(child.try_wait().expect("a child can be asked").is_none(), "the control: it runs");
    let started = Instant::now();
    sandbox.done(&["stop"]);
    while child.try_wait().expect("a child can be asked").is_none() {
        assert!(started.elapsed() < Duration::from_secs(15), "it does not stop while nobody reads");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut written = Vec::new();
    child.stderr.take().expect("a pipe").read_to_end(&mut written).expect("it can be read");
    assert!(written.len() >= 60_000, "the control: the pipe was full, {} bytes", written.len());
    sandbox.done(&["verify"]);
}

#[test]
fn run_with_a_reader_takes_bounded_memory_and_keeps_both_ends_of_the_output() {
    let (usual, sandbox) = (usual(), Sandbox::new());
    let mut child =
        start(&sandbox, &["run", "--json", "--approve", "all", "run timeout 5 yes; echo the-end"]);
    let (mut output, mut bytes, mut most) = (child.stdout.take().expect("a pipe"), Vec::new(), 0);
    let mut piece = vec![0; 1 << 16];
    while let Ok(count @ 1..) = output.read(&mut piece) {
        bytes.extend_from_slice(&piece[..count]);
        most = most_memory(&child).unwrap_or_default().max(most);
    }
    child.wait().expect("it ends");
    let taken = most.saturating_sub(usual);
    assert!(taken < GROWTH, "{} MB", taken >> 20);
    let events: Vec<serde_json::Value> = String::from_utf8(bytes)
        .expect("JSON is text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("one event a line"))
        .collect();
    let ended = events.iter().find(|event| event["event"] == "tool_ended").expect("the tool ended");
    assert!(ended["text"].as_str().is_some_and(|text| text.contains("the-end")), "{ended}");
    assert!(events.iter().any(|event| event["omitted_bytes"].as_u64() > Some(0)), "the rest is counted");
}
