//! Unknown fields of entries are stored, shown, found, preserved by edits, exported and imported.

use crate::tools::support::User;

const ENTRY: &str = r#"{"role":"AI","blocks":[
    {"type":"text","text":"See the manual.","cache":{"b":1.0,"a":[ 1 ]}},
    {"type":"citation","source":"handbook","pages":[7, 9]},
    {"type":"tool_call","call":"c","name":"bash","input":{},"caller":"outer"}],
    "usage":{"input":3,"output":5,"tier":"quick"},"ticket":7}"#;

const KEPT: [&str; 5] = [
    r#""cache":{"b":1.0,"a":[ 1 ]}"#,
    r#"{"type":"citation","pages":[7, 9],"source":"handbook"}"#,
    r#""caller":"outer""#,
    r#""tier":"quick""#,
    r#""ticket":7"#,
];

fn holds_all(answer: &str) {
    for kept in KEPT {
        assert!(answer.contains(kept), "{kept}: {answer}");
    }
}

#[test]
fn unknown_fields_survive_everything() {
    let user = User::new();
    user.run(&["thread", "new", "Open"]);
    user.run(&["entry", "add", "--fields", ENTRY]);
    holds_all(&user.run(&["entry", "show", "1", "--json"]));

    user.run(&["entry", "edit", "1", "Read the manual."]);
    user.run(&["entry", "role", "1", "Assistant"]);
    let edited = user.run(&["entry", "show", "1", "--json"]);
    holds_all(&edited);
    assert!(edited.contains(r#""content":"Read the manual.""#), "{edited}");

    let shown = user.run(&["thread", "show"]);
    for line in ["[unknown block: citation]", "source: \"handbook\"", "usage.tier: \"quick\"", "ticket: 7"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(user.json(&["search", "handbook"])["hits"].as_array().map(Vec::len), Some(1));
    let text = user.run(&["export", "--format", "markdown", "-o", "-"]);
    assert!(text.contains(r#"{"type":"citation","pages":[7, 9],"source":"handbook"}"#), "{text}");

    let other = User::new();
    let file = other.path("thread.retake");
    user.run(&["export", "-o", &file.to_string_lossy()]);
    other.run(&["import", &file.to_string_lossy()]);
    holds_all(&other.run(&["thread", "show", "Open", "--json"]));
    other.run(&["verify"]);
}

#[test]
fn shown_entries_can_be_added_again() {
    let user = User::new();
    user.run(&["thread", "new", "Open"]);
    user.run(&["entry", "add", "--fields", ENTRY]);
    let first = user.json(&["entry", "show", "1"]);
    user.run(&["entry", "add", "--fields", &first["entry"].to_string()]);
    let second = user.json(&["entry", "show", "2"]);
    assert_eq!(first["entry"], second["entry"]);
}
