//! Files that a message mentions with `@`.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use retake_model::entry::attachment_media_of;

use crate::commands::entry::picture;
use crate::failure::{Code, Failure};
use crate::files::open_regular;

/// The largest text file that is attached. The agent can read larger ones itself, in parts.
const MAX_TEXT_BYTES: u64 = 256 * 1024;

/// A message with its files.
pub(super) struct Attached {
    /// The text, followed by the text files.
    pub(super) text: String,
    /// Pictures and PDF documents.
    pub(super) pictures: Vec<Vec<u8>>,
    /// The paths of all attached files, as they were typed.
    pub(super) names: Vec<String>,
}

/// A message without files.
pub(super) fn none(text: &str) -> Attached {
    Attached { text: text.to_owned(), pictures: Vec::new(), names: Vec::new() }
}

/// Attaches the files that a message mentions. A mention that is not a file is only text.
pub(super) fn attach(folder: &Path, text: &str) -> Result<Attached, Failure> {
    let mut attached = none(text);
    for name in mentions(text) {
        let Some((name, path)) = file(folder, &name) else { continue };
        if attached.names.contains(&name) {
            continue;
        }
        let fail = |reason: &str| Failure::new(Code::Usage, format!("{name}: {reason}"));
        let mut start = Vec::new();
        let opened = open_regular(&path).map_err(|error| fail(&error.to_string()))?;
        opened.take(MAX_TEXT_BYTES + 1).read_to_end(&mut start).map_err(|error| fail(&error.to_string()))?;
        if attachment_media_of(&start).is_some() {
            attached.pictures.push(picture::read(&path)?);
        } else if start.len() as u64 > MAX_TEXT_BYTES {
            return Err(fail(
                "larger than 256 KiB; name it without the @, and the agent reads the parts that it needs",
            ));
        } else {
            let content = String::from_utf8(start)
                .map_err(|_| fail("neither text, a picture nor a PDF document; name it without the @"))?;
            quote(&mut attached.text, &name, &content);
        }
        attached.names.push(name);
    }
    Ok(attached)
}

/// Appends a file as a block of code, whose fence is longer than any in the file.
fn quote(text: &mut String, name: &str, content: &str) {
    let longest = content.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let line_end = if content.ends_with('\n') || content.is_empty() { "" } else { "\n" };
    let language = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let _ = write!(text, "\n\n{name}:\n\n{fence}{language}\n{content}{line_end}{fence}");
}

/// The words that start with `@`, without it; `@"…"` may contain spaces.
fn mentions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(at) = rest.find('@') {
        before = rest[..at].chars().next_back().unwrap_or(before);
        rest = &rest[at + 1..];
        if !before.is_whitespace() && !matches!(before, '(' | '[' | '"' | '\'' | '`') {
            before = '@';
            continue;
        }
        let name = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((name, _)) => name,
            None => rest.split(char::is_whitespace).next().unwrap_or_default(),
        };
        found.push(name.to_owned());
        before = '@';
    }
    found
}

/// The file that a mention names, without punctuation that follows it.
fn file(folder: &Path, name: &str) -> Option<(String, PathBuf)> {
    let trimmed = name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '`']);
    [name, trimmed].into_iter().filter(|name| !name.is_empty()).find_map(|name| {
        let path = folder.join(name);
        path.is_file().then(|| (name.to_owned(), path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found() {
        for (text, expected) in [
            ("see @a.rs and @b/c.rs, please", &["a.rs", "b/c.rs,"][..]),
            ("@a.rs", &["a.rs"]),
            ("mail me@example.org", &[]),
            ("(@a.rs)", &["a.rs)"]),
            ("@\"a b.rs\" too", &["a b.rs"]),
            ("two\n@lines", &["lines"]),
            ("@ alone @@twice", &["", "@twice"]),
        ] {
            assert_eq!(mentions(text), expected, "{text:?}");
        }
    }

    #[test]
    fn files_are_attached_once_and_other_mentions_stay_text() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("a.rs"), "fn main() {}\n").expect("our folder");
        std::fs::write(folder.path().join("b.md"), "````\ncode").expect("our folder");
        std::fs::write(folder.path().join("odd"), [0xff, 0xfe, 0]).expect("our folder");
        std::fs::write(folder.path().join("large"), vec![b'x'; 300_000]).expect("our folder");
        std::fs::write(folder.path().join("p.pdf"), "%PDF-1.7\n").expect("our folder");
        let check = |text: &str, names: &[&str], added: &str| {
            let attached = attach(folder.path(), text).expect("readable files");
            assert_eq!(attached.names, names, "{text}");
            assert_eq!(attached.text, format!("{text}{added}"), "{text}");
            attached.pictures.len()
        };
        check("@a.rs, and @a.rs", &["a.rs"], "\n\na.rs:\n\n```rs\nfn main() {}\n```");
        check("(@b.md)", &["b.md"], "\n\nb.md:\n\n`````md\n````\ncode\n`````");
        check("@missing @decorator x@a.rs", &[], "");
        assert_eq!(check("@p.pdf", &["p.pdf"], ""), 1);
        for name in ["odd", "large"] {
            let refused = attach(folder.path(), &format!("@{name}")).err().map(|failure| failure.message);
            assert!(refused.is_some_and(|message| message.contains("without the @")), "{name}");
        }
    }
}
