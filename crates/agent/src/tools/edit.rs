//! `edit`: replaces text in a file.

mod replace;

use std::io::Read;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::openat::{self, OpenedFile};
use super::text::{count, one_line};
use super::write::{self, ExpectedFile};
use super::{Output, Tool, ToolAccess, ToolError, ToolRun, input};
use replace::{MatchKind, Replacement, replace};

pub(super) const TOOL: Tool = Tool {
    name: "edit",
    description: "Replace text in a file. `old` must be found exactly once, unless `all` is set; give enough \
                  lines around it to make it unique. Read the file first, and leave line numbers out.",
    access: ToolAccess::Writes,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, from the project folder.
    path: String,
    /// The exact current text.
    old: String,
    /// The new text.
    new: String,
    /// Replace every occurrence of `old`.
    all: Option<bool>,
}

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let input: Input = input::parse(input)?;
    let path = run.path(&input.path)?;
    let OpenedFile { file, stat } = openat::file(&run.context.root, &path, run.links())?;
    let most = run.context.limits.file;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(ToolError(format!("{} has more than {most} bytes, too many to edit.", one_line(&path))));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(ToolError(format!("{} is not text in UTF-8, so it cannot be edited.", one_line(&path))));
    };
    let replacement = Replacement { old: &input.old, new: &input.new, all: input.all.unwrap_or(false) };
    let replaced = replace(&text, &replacement, &|| run.cancel.is_set())?;
    run.check_cancel()?;
    let before = write::replace(run.context, &path, replaced.text.as_bytes(), &ExpectedFile::This(&stat))?;
    let lines: Vec<_> = replaced.lines.iter().take(20).map(ToString::to_string).collect();
    let more = if replaced.lines.len() > lines.len() { ", …" } else { "" };
    let places = count(replaced.lines.len(), "place", "places");
    let mut message = format!("Edited {} in {places} (line {}{more}).", one_line(&path), lines.join(", "));
    message.push_str(before.note());
    if replaced.how == MatchKind::IgnoringWhitespace {
        message.push_str(" The text was found only without regard to white space; check the indentation.");
    }
    Ok(Output::success(message))
}
