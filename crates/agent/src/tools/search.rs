//! `search`: finds lines with ripgrep's engine.

mod matcher;

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use retake_model::path::TreePath;
use rustix::fs::{FileType, Mode, OFlags};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::glob;
use super::interruptible::Interruptible;
use super::openat::{self, OpenError};
use super::text::{self, capped, one_line, short_line};
use super::walk::{IgnoredNames, MAX_DEPTH, Walk, WalkEntry, walk};
use super::{Output, Progress, Tool, ToolAccess, ToolError, ToolPath, ToolRun, Units, input};
use crate::cancel::Cancel;
use matcher::{Pattern, StoppableMatcher};

pub(super) const TOOL: Tool = Tool {
    name: "search",
    description: "Search files for lines that match a regular expression (or a literal text). Returns \
                  `path:line:text`. Skips ignored and binary files.",
    access: ToolAccess::Reads,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A regular expression for one line.
    pattern: String,
    /// A file or folder; the project folder if not given.
    path: Option<String>,
    /// Search only files with matching names, such as `*.rs`.
    glob: Option<String>,
    /// Match the pattern literally, not as an expression.
    literal: Option<bool>,
    /// Ignore case.
    ignore_case: Option<bool>,
    /// Lines around each match.
    #[schemars(range(min = 0, max = MAX_CONTEXT))]
    context: Option<usize>,
    /// Maximum number of matches.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

const MAX_CONTEXT: usize = 20;
const DEFAULT_LIMIT: usize = 200;
const MAX_LIMIT: usize = 5_000;
/// Maximum bytes shown of a line, since generated files have very long ones.
const MAX_LINE_BYTES: usize = 500;

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let input: Input = input::parse(input)?;
    let matcher = matcher(&input, run.cancel)?;
    let pattern = input.glob.as_deref().map(glob::pattern).transpose()?;
    let start = run.tool_path(input.path.as_deref().unwrap_or("."))?;
    let context = input.context.unwrap_or(0).min(MAX_CONTEXT);
    let searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        // Skip files with longer lines.
        .heap_limit(Some(16 * 1024 * 1024))
        .build();
    let limit = input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let mut search = Search { matcher, searcher, cancel: run.cancel, limit, hits: Hits::default() };

    if let Some((path, file)) = single_file(run, &start)? {
        search.file(&path, file);
    } else {
        let asked = Walk { start: &start, depth: MAX_DEPTH, ignored: IgnoredNames::Skip };
        let mut steps = SearchProgress::default();
        walk(run, &asked, &mut |found| {
            let wanted = pattern.as_ref().is_none_or(|pattern| pattern.matches(&found.from(&start)));
            if found.kind == FileType::RegularFile && wanted {
                steps.advance(run, found.fraction);
                match open_entry(found) {
                    Some((_, size)) if size > run.context.limits.file => search.hits.skipped += 1,
                    Some((file, _)) => search.file(found.path, file),
                    None => {}
                }
            }
            Ok(if search.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        steps.end(run);
    }
    run.check_cancel()?;
    let full = search.is_full();
    let Hits { text: mut found, matches, files, skipped } = search.hits;
    if matches == 0 {
        found.push_str("No line matches.\n");
    } else {
        let more = if full { "; there may be more: narrow the search or raise `limit`" } else { "" };
        let matches = text::count(matches, "match", "matches");
        let _ = writeln!(found, "[{matches} in {}{more}]", text::count(files, "file", "files"));
    }
    if skipped > 0 {
        let _ = writeln!(
            found,
            "[{} too long to search completely; use `shell`]",
            text::count(skipped, "file was", "files were")
        );
    }
    Ok(capped(found, run.context.limits.text))
}

fn matcher<'a>(input: &Input, cancel: &'a Cancel) -> Result<StoppableMatcher<'a>, ToolError> {
    if input.pattern.is_empty() {
        return Err(ToolError("The pattern is empty.".to_owned()));
    }
    let pattern = Pattern {
        text: &input.pattern,
        literal: input.literal.unwrap_or(false),
        ignore_case: input.ignore_case.unwrap_or(false),
    };
    StoppableMatcher::new(&pattern, cancel).map_err(|error| {
        ToolError(format!(
            "The pattern cannot be used: {error}\nPatterns are for one line. To find a text as it is, set `literal`."
        ))
    })
}

/// Throttled progress of a search.
#[derive(Default)]
struct SearchProgress {
    files: u64,
    reported: Option<Instant>,
    last: f64,
}

/// Minimum time between reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

impl SearchProgress {
    /// Starts the next file at a fraction of the walk.
    fn advance(&mut self, run: &ToolRun<'_>, fraction: f64) {
        self.files += 1;
        let since = self.reported.get_or_insert_with(Instant::now);
        if since.elapsed() < REPORT_INTERVAL || fraction <= self.last {
            return;
        }
        self.report(run, fraction, self.files - 1);
    }

    /// Reports completion.
    fn end(&mut self, run: &ToolRun<'_>) {
        if self.last > 0.0 {
            self.report(run, 1.0, self.files);
        }
    }

    fn report(&mut self, run: &ToolRun<'_>, fraction: f64, processed: u64) {
        (self.reported, self.last) = (Some(Instant::now()), fraction);
        let units = Some(Units { processed, name: "files" });
        let message = "Searching".to_owned();
        run.report(Progress { fraction: Some(fraction), message, units, ..Progress::default() });
    }
}

/// Opens the start path if it is a file.
fn single_file(run: &ToolRun<'_>, start: &ToolPath) -> Result<Option<(TreePath, File)>, ToolError> {
    let ToolPath::Below(path) = start else { return Ok(None) };
    match openat::file(&run.context.root, path, run.links()) {
        Ok(opened) => Ok(Some((path.clone(), opened.file))),
        Err(OpenError::Folder(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file; skips others and unreadable ones.
fn open_entry(found: &WalkEntry<'_>) -> Option<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(found.folder, found.path.name().bytes(), flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let ordinary = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    ordinary.then(|| (File::from(file), u64::try_from(stat.st_size).unwrap_or_default()))
}

struct Search<'a> {
    matcher: StoppableMatcher<'a>,
    searcher: Searcher,
    cancel: &'a Cancel,
    limit: usize,
    hits: Hits,
}

#[derive(Default)]
struct Hits {
    text: String,
    matches: usize,
    files: usize,
    /// Files that were skipped or not searched completely, because they or their lines are too long.
    skipped: usize,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        self.hits.matches >= self.limit
    }

    /// Searches a file; keeps the matches before a read error.
    fn file(&mut self, path: &TreePath, file: File) {
        let before = self.hits.matches;
        let reader = Interruptible::new(file, self.cancel);
        let sink =
            MatchWriter { path: one_line(path), limit: self.limit, begun: false, hits: &mut self.hits };
        let searched = self.searcher.search_reader(&self.matcher, reader, sink);
        self.hits.skipped += usize::from(searched.is_err());
        self.hits.files += usize::from(self.hits.matches > before);
    }
}

/// Collects the matches of one file.
struct MatchWriter<'a> {
    path: String,
    limit: usize,
    begun: bool,
    hits: &'a mut Hits,
}

impl MatchWriter<'_> {
    fn line(&mut self, bytes: &[u8], number: Option<u64>, mark: char) {
        let line = String::from_utf8_lossy(bytes);
        let line = short_line(line.trim_end_matches(['\n', '\r']), MAX_LINE_BYTES);
        let number = number.unwrap_or_default();
        let _ = writeln!(self.hits.text, "{}{mark}{number}{mark}{line}", self.path);
        self.begun = true;
    }
}

impl Sink for MatchWriter<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.hits.matches >= self.limit {
            return Ok(false);
        }
        self.hits.matches += 1;
        self.line(found.bytes(), found.line_number(), ':');
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.line(context.bytes(), context.line_number(), '-');
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.begun {
            self.hits.text.push_str("--\n");
        }
        Ok(true)
    }
}
