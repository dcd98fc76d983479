//! `read`: reads numbered lines of a file, or an image.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};

use retake_model::entry::detect_media_type;
use retake_model::path::TreePath;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::interruptible::Interruptible;
use super::openat::{self, OpenedFile};
use super::text::{one_line, short_line};
use super::{Image, Output, Tool, ToolAccess, ToolError, ToolRun, input};

pub(super) const TOOL: Tool = Tool {
    name: "read",
    description: "Read a file: its lines with their numbers, or an image (PNG, JPEG, GIF, WebP). \
                  Long files are read in parts with `offset` and `limit`.",
    access: ToolAccess::Reads,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, from the project folder.
    path: String,
    /// The first line to read; 1 if not given.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// Maximum number of lines.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// Bytes to read for detecting text.
const SNIFF_BYTES: usize = 8 * 1024;

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let input: Input = input::parse(input)?;
    let path = run.path(&input.path)?;
    let OpenedFile { file, stat } = openat::file(&run.context.root, &path, run.links())?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let file = Interruptible::new(file, run.cancel);
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut beginning = Vec::new();
    reader.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut beginning)?;
    if let Some(media) = detect_media_type(&beginning) {
        return read_image(&path, media, beginning, reader, run);
    }
    if beginning.contains(&0) {
        let text = format!("{} is not text ({size} bytes). Use `shell` to look into it.", one_line(&path));
        return Ok(Output::failure(text));
    }
    if size == 0 && beginning.is_empty() {
        return Ok(Output::success(format!("{} is empty.", one_line(&path))));
    }
    read_lines(&path, beginning.chain(reader), &input, run)
}

fn read_image(
    path: &TreePath,
    media: &'static str,
    mut bytes: Vec<u8>,
    rest: impl Read,
    run: &ToolRun<'_>,
) -> Result<Output, ToolError> {
    let most = run.context.limits.image;
    // Check the bytes read and not the earlier size, because the file may have grown.
    rest.take(most).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("{} is an image of more than {most} bytes, which is too large.", one_line(path));
        return Ok(Output::failure(text));
    }
    let text = format!("{} is an image ({media}, {} bytes).", one_line(path), bytes.len());
    Ok(Output { text, images: vec![Image { media, bytes }], ..Output::default() })
}

fn read_lines(
    path: &TreePath,
    mut reader: impl BufRead,
    input: &Input,
    run: &ToolRun<'_>,
) -> Result<Output, ToolError> {
    let limits = &run.context.limits;
    let first = input.offset.unwrap_or(1).max(1);
    let most = input.limit.unwrap_or(limits.lines).max(1);
    let mut text = String::new();
    let (mut number, mut shown, mut used, mut carriage) = (0, 0, 0, 0);
    loop {
        run.check_cancel()?;
        // A character has at most four bytes; skip the rest of the line without buffering it.
        let Some(line) = next_line(&mut reader, limits.line * 4 + 4)? else { break };
        number += 1;
        if number < first {
            continue;
        }
        let decoded = String::from_utf8_lossy(&line.kept);
        let plain = decoded.strip_suffix('\r').unwrap_or(&decoded);
        carriage += usize::from(plain.len() < decoded.len());
        let mut entry = format!("{number:>6}\t{}", short_line(plain, limits.line));
        if line.skipped > 0 {
            entry = format!("{entry}[… and {} more bytes]", line.skipped);
        }
        let length = entry.chars().count() + 1;
        if shown == most || (used + length > limits.text && shown > 0) {
            let _ = writeln!(text, "[More lines follow. Continue with offset {number}.]");
            break;
        }
        text.push_str(&entry);
        text.push('\n');
        used += length;
        shown += 1;
    }
    if shown == 0 {
        return Err(ToolError(format!(
            "{} has {number} lines, so there is no line {first}.",
            one_line(path)
        )));
    }
    if carriage == shown {
        text.push_str("[Lines end with a carriage return and a line feed.]\n");
    }
    Ok(Output::success(text))
}

struct Line {
    kept: Vec<u8>,
    skipped: usize,
}

/// The next line without its end, limited to `most` bytes, because a file may be one huge line.
fn next_line(reader: &mut impl BufRead, most: usize) -> std::io::Result<Option<Line>> {
    let mut line = Line { kept: Vec::new(), skipped: 0 };
    let mut begun = false;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(begun.then_some(line));
        }
        begun = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..end.unwrap_or(available.len())];
        let context = most.saturating_sub(line.kept.len()).min(piece.len());
        line.kept.extend_from_slice(&piece[..context]);
        line.skipped += piece.len() - context;
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}
