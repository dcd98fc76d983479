//! Tests of listing, finding and searching.

use std::os::unix::fs::symlink;

use super::*;

fn project() -> Lab {
    let lab = Lab::new();
    lab.file(".gitignore", "target/\n*.log\n!keep.log\n");
    lab.file("src/main.rs", "fn main() {\n    hello();\n}\n");
    lab.file("src/lib/deep.rs", "pub fn hello() {}\n");
    lab.file("src/lib/.ignore", "secret.rs\n");
    lab.file("src/lib/secret.rs", "hello\n");
    lab.file("target/out.rs", "hello\n");
    lab.file("debug.log", "hello\n");
    lab.file("keep.log", "hello\n");
    lab.file("picture", b"hello\0\nhello");
    lab.file(".git/config", "[core]\n\tfsmonitor = hello\n");
    lab.file("line\nbreak.txt", "nothing\n");
    symlink("../outside", lab.root().join("out")).expect("a link");
    lab
}

#[test]
fn a_listing_omits_ignored_files() {
    let mut lab = project();
    let check = |lab: &Lab, input: Value, expected: &str| {
        let output = lab.call("list", input.clone());
        assert!(!output.failed, "{input}: {}", output.text);
        assert_eq!(output.text, expected, "{input}");
    };
    let top = ".gitignore\nkeep.log\nline\\u{a}break.txt\nout -> ../outside\npicture\nsrc/\n";
    check(&lab, json!({}), top);
    check(&lab, json!({"path": "./"}), top);
    check(&lab, json!({"path": "src", "depth": 3}), "lib/\nlib/.ignore\nlib/deep.rs\nmain.rs\n");
    check(&lab, json!({"path": "src/lib"}), ".ignore\ndeep.rs\n");
    check(&lab, json!({"path": "src/lib", "ignored": true}), ".ignore\ndeep.rs\nsecret.rs\n");
    check(&lab, json!({"path": "target"}), "out.rs\n");
    symlink("..", lab.root().join("target/up")).expect("a link");
    check(&lab, json!({"path": "target/up/src/lib"}), ".ignore\ndeep.rs\n");
    lab.context.limits.names = 2;
    check(
        &lab,
        json!({}),
        ".gitignore\nkeep.log\n[6 names; the first 2 are shown. List a folder further down.]\n",
    );
    for refused in ["out", "../outside", "missing", "keep.log", ".git"] {
        assert!(lab.call("list", json!({"path": refused})).failed, "{refused}");
    }
    fs::create_dir(lab.root().join("empty")).expect("a folder");
    assert!(lab.call("list", json!({"path": "empty"})).text.contains("empty"));
}

#[test]
fn files_are_found_by_name() {
    let lab = project();
    let check = |input: Value, expected: &str| {
        assert_eq!(lab.call("glob", input.clone()).text, expected, "{input}");
    };
    check(json!({"pattern": "*.rs"}), "src/lib/deep.rs\nsrc/main.rs\n");
    check(json!({"pattern": "src/*.rs"}), "src/main.rs\n");
    check(json!({"pattern": "src/**/*.{rs,ts}"}), "src/lib/deep.rs\nsrc/main.rs\n");
    check(json!({"pattern": "**/deep*", "path": "src"}), "src/lib/deep.rs\n");
    check(json!({"pattern": "*.log"}), "keep.log\n");
    check(json!({"pattern": "secret"}), "No file matches.\n");
    let output = lab.call("glob", json!({"pattern": "a{b"}));
    assert!(output.failed && output.text.contains("not a pattern"), "{}", output.text);
}

#[test]
fn lines_are_found_by_their_content() {
    let lab = project();
    let check = |input: Value, expected: &str| {
        let output = lab.call("search", input.clone());
        assert!(!output.failed, "{input}: {}", output.text);
        assert_eq!(output.text, expected, "{input}");
    };
    let both = "keep.log:1:hello\nsrc/lib/deep.rs:1:pub fn hello() {}\nsrc/main.rs:2:    hello();\n[3 matches in 3 files]\n";
    check(json!({"pattern": "hel+o"}), both);
    check(json!({"pattern": "HELLO", "ignore_case": true}), both);
    check(
        json!({"pattern": "hello()", "literal": true, "glob": "main.*"}),
        "src/main.rs:2:    hello();\n[1 match in 1 file]\n",
    );
    check(
        json!({"pattern": "hello", "path": "src/main.rs", "context": 1}),
        "src/main.rs-1-fn main() {\nsrc/main.rs:2:    hello();\nsrc/main.rs-3-}\n[1 match in 1 file]\n",
    );
    check(json!({"pattern": "hello", "path": "target"}), "target/out.rs:1:hello\n[1 match in 1 file]\n");
    check(json!({"pattern": "the secret"}), "No line matches.\n");
    check(json!({"pattern": "fsmonitor"}), "No line matches.\n");
    let output = lab.call("search", json!({"pattern": "l", "limit": 1}));
    assert!(output.text.contains("there may be more"), "{}", output.text);
    for (pattern, expected) in
        [("(", "cannot be used"), ("a\nb", "one line"), ("", "empty"), ("[z-a]", "literal")]
    {
        let output = lab.call("search", json!({"pattern": pattern}));
        assert!(output.failed && output.text.contains(expected), "{pattern:?}: {}", output.text);
    }
}

#[test]
fn a_long_list_of_matches_is_truncated_and_saved_completely() {
    let lab = Lab::new();
    lab.file("many", "the same line again and again\n".repeat(4_000));
    let output = lab.call("search", json!({"pattern": "same", "limit": 4000}));
    assert!(output.text.chars().count() < 31_000);
    let whole = output.whole.expect("all of it");
    assert_eq!(whole.split(|byte| *byte == b'\n').count(), 4_002);
}

#[test]
fn ignore_rules_of_parent_folders_apply() {
    let lab = Lab::new();
    for folder in ["top/.git/objects", "top/.git/refs", "top/part/here"] {
        fs::create_dir_all(lab.root().join(folder)).expect("a folder");
    }
    lab.file("top/.git/HEAD", "ref: refs/heads/main\n");
    lab.file("top/.gitignore", "*.log\n/part/here/built\n/elsewhere\n");
    lab.file("top/part/.gitignore", "!kept.log\n");
    for name in ["a.log", "kept.log", "built", "elsewhere", "plain"] {
        lab.file(&format!("top/part/here/{name}"), "word\n");
    }
    let context = ToolContext::open(&lab.root().join("top/part/here")).expect("a folder");
    let output = run(&call("list", json!({})), &context, &Cancel::new(), &mut |_| {});
    assert_eq!(output.text, "elsewhere\nkept.log\nplain\n");
}

#[test]
fn files_over_the_size_limit_are_counted() {
    let mut lab = Lab::new();
    lab.context.limits.file = 100;
    lab.file("long", "word\n".repeat(100));
    lab.file("short", "word\n");
    let output = lab.call("search", json!({"pattern": "word"}));
    assert!(
        output.text.starts_with("short:1:word\n[1 match in 1 file]\n[1 file was too long"),
        "{}",
        output.text
    );
    // An explicitly named file is searched at any length.
    assert!(lab.call("search", json!({"pattern": "word", "path": "long"})).text.contains("100 matches"));
}

#[test]
fn an_extremely_deep_folder_does_no_harm() {
    let lab = Lab::new();
    let deep = "d/".repeat(300);
    lab.file(&format!("{deep}file"), "x");
    for (tool, input) in [
        ("glob", json!({"pattern": "file"})),
        ("search", json!({"pattern": "x"})),
        ("list", json!({"depth": 1000})),
    ] {
        let output = lab.call(tool, input);
        assert!(!output.failed, "{tool}: {}", output.text);
    }
}
