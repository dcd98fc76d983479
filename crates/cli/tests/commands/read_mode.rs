//! Rendered Markdown on a terminal, source text elsewhere, and the stored preference.

use std::time::{Duration, Instant};

use crate::support::Sandbox;

const ANSWER: &str = "\
# The cause

The *cache* is keyed by **weekday**, see [the docs](https://example.org/cache) and `Cache::key`.

1. clear it
2. key it by date
   - in `cache.rs`
   - in the tests

> It only fails
> on Mondays.

| file | lines |
|---|--:|
| cache.rs | 12 |
| a file with a long name that does not fit on a narrow terminal.rs | 7 |

```rust
fn key(day: Date) -> String {
    format!(\"{day}\") // not the weekday
}
```

---
Done.";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.done(&["thread", "new", "Fix the login"]);
    sandbox.done(&["entry", "add", "--role", "AI", ANSWER]);
    sandbox
}

fn shown(sandbox: &Sandbox, columns: u16, arguments: &[&str]) -> String {
    sandbox.redact(&sandbox.screen(columns, arguments).join("\n"))
}

#[test]
fn a_terminal_shows_rendered_markdown() {
    let sandbox = sandbox();
    insta::assert_snapshot!("read_80", shown(&sandbox, 80, &["entry", "show", "1"]));
    insta::assert_snapshot!("read_40", shown(&sandbox, 40, &["thread", "show"]));
    insta::assert_snapshot!(
        "read_plain_80",
        shown(&sandbox, 80, &["entry", "show", "1", "--color", "never"])
    );
    insta::assert_snapshot!("source_80", shown(&sandbox, 80, &["entry", "show", "1", "--source"]));
    assert_eq!(
        shown(&sandbox, 80, &["thread", "show", "--source"]).matches("**weekday**").count(),
        1,
        "the source, for once"
    );
}

#[test]
fn a_pipe_gets_the_unrendered_text() {
    let sandbox = sandbox();
    let piped = sandbox.done(&["thread", "show"]);
    for line in ["# The cause", "> on Mondays.", "| cache.rs | 12 |", "```rust"] {
        assert!(piped.lines().any(|shown| shown.trim() == line), "{line}: {piped}");
    }
    assert_eq!(sandbox.json(&["entry", "show", "1"])["entry"]["content"], ANSWER);
}

#[test]
fn the_view_of_an_entry_is_stored() {
    let sandbox = sandbox();
    assert_eq!(sandbox.json(&["entry", "source", "1"]), serde_json::json!({"entries": 1, "source": true}));
    let source = shown(&sandbox, 80, &["thread", "show"]);
    assert!(source.contains("**weekday**"), "{source}");
    // Collapsing and expanding do not change the other display settings.
    sandbox.done(&["entry", "collapse", "1"]);
    let view = sandbox.json(&["entry", "show", "1"]);
    assert_eq!((&view["collapsed"], &view["source"]), (&true.into(), &true.into()));
    sandbox.done(&["entry", "expand", "--all"]);
    assert_eq!(sandbox.json(&["entry", "show", "1"])["source"], true);
    sandbox.done(&["entry", "read", "--all"]);
    let read = shown(&sandbox, 80, &["thread", "show"]);
    assert!(read.contains("by weekday,"), "{read}");
    // It does not change the thread.
    assert_eq!(sandbox.json(&["thread", "show"])["thread"]["version"], 2);
    assert_eq!(sandbox.run(&["entry", "source", "1", "--expect", "2"]).code, 2);
}

#[test]
fn hostile_text_is_shown_quickly_and_safely() {
    let sandbox = sandbox();
    for text in [
        "> ".repeat(100_000),
        format!("{}{}", "- ".repeat(40_000), "\n".repeat(100_000)),
        "x".repeat(5_000_000),
        format!("```rust\n{}\n```", "a(\"\\x\" ".repeat(600_000)),
        "&#27;[2J \u{1b}]0;mine\u{7} [a](<\u{9b}2J>)".to_owned(),
    ] {
        sandbox.run_with(&["entry", "add"], &text);
        let start = Instant::now();
        sandbox.screen(80, &["entry", "show", "last", "--no-pager"]);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
    let last = sandbox.screen(80, &["entry", "show", "last"]).join("\n");
    assert!(last.contains("␛[2J") && last.contains("␛]0;mine␇"), "{last}");
}
