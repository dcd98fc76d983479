//! `glob`: files by their names.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use globset::{Candidate, GlobBuilder, GlobMatcher};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::text::one_line;
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
    let pattern = Pattern::new(&input.pattern)?;
    let start = bench.room.spot(input.path.as_deref().unwrap_or("."))?;
    let asked = Walk { start: &start, depth: DEEPEST, ignored: Ignored::Skip };
    let most = bench.room.limits.names;
    let (mut text, mut total) = (String::new(), 0);
    walk(bench, &asked, &mut |found| {
        if found.kind != FileType::Directory && pattern.matches(&found.from(&start)) {
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
    Ok(Output::success(text))
}

/// A pattern for paths. One without a slash is for the last name alone, wherever that is.
pub(super) struct Pattern {
    matcher: GlobMatcher,
    last_name: bool,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, Failure> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .build()
            .map_err(|error| Failure(format!("{text:?} is not a pattern: {}.", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), last_name: !text.contains('/') })
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let part = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) if self.last_name => &path[slash + 1..],
            _ => path,
        };
        self.matcher.is_match_candidate(&Candidate::from_bytes(part))
    }
}
