//! `list`: lists a folder.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::text::{capped, one_line};
use super::walk::{IgnoredNames, MAX_DEPTH, Walk, walk};
use super::{Output, Tool, ToolAccess, ToolError, ToolRun, input};

pub(super) const TOOL: Tool = Tool {
    name: "list",
    description: "List the contents of a folder. Folders end with a slash. Ignored files are not listed.",
    access: ToolAccess::Reads,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The folder; the project folder if not given.
    path: Option<String>,
    /// Levels of folders; 1 if not given.
    #[schemars(range(min = 1))]
    depth: Option<usize>,
    /// Also list ignored files.
    ignored: Option<bool>,
}

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let input: Input = input::parse(input)?;
    let start = run.tool_path(input.path.as_deref().unwrap_or("."))?;
    let ignored = if input.ignored == Some(true) { IgnoredNames::Show } else { IgnoredNames::Skip };
    let asked = Walk { start: &start, depth: input.depth.unwrap_or(1).clamp(1, MAX_DEPTH), ignored };
    let most = run.context.limits.names;
    let (mut text, mut total) = (String::new(), 0);
    walk(run, &asked, &mut |found| {
        total += 1;
        if total <= most {
            let way = found.from(&start);
            text.push_str(&one_line(&String::from_utf8_lossy(&way)));
            match found.kind {
                FileType::Directory => text.push('/'),
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(found.folder, found.path.name().bytes(), Vec::new());
                    if let Ok(target) = target {
                        let _ = write!(text, " -> {}", one_line(&target.to_string_lossy()));
                    }
                }
                FileType::RegularFile => {}
                _ => text.push_str(" (a pipe, a socket or a device)"),
            }
            text.push('\n');
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if total == 0 {
        text.push_str("The folder is empty, or everything in it is ignored.\n");
    }
    if total > most {
        let _ = writeln!(text, "[{total} names; the first {most} are shown. List a folder further down.]");
    }
    Ok(capped(text, run.context.limits.text))
}
