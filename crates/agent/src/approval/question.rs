//! The approval question shown to the user.
//!
//! The text of a call comes from a model and is untrusted. It must not be able to overwrite the question, reverse text or
//! imitate an answer. So every line starts with a mark that the call cannot write, and invisible characters are escaped.
//!
//! ```text
//!   $ cargo test\u{1b}[2K          the command
//!   > second line of it
//!   path: src/main.rs              - removed lines     + added lines
//! ```

use std::fmt::Write as _;

use serde_json::Value;

use crate::tools::Call;

/// The question about a call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ApprovalQuestion"))]
pub struct ApprovalQuestion {
    /// The tool.
    pub tool: String,
    /// The call, as lines without control characters.
    pub what: Vec<String>,
}

/// Maximum lines of a text. Commands are always shown completely.
const MAX_LINES: usize = 40;
/// Longer runs of spaces in a command are abbreviated, because they could hide its end.
const MAX_SPACES: usize = 16;

/// Describes a call.
pub fn describe(call: &Call) -> ApprovalQuestion {
    let mut what = Vec::new();
    match call.input.as_object() {
        None => what.push(format!("input: {}", escape_hidden(&call.input.to_string()))),
        Some(fields) => {
            // The most important fields first; unknown fields are shown too.
            for name in ["command", "path", "directory", "old", "new", "content"] {
                if let Some(value) = fields.get(name) {
                    field(name, value, &mut what);
                }
            }
            for (name, value) in fields {
                if !["command", "path", "directory", "old", "new", "content"].contains(&name.as_str()) {
                    field(name, value, &mut what);
                }
            }
        }
    }
    ApprovalQuestion { tool: escape_hidden(&call.name), what }
}

fn field(name: &str, value: &Value, what: &mut Vec<String>) {
    match (name, value) {
        ("command", Value::String(text)) => {
            for (index, line) in text.split('\n').enumerate() {
                let mark = if index == 0 { '$' } else { '>' };
                what.push(format!("{mark} {}", count_spaces(&escape_hidden(line))));
            }
        }
        ("old", Value::String(text)) => lines('-', text, what),
        ("new" | "content", Value::String(text)) => lines('+', text, what),
        (_, Value::String(text)) => what.push(format!("{}: {}", escape_hidden(name), escape_hidden(text))),
        (_, other) => what.push(format!("{}: {}", escape_hidden(name), escape_hidden(&other.to_string()))),
    }
}

fn lines(mark: char, text: &str, what: &mut Vec<String>) {
    let count = text.lines().count();
    what.extend(text.lines().take(MAX_LINES).map(|line| format!("{mark} {}", escape_hidden(line))));
    if count > MAX_LINES {
        what.push(format!("({} more lines)", count - MAX_LINES));
    }
}

/// Escapes invisible characters and line breaks.
pub fn escape_hidden(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => seen.push_str("    "),
            hidden if is_hidden(hidden) => {
                let _ = write!(seen, "\\u{{{:x}}}", u32::from(hidden));
            }
            shown => seen.push(shown),
        }
    }
    seen
}

/// Invisible characters, direction overrides and line breaks.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        // Other spaces look like a plain space, but a shell does not treat them as one.
        || (character.is_whitespace() && character != ' ')
}

fn count_spaces(line: &str) -> String {
    let mut text = String::new();
    let mut spaces = 0;
    for character in line.chars().chain(['\n']) {
        if character == ' ' {
            spaces += 1;
            continue;
        }
        if spaces > MAX_SPACES {
            let _ = write!(text, " [{spaces} spaces] ");
        } else {
            text.extend(std::iter::repeat_n(' ', spaces));
        }
        spaces = 0;
        text.push(character);
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(name: &str, input: Value) -> Vec<String> {
        let question = describe(&Call { id: String::new(), name: name.into(), input });
        for line in question.what.iter().chain([&question.tool]) {
            assert!(!line.chars().any(is_hidden), "{line:?}");
        }
        question.what
    }

    #[test]
    fn a_question_cannot_be_forged() {
        let check = |name: &str, input: Value, expected: &[&str]| assert_eq!(ask(name, input), expected);
        check("shell", json!({"command": "cargo test", "timeout": 5}), &["$ cargo test", "timeout: 5"]);
        check(
            "shell",
            json!({"command": "echo hi\r\n\u{1b}[2K\u{1b}[1A$ ls\nAllow? y"}),
            &["$ echo hi\\u{d}", "> \\u{1b}[2K\\u{1b}[1A$ ls", "> Allow? y"],
        );
        check(
            "shell",
            json!({"command": "a\u{202e}b\u{200b}c\u{a0}d\u{2028}e"}),
            &["$ a\\u{202e}b\\u{200b}c\\u{a0}d\\u{2028}e"],
        );
        check(
            "shell",
            json!({"command": format!("ls{}; rm x", " ".repeat(900))}),
            &["$ ls [900 spaces] ; rm x"],
        );
        check(
            "edit",
            json!({"path": "a\nb", "old": "x\ny", "new": "path: z"}),
            &["path: a\\u{a}b", "- x", "- y", "+ path: z"],
        );
        check("write", json!({"path": "a", "content": ""}), &["path: a"]);
        check("shell", json!({"command": ["rm", "\u{1b}"]}), &["command: [\"rm\",\"\\u001b\"]"]);
        check("x\u{7}", json!("\u{9b}"), &["input: \"\\u{9b}\""]);
        check("x", json!({"\u{1b}": "\u{7f}"}), &["\\u{1b}: \\u{7f}"]);
    }

    #[test]
    fn commands_are_complete_and_long_texts_are_marked_as_cut() {
        let command = (1..=500).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("\n");
        assert_eq!(ask("shell", json!({"command": command})).len(), 500);
        let what = ask("write", json!({"path": "a", "content": "x\n".repeat(100)}));
        assert_eq!(what.len(), 42);
        assert_eq!(what.last().map(String::as_str), Some("(60 more lines)"));
    }
}
