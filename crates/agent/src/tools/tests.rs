//! Tests of tools as a model uses them: by calls, in real folders.

mod files;
mod finding;
mod hostile;
mod shell;
mod stopping;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A working folder, and a folder beside it that tools must not reach.
struct Lab {
    place: TempDir,
    context: ToolContext,
}

impl Lab {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(place.path().join("root")).expect("a folder");
        fs::create_dir(place.path().join("outside")).expect("a folder");
        fs::write(place.path().join("outside/secret"), "the secret").expect("a file");
        let mut context = ToolContext::open(&place.path().join("root")).expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        context.environment = vec![("PATH".into(), path), ("HOME".into(), place.path().into())];
        Self { place, context }
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    fn outside(&self) -> PathBuf {
        self.place.path().join("outside")
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).expect("a file")
    }

    fn call(&self, name: &str, input: Value) -> Output {
        self.call_until(name, input, &Cancel::new())
    }

    fn call_until(&self, name: &str, input: Value, cancel: &Cancel) -> Output {
        run(&call(name, input), &self.context, cancel, &mut |_| {})
    }

    /// Checks that files outside the folder did not change.
    fn check_outside(&self) {
        let names: Vec<_> =
            fs::read_dir(self.outside()).expect("a folder").map(|e| e.expect("a name").file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs::read_to_string(self.outside().join("secret")).expect("a file"), "the secret");
        let mut beside: Vec<_> = fs::read_dir(self.place.path())
            .expect("a folder")
            .map(|e| e.expect("a name").file_name())
            .collect();
        beside.sort();
        assert_eq!(beside, ["outside", "root"]);
    }
}

fn call(name: &str, input: Value) -> Call {
    Call { id: "1".to_owned(), name: name.to_owned(), input }
}

#[test]
fn every_tool_has_a_schema_and_refuses_other_input() {
    let lab = Lab::new();
    for tool in all() {
        let schema = schema(tool);
        assert_eq!(schema["type"], "object", "{}", tool.name);
        for name in schema["required"].as_array().expect("a list") {
            assert!(
                schema["properties"].get(name.as_str().expect("a name")).is_some(),
                "{} {name}",
                tool.name
            );
        }
        for input in [
            json!(null),
            json!([]),
            json!("x"),
            json!({"path": 1}),
            json!({"unheard": "of"}),
            json!({"path": {"a": []}}),
        ] {
            let output = lab.call(tool.name, input.clone());
            assert!(output.failed, "{} took {input}", tool.name);
            assert!(output.text.contains("schema"), "{}: {}", tool.name, output.text);
        }
    }
    let output = lab.call("reed", json!({}));
    assert!(output.failed && output.text.contains("read, write"), "{}", output.text);
}

#[test]
fn touched_paths_of_calls() {
    let directory = std::path::Path::new("/project");
    let check = |name: &str, input: Value, expected: TouchedPaths| {
        assert_eq!(touched_paths(&call(name, input), directory), expected, "{name}");
    };
    let path = TreePath::new(b"src/a").expect("a path");
    check("write", json!({"path": "src/a", "content": ""}), TouchedPaths::Paths(vec![path.clone()]));
    check("edit", json!({"path": "/project/src/a"}), TouchedPaths::Paths(vec![path]));
    check("write", json!({"path": "../a"}), TouchedPaths::Nothing);
    check("write", json!({}), TouchedPaths::Nothing);
    check("read", json!({"path": "src/a"}), TouchedPaths::Nothing);
    check("shell", json!({"command": "true"}), TouchedPaths::Anything);
    check("unknown", json!({}), TouchedPaths::Nothing);
}

#[test]
fn a_cancelled_call_does_not_start() {
    let lab = Lab::new();
    let cancel = Cancel::new();
    cancel.set();
    let output = lab.call_until("write", json!({"path": "a", "content": "x"}), &cancel);
    assert!(output.failed && !lab.root().join("a").exists());
    let output = lab.call_until("shell", json!({"command": "touch b; sleep 20"}), &cancel);
    assert!(output.failed && !lab.root().join("b").exists());
    assert!(cancel.wait_timeout(Duration::ZERO));
}
