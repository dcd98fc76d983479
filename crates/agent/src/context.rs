//! Context files and pictures that are sent with a prompt.
//!
//! They become an entry before the prompt, which users can edit, delete and undo like any other, and which
//! preserves what the model has read. Unchanged context is not sent again.

use std::fmt::Write as _;
use std::path::Path;

use retake_model::command::NewEntry;
use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, EntryVersion, Fields, detect_media_type};
use retake_model::id::ThreadId;
use retake_model::projection::{estimate_tokens, usual_picture_tokens};
use retake_model::take::Take;
use retake_model::time::Timestamp;

use retake_timeline::{ReadError, Reader};

use crate::tools::ToolContext;

/// The role of context entries.
const ROLE: &str = "Context";
/// Maximum bytes of a file; longer ones are cut with a note.
const MAX_FILE_BYTES: usize = 256 * 1024;

/// The context of a prompt.
#[derive(Debug, Default)]
pub(crate) struct PromptContext {
    /// Entries to add before the prompt.
    pub(crate) entries: Vec<NewEntry>,
    /// All files as Markdown, recorded as sent.
    pub(crate) markdown: String,
    /// Estimated tokens of each file.
    sizes: Vec<(String, u64)>,
}

impl PromptContext {
    /// Estimated tokens of each file.
    pub(crate) fn sizes(self) -> Vec<(String, u64)> {
        self.sizes
    }
}

/// Reads the context files of a take. `last` is the last context in the conversation.
pub(crate) fn gather(folder: &Path, take: &Take, now: Timestamp, last: Option<&str>) -> PromptContext {
    let (files, screenshots) = (&take.context_files, &take.screenshots);
    if files.is_empty() && screenshots.is_empty() {
        return PromptContext::default();
    }
    let context = match ToolContext::open(folder) {
        Ok(context) => context,
        Err(error) => {
            let markdown = format!("The context files could not be read: {error}");
            return PromptContext { markdown, ..PromptContext::default() };
        }
    };
    let mut markdown = String::new();
    let mut sizes = Vec::new();
    for item in files {
        let start = markdown.len();
        // A missing file does not stop the turn; the text reports it.
        match context.read_file(&item.path) {
            Ok(bytes) => add_file(&mut markdown, &item.path, &bytes),
            Err(why) => _ = writeln!(markdown, "## {}\n\nCould not be read: {why}\n", item.path),
        }
        sizes.push((item.path.clone(), estimate_tokens(&markdown[start..])));
    }
    let mut blocks = Vec::new();
    let mut blobs = Vec::new();
    for item in screenshots {
        let picture = context.read_file(&item.path).map(|bytes| (detect_media_type(&bytes), bytes));
        match picture {
            Ok((Some(media), bytes)) => {
                let _ = writeln!(
                    markdown,
                    "## {}\n\n{media}, {}\n",
                    item.path,
                    ContentId::of(Kind::Blob, &bytes)
                );
                sizes.push((item.path.clone(), usual_picture_tokens(media)));
                let blob = ContentId::of(Kind::Blob, &bytes);
                blocks.push(Block::Image { media: media.to_owned(), blob, extra: Fields::default() });
                blobs.push(bytes);
            }
            Ok((None, _)) => _ = writeln!(markdown, "## {}\n\nNot a picture that can be shown.\n", item.path),
            Err(why) => _ = writeln!(markdown, "## {}\n\nCould not be read: {why}\n", item.path),
        }
    }
    if last == Some(markdown.as_str()) {
        return PromptContext { markdown, ..PromptContext::default() };
    }
    blocks.insert(0, Block::of_text(markdown.clone()));
    let version = EntryVersion { blocks, ..EntryVersion::from_text(ROLE, "", now) };
    PromptContext { entries: vec![NewEntry { id: None, version, blobs }], markdown, sizes }
}

/// The last context entry before a position.
pub(crate) fn last_context(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: &Take,
    before: u64,
) -> Result<Option<String>, ReadError> {
    const PAGE: u64 = 100;
    let mut end = before;
    while end > 0 {
        let start = end.saturating_sub(PAGE);
        let page = reader.entries(thread, take).page(start..end)?;
        if let Some(view) = page.iter().rev().find(|view| view.entry.role == ROLE) {
            return Ok(Some(view.entry.text()));
        }
        end = start;
    }
    Ok(None)
}

fn add_file(markdown: &mut String, path: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_FILE_BYTES)]);
    // Longer than any fence in the text, so that the text cannot close it.
    let longest = text.split(|other| other != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let kind = Path::new(path).extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    let cut = if bytes.len() > MAX_FILE_BYTES { "\n\nTruncated: the file is longer." } else { "" };
    let line = if text.ends_with('\n') { "" } else { "\n" };
    let _ = writeln!(markdown, "## {path}\n\n{fence}{kind}\n{text}{line}{fence}{cut}\n");
}
