//! `glob`: finds files by name.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::denied_paths::{CaseSensitivity, PathPattern};
use super::text::{capped, one_line, short_line};
use super::walk::{IgnoredNames, MAX_DEPTH, Walk, walk};
use super::{Output, Tool, ToolAccess, ToolError, ToolRun, input};

pub(super) const TOOL: Tool = Tool {
    name: "glob",
    description: "Find files by name, such as `*.rs` (anywhere below) or `src/**/*.{ts,tsx}`. \
                  Ignored files are not listed.",
    access: ToolAccess::Reads,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// `*`, `**`, `?`, `[ab]` and `{a,b}` have their usual meaning.
    pattern: String,
    /// The folder to look in; the project folder if not given.
    path: Option<String>,
}

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let input: Input = input::parse(input)?;
    let wanted = pattern(&input.pattern)?;
    let start = run.tool_path(input.path.as_deref().unwrap_or("."))?;
    let asked = Walk { start: &start, depth: MAX_DEPTH, ignored: IgnoredNames::Skip };
    let most = run.context.limits.names;
    let (mut text, mut total) = (String::new(), 0);
    walk(run, &asked, &mut |found| {
        if found.kind != FileType::Directory && wanted.matches(&found.from(&start)) {
            total += 1;
            if total <= most {
                text.push_str(&one_line(found.path));
                text.push('\n');
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if total == 0 {
        text.push_str("No file matches.\n");
    }
    if total > most {
        let _ = writeln!(text, "[{total} files; the first {most} are shown. Narrow the pattern.]");
    }
    Ok(capped(text, run.context.limits.text))
}

/// Parses the pattern of a call.
pub(super) fn pattern(text: &str) -> Result<PathPattern, ToolError> {
    let failure = |why| ToolError(format!("{:?} is not a pattern: {why}.", short_line(text, 200)));
    PathPattern::new(text, CaseSensitivity::Matters).map_err(failure)
}
