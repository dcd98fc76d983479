//! Names that were replaced must not come back: as identifiers, files, commands, flags, routes or JSON keys.
//!
//! Prose is free: comments and sentences in strings are not checked, only strings that are a single name, a flag, or a path,
//! and code spans of the documentation. Ordinary words that still have an ordinary meaning somewhere (`once`, `mark`,
//! `Sender`, `Step`) are not listed, except where they were routes.

use std::path::Path;

use super::Violation;

/// The names that one name replaced.
struct Row {
    replacement: &'static str,
    /// Types, functions, fields, variables.
    identifiers: &'static [&'static str],
    /// Commands, flags, JSON keys and their values, and segments of routes.
    surface: &'static [&'static str],
    /// Segments of routes only: ordinary words elsewhere.
    routes: &'static [&'static str],
    /// Rust files and folders, without extension.
    files: &'static [&'static str],
}

const EMPTY: Row = Row { replacement: "", identifiers: &[], surface: &[], routes: &[], files: &[] };

const ROWS: &[Row] = &[
    Row { replacement: "Reader", identifiers: &["Looking", "LookError"], files: &["looking"], ..EMPTY },
    Row { replacement: "WorkingCopy", identifiers: &["Desk", "desk"], files: &["desk"], ..EMPTY },
    Row {
        replacement: "worktree",
        identifiers: &["Apart", "apart"],
        surface: &["apart"],
        files: &["apart"],
        ..EMPTY
    },
    Row {
        replacement: "AgentRuntime",
        identifiers: &["Workshop", "workshop"],
        files: &["workshop"],
        ..EMPTY
    },
    Row { replacement: "ModelBackend", identifiers: &["Brain", "brain"], files: &["brain"], ..EMPTY },
    Row { replacement: "ToolContext", identifiers: &["Room", "Bench"], files: &["room"], ..EMPTY },
    Row {
        replacement: "TurnMessage",
        identifiers: &["Letter", "Unreached"],
        surface: &["letters"],
        files: &["letter", "letters"],
        ..EMPTY
    },
    Row {
        replacement: "running turns, browser sessions, idempotency keys or the trace",
        identifiers: &["Ledger", "ledger"],
        // The file is still called `ledger.db`.
        surface: &["ledger_problem", "ledger_newer"],
        files: &["ledger"],
        ..EMPTY
    },
    Row { replacement: "scope", identifiers: &["Halves", "halves"], surface: &["halves"], ..EMPTY },
    Row { replacement: "MoveOptions", identifiers: &["Handling"], ..EMPTY },
    Row { replacement: "a noun for what it is", identifiers: &["Place"], files: &["place"], ..EMPTY },
    Row {
        replacement: "version, revision or MoveOutcome",
        identifiers: &["Moment"],
        files: &["moment"],
        ..EMPTY
    },
    Row {
        replacement: "last_file_operation",
        identifiers: &["Filed", "filed"],
        surface: &["filed", "filed_wrong"],
        files: &["filed"],
        ..EMPTY
    },
    Row {
        replacement: "preview",
        identifiers: &["foresee", "Foreseen", "foreseen", "would"],
        surface: &["foresee", "would"],
        ..EMPTY
    },
    Row {
        replacement: "undo_status",
        identifiers: &["Standing", "standing"],
        surface: &["standing"],
        files: &["standing"],
        ..EMPTY
    },
    Row { replacement: "idempotency", files: &["once"], ..EMPTY },
    Row {
        replacement: "auth, BrowserSession, login",
        identifiers: &["Gate", "gate"],
        routes: &["enter", "leave"],
        files: &["gate", "visitor", "enter"],
        ..EMPTY
    },
    Row {
        replacement: "captured, excluded",
        identifiers: &["held", "LeftOut", "left_out"],
        surface: &[
            "left_out",
            "left-out",
            "left_out_count",
            "files_held",
            "bytes_held",
            "sealed_left_out",
            "kept_pictures",
        ],
        files: &["left_out"],
        ..EMPTY
    },
    Row {
        replacement: "mark_running, snapshot_and_record, current_files, execute, status",
        identifiers: &["let_loose", "take_stock", "carry_out", "glance", "Glance"],
        surface: &["glance"],
        files: &["glance"],
        ..EMPTY
    },
    Row {
        replacement: "PageQuery, ResolvedTarget, TurnOverrides",
        identifiers: &["Asked", "Meant", "meant", "Wanted"],
        ..EMPTY
    },
    Row {
        replacement: "Description, or the noun that it is",
        identifiers: &["Told", "told", "Said", "said", "Story"],
        files: &["told", "said", "story"],
        ..EMPTY
    },
    Row {
        replacement: "ToolPhase, Provenance, Environment",
        identifiers: &["Around", "Surroundings"],
        ..EMPTY
    },
    Row {
        replacement: "TurnRequest, RetryRequest, ResumeRequest",
        identifiers: &["Beginning", "Again", "Resuming"],
        ..EMPTY
    },
    Row { replacement: "TurnObserver::on_event", identifiers: &["Audience", "hear", "heard"], ..EMPTY },
    Row { replacement: "RetryPolicy, rng", identifiers: &["patience", "Dice", "dice"], ..EMPTY },
    Row { replacement: "FilePlan, or a name by subject", identifiers: &["Way", "Fared"], ..EMPTY },
    Row {
        replacement: "trace",
        identifiers: &["Comms", "comms"],
        surface: &["comms"],
        files: &["comms"],
        ..EMPTY
    },
    Row { replacement: "render", identifiers: &["retake_words"], ..EMPTY },
    Row {
        replacement: "campaigns",
        identifiers: &["retake_proof"],
        files: &["proof", "crowd", "restless", "ground"],
        ..EMPTY
    },
    Row {
        replacement: "row_checksum",
        identifiers: &["Tally", "tally"],
        surface: &["tallies_differ", "tallies_mended"],
        files: &["tally"],
        ..EMPTY
    },
    Row {
        replacement: "Admission, InFlight, WriteTimeout, shutdown_grace",
        identifiers: &["Patient", "farewell"],
        ..EMPTY
    },
    Row {
        replacement: "openat, cache_cost",
        identifiers: &["beneath"],
        surface: &["reread_tokens"],
        files: &["beneath", "reread"],
        ..EMPTY
    },
    Row {
        replacement: "entries/view, compare-versions",
        surface: &["entries-shown", "entries_came", "entries_went", "takes_came", "takes_went"],
        routes: &["between", "shown"],
        ..EMPTY
    },
    Row { replacement: "archived", identifiers: &["put_away"], surface: &["put_away", "put-away"], ..EMPTY },
    Row {
        replacement: "the new name in CHANGELOG.md",
        surface: &[
            "call_began",
            "tool_runs",
            "files_seen",
            "newest_whole",
            "thread_went_back",
            "thread_derived",
            "index_mended",
        ],
        ..EMPTY
    },
];

fn violation(path: &Path, name: &str, row: &Row) -> Violation {
    format!("{}: `{name}` is retired; use {}, see docs/glossary.md", path.display(), row.replacement)
}

/// The retired names in a Rust source file or a module of the studio, and in its path.
pub(super) fn retired(path: &Path, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut check = |name: &str, listed: fn(&Row) -> &[&str]| {
        found.extend(
            ROWS.iter().find(|row| listed(row).contains(&name)).map(|row| violation(path, name, row)),
        );
    };
    for part in path.with_extension("").iter().filter_map(|part| part.to_str()) {
        check(part, |row| row.files);
    }
    for token in tokens(text) {
        match token {
            Token::Identifier(name) => check(name, |row| row.identifiers),
            Token::Text(text) => {
                surface_names(text).for_each(|name| check(name, |row| row.surface));
                let path = text.split('?').next().unwrap_or_default();
                route(path).into_iter().flatten().for_each(|name| check(name, |row| row.routes));
            }
        }
    }
    found
}

/// The retired names in code spans of a page.
pub(super) fn retired_in_page(path: &Path, text: &str) -> Vec<Violation> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = spans.flat_map(|span| {
        span.split(|letter: char| !letter.is_ascii_alphanumeric() && !['_', '-'].contains(&letter))
    });
    words
        .map(|word| word.trim_start_matches('-'))
        .filter_map(|word| {
            ROWS.iter().find(|row| row.surface.contains(&word)).map(|row| violation(path, word, row))
        })
        .collect()
}

/// The names in a string that is a key, a command, a flag or a route. A sentence has none.
fn surface_names(text: &str) -> impl Iterator<Item = &str> {
    let parts: Vec<&str> = match (route(text), text.strip_prefix("--")) {
        (Some(route), _) => route.collect(),
        (None, Some(flag)) => vec![flag],
        (None, None) => vec![text],
    };
    parts.into_iter().filter(|part| is_name(part))
}

/// The segments of a string that is a route.
fn route(text: &str) -> Option<impl Iterator<Item = &str>> {
    let rest = text.strip_prefix('/').filter(|rest| !rest.contains(char::is_whitespace))?;
    Some(rest.split(['/', '?', '&', '=']))
}

fn is_name(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
enum Token<'text> {
    Identifier(&'text str),
    Text(&'text str),
}

/// Identifiers and string literals of Rust code, without comments.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest) {
            found.push(Token::Text(raw.content));
            raw.length
        } else if rest.starts_with('"') {
            let end = string_end(rest);
            found.push(Token::Text(&rest[1..end.max(1)]));
            end + 1
        } else if rest.starts_with('\'') {
            character(rest)
        } else if bytes[at].is_ascii_alphabetic() || bytes[at] == b'_' {
            let end = rest
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .unwrap_or(rest.len());
            found.push(Token::Identifier(&rest[..end]));
            end
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += length;
    }
    found
}

struct RawString<'text> {
    content: &'text str,
    length: usize,
}

fn raw_string(text: &str) -> Option<RawString<'_>> {
    let opening = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = opening.bytes().take_while(|byte| *byte == b'#').count();
    let body = opening[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&closing)?;
    let length = text.len() - body.len() + end + closing.len();
    Some(RawString { content: &body[..end], length })
}

/// Where the string literal that `text` starts with ends: the position of its closing quote.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, letter)| *letter == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some((_, letter)) if text[1 + letter.len_utf8()..].starts_with('\'') => letter.len_utf8() + 2,
        _ => 1,
    }
}

#[test]
fn every_retired_name_is_caught() {
    let caught = |text: &str, name: &str| {
        let found = retired(Path::new("x.rs"), text);
        assert!(found.iter().any(|violation| violation.contains(&format!("`{name}`"))), "{text}");
    };
    for row in ROWS {
        for name in row.identifiers {
            caught(&format!("fn f(a: {name}) {{}}"), name);
        }
        for name in row.surface {
            caught(&format!("json!({{\"{name}\": 1}})"), name);
            caught(&format!("call(&[\"--{name}\"])"), name);
            caught(&format!("get(\"/v1/threads/{{thread}}/{name}\", list)"), name);
            assert_eq!(retired_in_page(Path::new("x.md"), &format!("Pass `--{name} 1`.")).len(), 1, "{name}");
        }
        for name in row.routes {
            caught(&format!("get(\"/v1/threads/{{thread}}/{name}?a=1\", list)"), name);
        }
        for name in row.files {
            assert_eq!(retired(&Path::new("src").join(name).with_extension("rs"), "").len(), 1, "{name}.rs");
            assert_eq!(retired(&Path::new("src").join(name).join("a.rs"), "").len(), 1, "{name}/a.rs");
        }
    }
}

#[test]
fn retired_names_are_found_only_in_code() {
    let check = |text: &str, expected: bool| {
        assert_eq!(!retired(Path::new("x.rs"), text).is_empty(), expected, "{text}");
    };
    check("// A Desk of old, and 'static", false);
    check("let desk_of = \"take a look at the Desk\";", false);
    check("let quote = '\"'; let x: Desk;", true);
    check("let quote = '\\''; /* Desk */", false);
    check("let raw = r#\"halves\"#;", true);
    check("fn f<'a>(x: &'a str) -> Desk { }", true);
    // Only a segment of a route is a retired route.
    check("let name = \"between\";", false);
    check("get(\"/v1/threads?deleted=shown\")", false);
    assert!(retired_in_page(Path::new("x.md"), "It would be held apart: `scope`.").is_empty());
}
