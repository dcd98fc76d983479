//! Tests of reading, writing and editing files.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn writing_a_file_preserves_its_permissions() {
    let lab = Lab::new();
    let output = lab.call("write", json!({"path": "new/deep/file.txt", "content": "one\ntwo\n"}));
    assert_eq!(output.text, "Created new/deep/file.txt (2 lines, 8 bytes).");
    assert_eq!(lab.read("new/deep/file.txt"), "one\ntwo\n");

    lab.file("run.sh", "old");
    let path = lab.root().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("the temporary folder is writable");
    let output = lab.call("write", json!({"path": path.to_str().expect("text"), "content": "new"}));
    assert_eq!(output.text, "Replaced run.sh (1 line, 3 bytes).");
    assert_eq!(lab.read("run.sh"), "new");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o7777, 0o750);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).expect("the temporary folder is writable");
    let output = lab.call("edit", json!({"path": "run.sh", "old": "new", "new": "newer"}));
    assert!(output.text.ends_with("Its setuid, setgid or sticky bit was cleared."), "{}", output.text);
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o7777, 0o750);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("the temporary folder is writable");
    let output = lab.call("write", json!({"path": "run.sh", "content": "x"}));
    assert!(output.failed && output.text.contains("read-only"), "{}", output.text);
    for leftover in fs::read_dir(lab.root()).expect("a folder") {
        let name = leftover.expect("a name").file_name();
        assert!(!name.to_string_lossy().starts_with(".retake-tmp"), "{name:?}");
    }
}

#[test]
fn lines_are_numbered_and_long_files_are_read_in_parts() {
    let mut lab = Lab::new();
    lab.file("short", "a\nb\r\nc");
    lab.file("windows", "a\r\nb\r\n");
    lab.file("empty", "");
    lab.file("binary", b"ELF\0\x01");
    lab.file("latin", b"caf\xe9\n");
    lab.file("lines", (1..=50).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n"));
    lab.file("wide", "x".repeat(300_000));
    lab.file("escapes", "\u{1b}]0;title\u{7}\n");
    lab.context.limits.lines = 20;
    lab.context.limits.line = 100;
    let check = |input: Value, failed: bool, parts: &[&str]| {
        let output = lab.call("read", input.clone());
        assert_eq!(output.failed, failed, "{input}: {}", output.text);
        for part in parts {
            assert!(output.text.contains(part), "{input}: {}", output.text);
        }
        assert!(output.text.len() < 40_000);
    };
    check(json!({"path": "short"}), false, &["     1\ta\n     2\tb\n     3\tc\n"]);
    check(json!({"path": "windows"}), false, &["     2\tb\n", "carriage return"]);
    check(json!({"path": "empty"}), false, &["is empty"]);
    check(json!({"path": "binary"}), true, &["not text (5 bytes)"]);
    check(json!({"path": "latin"}), false, &["caf\u{fffd}"]);
    check(
        json!({"path": "lines"}),
        false,
        &["    20\tline 20\n[More lines follow. Continue with offset 21.]"],
    );
    check(json!({"path": "lines", "offset": 49, "limit": 9}), false, &["    49\tline 49\n    50\tline 50\n"]);
    check(json!({"path": "lines", "offset": 51}), true, &["has 50 lines"]);
    check(json!({"path": "lines", "offset": 0, "limit": 1}), false, &["     1\tline 1\n"]);
    check(json!({"path": "wide"}), false, &["more characters in this line]", "more bytes]"]);
    check(json!({"path": "escapes"}), false, &["\u{1b}]0;title"]);
    check(json!({"path": "missing"}), true, &["does not exist"]);
    check(json!({"path": "."}), true, &["project folder itself"]);
    check(json!({"path": "short/x"}), true, &["not a folder"]);
}

#[test]
fn images_are_recognised_by_their_content() {
    let mut lab = Lab::new();
    lab.context.limits.image = 20_000;
    let images: [(&str, &[u8], &str); 4] = [
        ("a", b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        ("b.txt", b"\xff\xd8\xff\xe0\0", "image/jpeg"),
        ("c", b"GIF89a\0", "image/gif"),
        ("d", b"RIFF\x04\0\0\0WEBPVP8 ", "image/webp"),
    ];
    for (name, beginning, media) in images {
        let mut bytes = beginning.to_vec();
        bytes.resize(15_000, 7);
        lab.file(name, &bytes);
        let output = lab.call("read", json!({"path": name}));
        assert_eq!(output.images, [Image { media, bytes: bytes.clone() }], "{}", output.text);
        bytes.resize(20_001, 7);
        lab.file(name, &bytes);
        let output = lab.call("read", json!({"path": name}));
        assert!(output.failed && output.images.is_empty(), "{}", output.text);
    }
}

#[test]
fn an_edit_changes_the_file_or_explains_why_not() {
    let lab = Lab::new();
    let check = |content: &[u8], input: Value, expected: Result<&str, &str>| {
        lab.file("file", content);
        let mut input = input;
        input["path"] = json!("file");
        let output = lab.call("edit", input);
        match expected {
            Ok(expected) => {
                assert!(!output.failed, "{}", output.text);
                assert_eq!(lab.read("file"), expected);
            }
            Err(part) => {
                assert!(output.failed && output.text.contains(part), "{}", output.text);
                assert_eq!(fs::read(lab.root().join("file")).expect("a file"), content);
            }
        }
    };
    check(b"a\nb\n", json!({"old": "a", "new": "x"}), Ok("x\nb\n"));
    check(b"a a\n", json!({"old": "a", "new": "x"}), Err("2 places"));
    check(b"a a\n", json!({"old": "a", "new": "x", "all": true}), Ok("x x\n"));
    check(b"\tif a {\n\t}\n", json!({"old": "if a {\n}", "new": "if b {\n}"}), Ok("\tif b {\n\t}\n"));
    check(b"a\n", json!({"old": "", "new": "x"}), Err("empty"));
    check(b"a\n", json!({"old": "a", "new": "a"}), Err("the same"));
    check(b"\xff a\n", json!({"old": "a", "new": "b"}), Err("not text"));
    let output = lab.call("edit", json!({"path": "missing", "old": "a", "new": "b"}));
    assert!(output.failed && output.text.contains("does not exist"), "{}", output.text);
}

#[test]
fn a_file_changed_by_someone_else_meanwhile_is_not_overwritten() {
    let lab = Lab::new();
    lab.file("file", "one");
    let path = TreePath::new(b"file").expect("a path");
    let read =
        super::super::openat::file(&lab.context.root, &path, super::super::openat::SymlinkPolicy::Follow)
            .expect("a file");
    lab.file("file", "another");
    let expected = super::super::write::ExpectedFile::This(&read.stat);
    let result = super::super::write::replace(&lab.context, &path, b"ours", &expected);
    assert!(result.is_err_and(|error| error.to_string().contains("changed by someone else")));
    assert_eq!(lab.read("file"), "another");
    assert_eq!(fs::read_dir(lab.root()).expect("a folder").count(), 1);
}
