//! The files of a thread at a moment: what is there, and what is in it.

use data_encoding::BASE64;
use retake_model::id::TakeId;
use retake_model::path::TreePath;
use retake_timeline::{Depth, FOLDER, FileFacts, FilePiece, FolderQuestion, HeldFile, NamedFiles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Page, ThreadPath, limit, not_a_cursor};
use super::file_common::root_path;
use crate::endpoint::{Answer, Call, Endpoint, get};
use crate::problem::{Code, Problem};

const GROUP: &str = "Files";

/// The longest page of files.
const MOST_FILES: usize = 1000;
/// How much of a file is in one answer.
const PIECE: u64 = 1024 * 1024;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/threads/{thread}/workspace/files", list).about(
            GROUP,
            "List files at a moment",
            "What is in a folder, in the order of the names; with `deep`, what is in the folders in it too. The moment is \
             named as for `diff`; `folder`, if none is named, looks at the folder and records what was changed by hand.",
        ),
        get("/v1/threads/{thread}/workspace/file", show).about(
            GROUP,
            "Read a file at a moment",
            "As text, or in base64 if it is none; at most a mebibyte at once, and `next` says where to go on.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// At which moment: a version, a saved name, `take:NAME`, `folder` (if not said), a snapshot.
    at: Option<String>,
    /// The folder to list; all from the root on if none is named.
    path: Option<String>,
    /// The further root that is meant; the project's own folder if none is named.
    root: Option<String>,
    /// Whether folders are listed with what is in them.
    #[serde(default)]
    deep: bool,
    /// The take whose folder is meant; the active one if none is named.
    take: Option<TakeId>,
    /// How many: 1 to 1000, 200 if not said.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Where the last page ended: what comes behind this path.
    cursor: Option<String>,
}

/// A page of files.
#[derive(Serialize, JsonSchema)]
struct Files {
    /// The moment.
    at: NamedFiles,
    #[serde(flatten)]
    page: Page<HeldFile>,
}

fn list(call: &Call<'_, ThreadPath, ListQuery>) -> Result<Answer<Files>, Problem> {
    let query = &call.query;
    let root = query.root.as_deref().unwrap_or_default();
    let folder = query.path.as_deref().map(|path| root_path(None, path)).transpose()?.map(|path| path.path);
    let after = query.cursor.as_deref().map(|cursor| behind(cursor, folder.as_ref())).transpose()?;
    let limit = limit(query.limit, 200, MOST_FILES)?;
    let moments = call.moments(call.path.thread, query.take)?;
    let at = moments.find(query.at.as_deref().unwrap_or(FOLDER))?;
    let looking = call.service.timeline.look()?;
    let question = FolderQuestion {
        root,
        folder: folder.as_ref(),
        depth: if query.deep { Depth::All } else { Depth::One },
        after: after.as_ref(),
        limit,
    };
    let found = looking.files_in(at.snapshot, question)?;
    let found = found.ok_or_else(|| Problem::not_found("there is no such folder at that moment"))?;
    let next = found.items.last().filter(|_| found.more).map(|last| last.path.path.to_string());
    let version = looking.thread(call.path.thread)?.summary.version;
    Ok(Answer::at(Files { at, page: Page { items: found.items, next } }, version))
}

/// The path that the last page of a folder ended with.
fn behind(cursor: &str, folder: Option<&TreePath>) -> Result<TreePath, Problem> {
    let path: TreePath = cursor.parse().map_err(|_| not_a_cursor())?;
    match folder {
        Some(folder) if !path.starts_with(folder) || path == *folder => Err(not_a_cursor()),
        _ => Ok(path),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileQuery {
    /// The file.
    path: String,
    /// The further root that it is in.
    root: Option<String>,
    /// At which moment: a version, a saved name, `take:NAME`, `folder` (if not said), a snapshot.
    at: Option<String>,
    /// The take whose folder is meant; the active one if none is named.
    take: Option<TakeId>,
    /// The first byte to read.
    #[serde(default)]
    offset: u64,
}

/// A file, or a piece of it.
#[derive(Serialize, JsonSchema)]
struct FileShown {
    /// The moment.
    at: NamedFiles,
    #[serde(flatten)]
    file: HeldFile,
    /// How many bytes it has in all.
    bytes: u64,
    /// Whether it is not text.
    binary: bool,
    /// The text; none if it is not text. Of a link, where it points to.
    text: Option<String>,
    /// The bytes, if they are not text.
    base64: Option<String>,
    /// The `offset` of the next piece; none if this is the last.
    next: Option<u64>,
}

fn show(call: &Call<'_, ThreadPath, FileQuery>) -> Result<Answer<FileShown>, Problem> {
    let query = &call.query;
    let path = root_path(query.root.as_deref(), &query.path)?;
    let moments = call.moments(call.path.thread, query.take)?;
    let at = moments.find(query.at.as_deref().unwrap_or(FOLDER))?;
    let looking = call.service.timeline.look()?;
    let found = looking.file_in(at.snapshot, &path, query.offset, PIECE)?;
    let found = found.ok_or_else(|| Problem::not_found(format!("{path} is not held at that moment")))?;
    let FilePiece { file, size, bytes } = found;
    if matches!(file.facts, FileFacts::Folder { .. }) {
        return Err(Problem::new(Code::Conflict, format!("{path} is a folder; list it instead")));
    }
    let end = query.offset.saturating_add(bytes.len() as u64);
    let (text, bytes) = read(bytes, end < size);
    let end = query.offset.saturating_add(text.as_ref().map_or(bytes.len(), String::len) as u64);
    let shown = FileShown {
        at,
        file,
        bytes: size,
        binary: text.is_none(),
        base64: text.is_none().then(|| BASE64.encode(&bytes)),
        text,
        next: (end < size).then_some(end),
    };
    Ok(Answer::at(shown, looking.thread(call.path.thread)?.summary.version))
}

/// Bytes as text, if they are: without a character that goes on in the next piece, if there is one.
fn read(bytes: Vec<u8>, goes_on: bool) -> (Option<String>, Vec<u8>) {
    if bytes.contains(&0) {
        return (None, bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), Vec::new()),
        Err(error) => {
            let broken = error.utf8_error();
            let whole = broken.valid_up_to();
            let mut bytes = error.into_bytes();
            if broken.error_len().is_some() || !goes_on || whole == 0 {
                return (None, bytes);
            }
            bytes.truncate(whole);
            (String::from_utf8(bytes).ok(), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_bytes_and_never_torn() {
        let check = |bytes: &[u8], goes_on: bool, expected: Option<&str>| {
            let (text, left) = read(bytes.to_vec(), goes_on);
            assert_eq!(text.as_deref(), expected, "{} {goes_on}", bytes.escape_ascii());
            assert_eq!(left.as_slice(), if expected.is_some() { &[][..] } else { bytes });
        };
        check(b"", false, Some(""));
        check("größe".as_bytes(), false, Some("größe"));
        check(b"gr\xc3", true, Some("gr"));
        check(b"gr\xc3", false, None);
        check(b"\xc3", true, None);
        check(b"a\xffb", true, None);
        check(b"a\0b", false, None);
    }

    #[test]
    fn a_cursor_is_of_the_folder_that_is_listed() {
        let path = |text: &str| text.parse::<TreePath>().expect("a path");
        let check = |cursor: &str, folder: Option<&str>, good: bool| {
            let folder = folder.map(path);
            assert_eq!(behind(cursor, folder.as_ref()).is_ok(), good, "{cursor} {folder:?}");
        };
        check("a/b", None, true);
        check("a/b", Some("a"), true);
        check("a", Some("a"), false);
        check("ab/c", Some("a"), false);
        check("../a", None, false);
    }
}
