//! `glob`: finds files by name.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::closed::{Case, PathPattern};
use super::text::{capped, one_line, short_line};
use super::walk::{DEEPEST, Ignored, Walk, walk};
use super::{Bench, Failure, Output, Reach, Tool, input};

pub(super) const TOOL: Tool = Tool {
    name: "glob",
    description: "Find files by name, such as `*.rs` (anywhere below) or `src/**/*.{ts,tsx}`. \
                  Ignored files are left out.",
    reach: Reach::Reads,
    schema,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    path: Option<String>,
}

fn schema() -> Value {
    input::object(
        &["pattern"],
        json!({
            "pattern": { "type": "string", "description": "`*`, `**`, `?`, `[ab]` and `{a,b}` have their usual meaning." },
            "path": { "type": "string", "description": "The folder to look in; the project folder if not given." },
        }),
    )
}

fn run(input: &Value, bench: &mut Bench<'_>) -> Result<Output, Failure> {
    let input: Input = input::parse(input)?;
    let wanted = pattern(&input.pattern)?;
    let start = bench.spot(input.path.as_deref().unwrap_or("."))?;
    let asked = Walk { start: &start, depth: DEEPEST, ignored: Ignored::Skip };
    let most = bench.room.limits.names;
    let (mut text, mut total) = (String::new(), 0);
    walk(bench, &asked, &mut |found| {
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
        text.push_str("No file has such a name.\n");
    }
    if total > most {
        let _ = writeln!(text, "[{total} files; the first {most} are shown. Narrow the pattern.]");
    }
    Ok(capped(text, bench.room.limits.text))
}

/// Parses the pattern of a call.
pub(super) fn pattern(text: &str) -> Result<PathPattern, Failure> {
    let failure = |why| Failure(format!("{:?} is not a pattern: {why}.", short_line(text, 200)));
    PathPattern::new(text, Case::Matters).map_err(failure)
}
