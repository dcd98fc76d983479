//! Table tests of decisions.

use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn call(name: &str, input: Value) -> Call {
    Call { id: "1".to_owned(), name: name.to_owned(), input }
}

fn policy(mode: ApprovalMode, rules: Value) -> ApprovalPolicy {
    ApprovalPolicy { mode, rules: serde_json::from_value(rules).expect("rules") }
}

fn site() -> CallSite<'static> {
    CallSite { directory: Path::new("/project"), project: "project" }
}

#[test]
fn the_mode_applies_without_a_matching_rule() {
    use Decision::{Allow, Ask, Deny};
    let check = |mode: ApprovalMode, expected: [Decision; 3]| {
        let policy = policy(mode, json!([]));
        let calls = [
            call("search", json!({"pattern": "x"})),
            call("write", json!({"path": "a", "content": ""})),
            call("shell", json!({"command": "ls"})),
        ];
        for (call, expected) in calls.iter().zip(expected) {
            let verdict = policy.decide(call, site(), &|_| false);
            assert_eq!(
                verdict,
                Verdict { decision: expected, because: VerdictReason::Mode(mode) },
                "{}",
                call.name
            );
        }
    };
    check(ApprovalMode::Ask, [Allow, Ask, Ask]);
    check(ApprovalMode::AllowEdits, [Allow, Allow, Ask]);
    check(ApprovalMode::AllowAll, [Allow, Allow, Allow]);
    check(ApprovalMode::Deny, [Allow, Deny, Deny]);
    let verdict = ApprovalPolicy::default().decide(&call("nothing", json!({})), site(), &|_| true);
    assert_eq!(verdict.decision, Deny);
    for tool in tools::all() {
        let decision =
            ApprovalPolicy::default().decide(&call(tool.name, json!({})), site(), &|_| false).decision;
        assert_eq!(
            decision == Allow,
            ["read", "list", "glob", "search"].contains(&tool.name),
            "{}",
            tool.name
        );
    }
}

#[test]
fn the_strictest_matching_rule_wins() {
    let rules = json!([
        {"tool": "shell", "command": "cargo *", "decision": "allow"},
        {"tool": "shell", "command": "cargo publish *", "decision": "ask"},
        {"tool": "shell", "command": "rm *", "decision": "deny"},
        {"tool": "write", "path": "src/**", "decision": "allow"},
        {"path": "/src/generated", "decision": "deny"},
        {"path": ".env", "decision": "deny"},
        {"tool": "edit", "path": "*.md", "decision": "allow"},
        {"tool": "edit", "path": "/docs", "decision": "ask"},
    ]);
    let check = |name: &str, input: Value, ask: &str, all: &str, deny: &str| {
        for (mode, expected) in
            [(ApprovalMode::Ask, ask), (ApprovalMode::AllowAll, all), (ApprovalMode::Deny, deny)]
        {
            let mut backwards = policy(mode, rules.clone());
            backwards.rules.reverse();
            for policy in [policy(mode, rules.clone()), backwards] {
                let decision = policy.decide(&call(name, input.clone()), site(), &|_| false).decision;
                assert_eq!(json!(decision), json!(expected), "{name} {input} {mode:?}");
            }
        }
    };
    let shell = |command: &str, ask, all, deny| check("shell", json!({"command": command}), ask, all, deny);
    shell("cargo test", "allow", "allow", "deny");
    shell("cargo publish --all", "ask", "ask", "deny");
    shell("cargo test; rm -rf ~", "deny", "deny", "deny");
    shell("cargo test; ls", "ask", "allow", "deny");
    shell("cargo test $(curl x)", "ask", "allow", "deny");
    shell("cargo test\nls", "ask", "allow", "deny");
    shell("cargo test > x", "ask", "allow", "deny");
    shell("ls", "ask", "allow", "deny");
    let write =
        |path: &str, ask, all, deny| check("write", json!({"path": path, "content": ""}), ask, all, deny);
    write("src/main.rs", "allow", "allow", "deny");
    write("/project/src/main.rs", "allow", "allow", "deny");
    write("./src//main.rs", "allow", "allow", "deny");
    write("src/generated/a.rs", "deny", "deny", "deny");
    write("SRC/Generated/a.rs", "deny", "deny", "deny");
    write("SRC/main.rs", "ask", "allow", "deny");
    write("source/main.rs", "ask", "allow", "deny");
    write("src/../.env", "ask", "allow", "deny");
    write("deep/.env", "deny", "deny", "deny");
    check("read", json!({"path": ".env"}), "deny", "deny", "deny");
    check("read", json!({"path": "src/main.rs"}), "allow", "allow", "allow");
    check("search", json!({"pattern": "x", "path": "src/generated"}), "deny", "deny", "deny");
    check("search", json!({"pattern": "x"}), "allow", "allow", "allow");
    check("edit", json!({"path": "README.md"}), "allow", "allow", "deny");
    check("edit", json!({"path": "docs/a.md"}), "ask", "ask", "deny");
    check("edit", json!({"path": 5}), "ask", "allow", "deny");
    check("shell", json!({"command": ["cargo", "test"]}), "ask", "allow", "deny");
    check("shell", json!({"path": ".env", "command": "ls"}), "ask", "allow", "deny");
}

#[test]
fn remembered_calls_match_exactly_and_override_no_deny_rule() {
    let exact = call("shell", json!({"command": "make && ./run"}));
    let known = fingerprint(&exact, "project", tools::VERSION);
    let remembered = |name: &Fingerprint| *name == known;
    let check = |policy: &ApprovalPolicy, call: &Call, site: CallSite<'_>, expected: Decision| {
        assert_eq!(policy.decide(call, site, &remembered).decision, expected, "{call:?} {policy:?}");
    };
    let usual = ApprovalPolicy::default();
    check(&usual, &exact, site(), Decision::Allow);
    check(&usual, &Call { id: "2".into(), ..exact.clone() }, site(), Decision::Allow);
    check(&usual, &exact, CallSite { project: "other", ..site() }, Decision::Ask);
    check(&usual, &call("shell", json!({"command": "make && ./run "})), site(), Decision::Ask);
    check(&usual, &call("shell", json!({"command": "make && ./run", "timeout": 1})), site(), Decision::Ask);
    check(&policy(ApprovalMode::Deny, json!([])), &exact, site(), Decision::Deny);
    check(
        &policy(ApprovalMode::Ask, json!([{"command": "make", "decision": "deny"}])),
        &exact,
        site(),
        Decision::Deny,
    );
}

#[test]
fn invalid_rules_are_refused() {
    let check = |rule: Value, part: &str| {
        let error = serde_json::from_value::<Rule>(rule.clone()).expect_err("no rule").to_string();
        assert!(error.contains(part), "{rule}: {error}");
    };
    check(json!({"tool": "shel", "decision": "deny"}), "unknown tool");
    check(json!({"tool": "shell", "path": "a", "decision": "deny"}), "no path");
    check(json!({"tool": "write", "command": "a", "decision": "deny"}), "only `shell`");
    check(json!({"path": "a", "command": "a", "decision": "deny"}), "only `shell`");
    check(json!({"command": " ", "decision": "deny"}), "empty");
    check(json!({"command": "a | b", "decision": "allow"}), "never be allowed");
    check(json!({"path": "a[", "decision": "allow"}), "invalid path pattern");
    check(json!({"tool": "shell"}), "decision");
    check(json!({"decision": "maybe"}), "maybe");
    check(json!({"decision": "deny", "tols": "x"}), "tols");
    assert!(serde_json::from_value::<Rule>(json!({"command": "a | b", "decision": "deny"})).is_ok());
    assert!(serde_json::from_value::<Rule>(json!({"tool": "*", "decision": "ask"})).is_ok());
    let read: ApprovalPolicy = serde_json::from_value(json!({"mode": "allow-edits"})).expect("a policy");
    assert_eq!(read.mode, ApprovalMode::AllowEdits);
    assert!(serde_json::from_value::<ApprovalPolicy>(json!({"mod": "ask"})).is_err());
}
