//! Tests of commands: their output, their end, and their remaining processes.

use std::time::Instant;

use super::super::shell::group::ProcessGroup;
use super::*;

fn shell(lab: &Lab, command: &str) -> Output {
    lab.call("shell", json!({"command": command}))
}

#[test]
fn the_result_of_a_command_has_its_output_and_exit_status() {
    let lab = Lab::new();
    fs::create_dir(lab.root().join("sub")).expect("a folder");
    let check = |command: &str, failed: bool, expected: &str| {
        let output = shell(&lab, command);
        assert_eq!(output.text, expected, "{command}");
        assert_eq!(output.failed, failed, "{command}");
    };
    check("echo one; echo two >&2; printf three", false, "one\ntwo\nthree\n[Exit code 0]");
    check("true", false, "[Exit code 0]");
    check("exit 3", true, "[Exit code 3]");
    check("kill -9 $$", true, "[Ended by signal 9]");
    check("cat", false, "[Exit code 0]");
    check("printf 'a\\033[31mb'", false, "a\u{1b}[31mb\n[Exit code 0]");
    check("(exec 3</dev/tty) 2>/dev/null && echo terminal || echo none", false, "none\n[Exit code 0]");
    if cfg!(target_os = "linux") {
        // Fields six and seven: it leads a new session, which has no terminal.
        check(r#"set -- $(cat /proc/$$/stat); [ "$6" = $$ ] && echo "$7""#, false, "0\n[Exit code 0]");
    }
    check("exec >/dev/null 2>&1; sleep 0.1; exit 4", true, "[Exit code 4]");
    let root = lab.context.directory.display().to_string();
    check("pwd", false, &format!("{root}\n[Exit code 0]"));
    let output = lab.call("shell", json!({"command": "pwd", "directory": "sub"}));
    assert_eq!(output.text, format!("{root}/sub\n[Exit code 0]"));
    assert!(shell(&lab, "-c").text.contains("not found"));
    assert!(shell(&lab, " ").failed && shell(&lab, "echo \0").failed);
    assert!(shell(&lab, &format!("echo {}", "x".repeat(300_000))).text.contains("cannot be started"));
}

#[test]
fn keys_stay_out_of_the_environment() {
    let mut lab = Lab::new();
    for name in ["OPENAI_API_KEY", "GH_TOKEN", "MY_SECRET_THING", "PLAIN", "CUSTOM", "PWD", "TERM"] {
        lab.context.environment.push((name.into(), "value".into()));
    }
    lab.context.hidden.push("CUSTOM".to_owned());
    let output = shell(&lab, "env");
    assert!(output.text.contains("PLAIN=value") && output.text.contains("TERM=dumb"), "{}", output.text);
    for hidden in ["API_KEY", "GH_TOKEN", "SECRET", "CUSTOM", "PWD=value"] {
        assert!(!output.text.contains(hidden), "{hidden}: {}", output.text);
    }
}

#[test]
fn long_output_is_truncated_and_saved_completely() {
    let lab = Lab::new();
    let mut reports = 0;
    let input = json!({"command": "echo begin; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end"});
    let output = run(&call("shell", input), &lab.context, &Cancel::new(), &mut |progress| {
        reports += progress.chunk.len();
    });
    assert!(output.text.starts_with("begin\n") && output.text.contains("\nend\n[Exit code 0]"));
    assert!(output.text.chars().count() < 31_000);
    assert_eq!(output.whole.expect("all of it").len(), 10_000_011);
    assert_eq!(reports, 10_000_011);
}

#[test]
fn output_over_the_limit_keeps_both_ends() {
    let mut lab = Lab::new();
    lab.context.limits.whole = 100_000;
    let output = shell(&lab, "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end");
    let whole = String::from_utf8(output.whole.expect("what was kept")).expect("text");
    assert!(whole.len() < 110_000 && whole.starts_with("begin") && whole.ends_with("end\n"));
    assert!(whole.contains("bytes omitted"));
}

#[test]
fn invalid_utf8_in_output_is_replaced() {
    let lab = Lab::new();
    let output = shell(&lab, "printf 'a\\377b\\000c'");
    assert_eq!(output.text, "a\u{fffd}b\0c\n[Exit code 0]");
    assert_eq!(output.whole.as_deref(), Some(&b"a\xffb\0c"[..]));
}

#[test]
fn output_is_reported_while_the_command_runs() {
    let lab = Lab::new();
    let (cancel, mut seen) = (Cancel::new(), String::new());
    let stop = cancel.clone();
    let input = json!({"command": "printf 'f\\303'; sleep 0.05; printf '\\274r'; sleep 30"});
    let output = run(&call("shell", input), &lab.context, &cancel, &mut |progress| {
        seen.push_str(&progress.chunk);
        if seen.ends_with('r') {
            stop.set();
        }
    });
    assert_eq!(seen, "für");
    assert_eq!(output.text, "für\n[Interrupted]");
}

/// Each of these runs for a long time.
const LONG: [&str; 5] = [
    "sleep 60",
    "trap '' TERM INT HUP; while :; do sleep 60; done",
    "sleep 60 & sleep 60 | cat",
    "(trap '' TERM; sleep 60; sleep 60) & wait",
    "kill -STOP $$; sleep 60",
];

#[test]
fn an_interrupt_kills_the_process_group_within_a_second() {
    let lab = Lab::new();
    for command in LONG {
        let cancel = Cancel::new();
        let mark = format!("echo $$ > pid; {command}");
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let output = lab.call_until("shell", json!({"command": mark}), &cancel);
                (output, Instant::now())
            });
            std::thread::sleep(Duration::from_millis(300));
            let asked = Instant::now();
            cancel.set();
            let (output, ended) = running.join().expect("no panic");
            assert!(output.failed && output.text.contains("Interrupted"), "{command}: {}", output.text);
            assert!(ended - asked < Duration::from_secs(1), "{command} took {:?}", ended - asked);
        });
        check_group_is_gone(&lab, command);
    }
}

#[test]
fn a_command_over_its_time_limit_is_killed() {
    let lab = Lab::new();
    for command in LONG {
        let started = Instant::now();
        let input = json!({"command": format!("echo $$ > pid; {command}"), "timeout": 1});
        let output = lab.call("shell", input);
        assert!(
            output.failed && output.text.contains("Stopped after 1 seconds"),
            "{command}: {}",
            output.text
        );
        assert!(started.elapsed() < Duration::from_secs(3), "{command} took {:?}", started.elapsed());
        check_group_is_gone(&lab, command);
    }
}

#[test]
fn background_processes_neither_delay_the_result_nor_survive() {
    let lab = Lab::new();
    for (command, left) in [
        ("sleep 60 & echo done", true),
        ("sleep 60 >/dev/null 2>&1 & echo done", true),
        ("(trap '' TERM; sleep 60; sleep 60) & echo done", true),
        ("sleep 0.01 & wait; echo done", false),
    ] {
        let started = Instant::now();
        let output = shell(&lab, &format!("echo $$ > pid; {command}"));
        assert!(
            !output.failed && output.text.starts_with("done\n[Exit code 0]"),
            "{command}: {}",
            output.text
        );
        assert_eq!(output.text.contains("were stopped"), left, "{command}: {}", output.text);
        assert!(started.elapsed() < Duration::from_secs(5), "{command} took {:?}", started.elapsed());
        check_group_is_gone(&lab, command);
    }
}

#[test]
fn a_background_process_that_ends_soon_may_finish() {
    let lab = Lab::new();
    let output = shell(&lab, "(sleep 0.03; echo later) & echo now");
    assert_eq!(output.text, "now\nlater\n[Exit code 0]");
}

#[test]
fn a_panicking_observer_leaves_no_process_running() {
    let lab = Lab::new();
    let input = json!({"command": "echo $$ > pid; echo; sleep 60"});
    let output =
        run(&call("shell", input), &lab.context, &Cancel::new(), &mut |_| panic!("the listener breaks down"));
    assert!(output.failed && output.text.contains("failed unexpectedly"), "{}", output.text);
    check_group_is_gone(&lab, "sleep 60");
}

#[test]
fn a_detached_process_holding_the_pipe_does_not_delay_the_result() {
    let lab = Lab::new();
    let started = Instant::now();
    let output = shell(&lab, "setsid sleep 3 & sleep 0.1; echo done");
    assert!(output.text.starts_with("done\n"), "{}", output.text);
    assert!(started.elapsed() < Duration::from_secs(2));
}

/// Asserts that no process remains in the group of this leader. Killed processes may take a moment to end.
fn check_group_is_gone(lab: &Lab, command: &str) {
    let group = ProcessGroup::of_leader(lab.read("pid").trim().parse().expect("a number"));
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        !group.is_alive()
    });
    assert!(gone, "something of {command:?} still runs");
}
