//! The instructions that the offline assistant understands.
//!
//! One per line, or several joined by "then"; bullets, numbers, "please" and the case of the first word do
//! not matter. The content of a file can follow in a fenced block. `run` takes the rest of its line
//! unchanged.
//!
//! | instruction | effect |
//! |---|---|
//! | `create PATH with TEXT`, or a fenced block below | writes a file |
//! | `edit PATH: replace "OLD" with "NEW"` | changes a file |
//! | `read PATH` | reads a file |
//! | `list [PATH]` | lists a folder |
//! | `glob PATTERN` | finds files by name |
//! | `search "TEXT" [in PATH]` | finds text in files |
//! | `run COMMAND` | runs a command |
//! | `say TEXT`, `think TEXT` | writes text or a thought |
//! | `ask TEXT` | writes text and waits for the user |
//! | `wait SECONDS` | writes slowly for this long, to test an interrupt |
//! | `fail`, `fail always` | fails like a provider: once, or every time |

use serde_json::{Value, json};

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// Writes a file.
    Create {
        /// The file.
        path: String,
        /// Its content.
        content: String,
    },
    /// Changes a file.
    Edit {
        /// The file.
        path: String,
        /// The text to replace.
        old: String,
        /// The new text.
        new: String,
    },
    /// Reads a file.
    Read(String),
    /// Lists a folder.
    List(Option<String>),
    /// Finds files by name.
    Glob(String),
    /// Finds text.
    Search {
        /// The text.
        text: String,
        /// The folder or file to search.
        path: Option<String>,
    },
    /// Runs a command.
    Run(String),
    /// Answers with a text.
    Say(String),
    /// Thinks something.
    Think(String),
    /// Answers with a text and waits for the user.
    Ask(String),
    /// Writes slowly for this many seconds.
    Wait(f64),
    /// Fails.
    Fail {
        /// Every time, not only the first.
        always: bool,
    },
}

/// The instructions in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedInstructions {
    /// The instructions, in order.
    pub instructions: Vec<Instruction>,
    /// Lines that are not instructions.
    pub not_understood: Vec<String>,
}

/// Maximum wait in seconds.
const MAX_WAIT: f64 = 3600.0;

const VERBS: [&str; 13] = [
    "create", "write", "edit", "read", "list", "glob", "search", "run", "say", "think", "ask", "wait", "fail",
];

impl Instruction {
    /// The tool that executes it, and its input.
    pub fn call(&self) -> Option<(&'static str, Value)> {
        Some(match self {
            Self::Create { path, content } => ("write", json!({"path": path, "content": content})),
            Self::Edit { path, old, new } => ("edit", json!({"path": path, "old": old, "new": new})),
            Self::Read(path) => ("read", json!({"path": path})),
            Self::List(None) => ("list", json!({})),
            Self::List(Some(path)) => ("list", json!({"path": path})),
            Self::Glob(pattern) => ("glob", json!({"pattern": pattern})),
            Self::Search { text, path: None } => ("search", json!({"pattern": text, "literal": true})),
            Self::Search { text, path: Some(path) } => {
                ("search", json!({"pattern": text, "literal": true, "path": path}))
            }
            Self::Run(command) => ("shell", json!({"command": command})),
            Self::Say(_) | Self::Think(_) | Self::Ask(_) | Self::Wait(_) | Self::Fail { .. } => return None,
        })
    }

    /// Whether it is read-only, so that it can run together with others.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Self::Read(_) | Self::List(_) | Self::Glob(_) | Self::Search { .. })
    }

    /// A short description.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Create { path, .. } => format!("wrote {path}"),
            Self::Edit { path, .. } => format!("edited {path}"),
            Self::Read(path) => format!("read {path}"),
            Self::List(path) => format!("listed {}", path.as_deref().unwrap_or("the folder")),
            Self::Glob(pattern) => format!("looked for {pattern}"),
            Self::Search { text, .. } => format!("searched for {text:?}"),
            Self::Run(command) => format!("ran `{command}`"),
            Self::Say(_) | Self::Think(_) | Self::Ask(_) | Self::Wait(_) | Self::Fail { .. } => String::new(),
        }
    }
}

/// Parses the instructions in a text.
pub fn read(text: &str) -> ParsedInstructions {
    let mut reading = ParsedInstructions::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        for sentence in sentences(line) {
            if let Some(path) = awaits_block(sentence) {
                // An empty line may come before the block.
                while lines.peek().is_some_and(|next| next.trim().is_empty()) {
                    lines.next();
                }
                if let Some(fence) = lines.peek().and_then(|next| fence(next)) {
                    lines.next();
                    let content: String = lines
                        .by_ref()
                        .take_while(|next| next.trim() != fence)
                        .flat_map(|next| [next, "\n"])
                        .collect();
                    reading.instructions.push(Instruction::Create { path: path.to_owned(), content });
                    continue;
                }
            }
            match instruction(sentence) {
                Some(instruction) => reading.instructions.push(instruction),
                None => reading.not_understood.push(sentence.chars().take(80).collect()),
            }
        }
    }
    reading
}

/// Splits a line at each "then" that an instruction follows.
fn sentences(line: &str) -> Vec<&str> {
    let mut rest = unadorned(line);
    let mut sentences = Vec::new();
    while let Some((before, after)) = next_then(rest) {
        sentences.push(before);
        rest = unadorned(after);
    }
    sentences.push(rest);
    sentences
}

fn next_then(sentence: &str) -> Option<(&str, &str)> {
    // A command may contain any words.
    if verb(sentence).is_some_and(|(verb, _)| verb == "run") {
        return None;
    }
    // Fold only ASCII, so that byte positions stay the same.
    let folded = sentence.to_ascii_lowercase();
    let mut from = 0;
    while let Some(found) = folded[from..].find(" then ") {
        let at = from + found;
        let quotes = sentence[..at].matches('"').count();
        if quotes.is_multiple_of(2) && verb(&sentence[at + 6..]).is_some() {
            let before = sentence[..at].trim_end();
            let before = before.strip_suffix(" and").unwrap_or(before).trim_end_matches(['.', ',', ';']);
            return Some((before, &sentence[at + 6..]));
        }
        from = at + 5;
    }
    None
}

/// A line without its bullet, number and "please".
fn unadorned(line: &str) -> &str {
    let line = line.trim();
    let line = line.trim_start_matches(['-', '*', '•']).trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let line = match line[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 => rest.trim_start(),
        _ => line,
    };
    match line.get(..7) {
        Some(word) if word.eq_ignore_ascii_case("please ") => line[7..].trim_start(),
        _ => line,
    }
}

/// The verb at the start of a sentence, and the rest.
fn verb(sentence: &str) -> Option<(&'static str, &str)> {
    let sentence = sentence.trim();
    let end = sentence.find(char::is_whitespace).unwrap_or(sentence.len());
    let word = sentence[..end].trim_end_matches([':', '.']);
    let verb = VERBS.into_iter().find(|verb| word.eq_ignore_ascii_case(verb))?;
    Some((verb, sentence[end..].trim()))
}

/// The path of a file whose content follows in a block.
fn awaits_block(sentence: &str) -> Option<&str> {
    let (verb, rest) = verb(sentence)?;
    let bare = rest.strip_suffix(':').or_else(|| rest.strip_suffix(" with")).unwrap_or(rest);
    let single = !bare.is_empty() && !bare.contains(char::is_whitespace);
    (matches!(verb, "create" | "write") && single).then(|| path_of(bare))
}

/// The line that closes the block opened by this line.
fn fence(line: &str) -> Option<&'static str> {
    let line = line.trim();
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence))
}

fn instruction(sentence: &str) -> Option<Instruction> {
    let (verb, rest) = verb(sentence)?;
    let needed = || (!rest.is_empty()).then(|| rest.to_owned());
    let path = || {
        Some(path_of(rest).to_owned()).filter(|path| !path.is_empty() && !path.contains(char::is_whitespace))
    };
    Some(match verb {
        "create" | "write" => {
            let (path, text) = match rest.split_once(" with ") {
                Some((path, text)) => (path, plain(text.trim())),
                None if rest.contains(char::is_whitespace) => return None,
                None => (rest, String::new()),
            };
            let path = path_of(path).to_owned();
            let content = if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") };
            (!path.is_empty() && !path.contains(char::is_whitespace))
                .then_some(Instruction::Create { path, content })?
        }
        "edit" => edit(rest)?,
        "read" => Instruction::Read(path()?),
        "list" if rest.trim_end_matches('.').is_empty() => Instruction::List(None),
        "list" => Instruction::List(Some(path()?)),
        "glob" => Instruction::Glob(plain(rest)).filtered(rest)?,
        "search" => search(rest)?,
        "run" => Instruction::Run(needed()?.trim_matches('`').to_owned()).filtered(rest.trim_matches('`'))?,
        "say" => Instruction::Say(plain(&needed()?)),
        "think" => Instruction::Think(plain(&needed()?)),
        "ask" => Instruction::Ask(plain(&needed()?)),
        "wait" => {
            let seconds: f64 = rest.split_whitespace().next()?.trim_end_matches(['s', '.']).parse().ok()?;
            (0.0..=MAX_WAIT).contains(&seconds).then_some(Instruction::Wait(seconds))?
        }
        "fail" => match rest.trim_end_matches('.') {
            "" => Instruction::Fail { always: false },
            "always" => Instruction::Fail { always: true },
            _ => return None,
        },
        _ => return None,
    })
}

impl Instruction {
    /// The instruction, unless its source is empty.
    fn filtered(self, source: &str) -> Option<Self> {
        (!source.trim().is_empty()).then_some(self)
    }
}

/// `PATH: replace "OLD" with "NEW"`, with or without the colon.
fn edit(rest: &str) -> Option<Instruction> {
    let at = rest.find("replace ")?;
    let path = path_of(rest[..at].trim()).to_owned();
    let (old, after) = quoted(rest[at + 8..].trim_start())?;
    let (new, _) = quoted(after.trim_start().strip_prefix("with ")?.trim_start())?;
    let good = !path.is_empty() && !path.contains(char::is_whitespace) && !old.is_empty();
    good.then_some(Instruction::Edit { path, old, new })
}

/// `"TEXT" in PATH`, or words without quotes.
fn search(rest: &str) -> Option<Instruction> {
    let (text, after) = match quoted(rest) {
        Some(found) => found,
        None => match rest.rsplit_once(" in ") {
            Some((text, path)) => (text.trim().to_owned(), &rest[rest.len() - path.len() - 4..]),
            None => (rest.to_owned(), ""),
        },
    };
    let path = after.trim().strip_prefix("in ").map(|path| path_of(path).to_owned());
    (!text.is_empty()).then_some(Instruction::Search { text, path })
}

/// A path without surrounding quotes and a final full stop.
fn path_of(text: &str) -> &str {
    let text = text.trim().trim_end_matches([':', ',', ';']);
    let text =
        text.strip_suffix('.').filter(|rest| !rest.is_empty() && !rest.ends_with(['.', '/'])).unwrap_or(text);
    text.trim_matches(['`', '"', '\''])
}

/// A text without its quotes, if it is quoted as a whole.
fn plain(text: &str) -> String {
    match quoted(text) {
        Some((inside, rest)) if rest.trim_matches(['.', ' ']).is_empty() => inside,
        _ => text.to_owned(),
    }
}

/// Parses a quoted string with the escapes `\n`, `\t`, `\"` and `\\`; returns it and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut found = String::new();
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((found, &inside[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => found.push('\n'),
                't' => found.push('\t'),
                other @ ('"' | '\\') => found.push(other),
                other => found.extend(['\\', other]),
            },
            other => found.push(other),
        }
    }
    None
}
