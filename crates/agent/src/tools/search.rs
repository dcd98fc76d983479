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
use serde::Deserialize;
use serde_json::{Value, json};

use super::beneath::{self, OpenError};
use super::glob;
use super::interruptible::Interruptible;
use super::text::{self, capped, one_line, short_line};
use super::walk::{DEEPEST, Found, Ignored, Walk, walk};
use super::{Bench, Failure, Output, Progress, Reach, Spot, Tool, Units, input};
use crate::cancel::Cancel;
use matcher::{Pattern, StoppableMatcher};

pub(super) const TOOL: Tool = Tool {
    name: "search",
    description: "Search files for lines that match a regular expression (or a literal text). Gives \
                  `path:line:text`. Ignored and binary files are left out.",
    reach: Reach::Reads,
    schema,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    literal: Option<bool>,
    ignore_case: Option<bool>,
    context: Option<usize>,
    limit: Option<usize>,
}

fn schema() -> Value {
    input::object(
        &["pattern"],
        json!({
            "pattern": { "type": "string", "description": "A regular expression for one line." },
            "path": { "type": "string", "description": "A file or folder; the project folder if not given." },
            "glob": { "type": "string", "description": "Only files with such names, such as `*.rs`." },
            "literal": { "type": "boolean", "description": "Take the pattern as it is, not as an expression." },
            "ignore_case": { "type": "boolean", "description": "Take upper and lower case for the same." },
            "context": { "type": "integer", "minimum": 0, "maximum": MOST_CONTEXT, "description": "Lines around each match." },
            "limit": { "type": "integer", "minimum": 1, "description": "How many matches at most." },
        }),
    )
}

const MOST_CONTEXT: usize = 20;
const USUAL_LIMIT: usize = 200;
const MOST_LIMIT: usize = 5_000;
/// Maximum bytes shown of a line, since generated files have very long ones.
const LONGEST_LINE: usize = 500;

fn run(input: &Value, bench: &mut Bench<'_>) -> Result<Output, Failure> {
    let input: Input = input::parse(input)?;
    let matcher = matcher(&input, bench.cancel)?;
    let pattern = input.glob.as_deref().map(glob::pattern).transpose()?;
    let start = bench.spot(input.path.as_deref().unwrap_or("."))?;
    let context = input.context.unwrap_or(0).min(MOST_CONTEXT);
    let searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        // Skip files with longer lines.
        .heap_limit(Some(16 * 1024 * 1024))
        .build();
    let limit = input.limit.unwrap_or(USUAL_LIMIT).clamp(1, MOST_LIMIT);
    let mut search = Search { matcher, searcher, cancel: bench.cancel, limit, hits: Hits::default() };

    if let Some((path, file)) = single_file(bench, &start)? {
        search.file(&path, file);
    } else {
        let asked = Walk { start: &start, depth: DEEPEST, ignored: Ignored::Skip };
        let mut steps = Steps::default();
        walk(bench, &asked, &mut |found| {
            let wanted = pattern.as_ref().is_none_or(|pattern| pattern.matches(&found.from(&start)));
            if found.kind == FileType::RegularFile && wanted {
                steps.reach(bench, found.fraction);
                match open_found(found) {
                    Some((_, size)) if size > bench.room.limits.file => search.hits.passed_over += 1,
                    Some((file, _)) => search.file(found.path, file),
                    None => {}
                }
            }
            Ok(if search.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        steps.end(bench);
    }
    bench.check_cancel()?;
    let full = search.is_full();
    let Hits { text: mut found, matches, files, passed_over } = search.hits;
    if matches == 0 {
        found.push_str("No line matches.\n");
    } else {
        let more = if full { "; there may be more: narrow the search or raise `limit`" } else { "" };
        let matches = text::count(matches, "match", "matches");
        let _ = writeln!(found, "[{matches} in {}{more}]", text::count(files, "file", "files"));
    }
    if passed_over > 0 {
        let _ = writeln!(
            found,
            "[{} too long to be searched whole; `shell` can]",
            text::count(passed_over, "file was", "files were")
        );
    }
    Ok(capped(found, bench.room.limits.text))
}

fn matcher<'a>(input: &Input, cancel: &'a Cancel) -> Result<StoppableMatcher<'a>, Failure> {
    if input.pattern.is_empty() {
        return Err(Failure("The pattern is empty.".to_owned()));
    }
    let pattern = Pattern {
        text: &input.pattern,
        literal: input.literal.unwrap_or(false),
        ignore_case: input.ignore_case.unwrap_or(false),
    };
    StoppableMatcher::new(&pattern, cancel).map_err(|error| {
        Failure(format!(
            "The pattern cannot be used: {error}\nPatterns are for one line. To find a text as it is, set `literal`."
        ))
    })
}

/// Throttled progress of a search.
#[derive(Default)]
struct Steps {
    files: u64,
    reported: Option<Instant>,
    last: f64,
}

/// Minimum time between reports.
const REPORTS: Duration = Duration::from_millis(50);

impl Steps {
    /// Starts the next file at a fraction of the walk.
    fn reach(&mut self, bench: &Bench<'_>, fraction: f64) {
        self.files += 1;
        let since = self.reported.get_or_insert_with(Instant::now);
        if since.elapsed() < REPORTS || fraction <= self.last {
            return;
        }
        self.report(bench, fraction, self.files - 1);
    }

    /// Reports completion.
    fn end(&mut self, bench: &Bench<'_>) {
        if self.last > 0.0 {
            self.report(bench, 1.0, self.files);
        }
    }

    fn report(&mut self, bench: &Bench<'_>, fraction: f64, processed: u64) {
        (self.reported, self.last) = (Some(Instant::now()), fraction);
        let units = Some(Units { processed, name: "files" });
        let message = "Searching".to_owned();
        bench.report(Progress { fraction: Some(fraction), message, units, ..Progress::default() });
    }
}

/// Opens the start path if it is a file.
fn single_file(bench: &Bench<'_>, start: &Spot) -> Result<Option<(TreePath, File)>, Failure> {
    let Spot::Below(path) = start else { return Ok(None) };
    match beneath::file(&bench.room.root, path, bench.links()) {
        Ok(opened) => Ok(Some((path.clone(), opened.file))),
        Err(OpenError::Folder(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file; skips others and unreadable ones.
fn open_found(found: &Found<'_>) -> Option<(File, u64)> {
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
    passed_over: usize,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        self.hits.matches >= self.limit
    }

    /// Searches a file; keeps the matches before a read error.
    fn file(&mut self, path: &TreePath, file: File) {
        let before = self.hits.matches;
        let reader = Interruptible::new(file, self.cancel);
        let sink = Lines { path: one_line(path), limit: self.limit, begun: false, hits: &mut self.hits };
        let searched = self.searcher.search_reader(&self.matcher, reader, sink);
        self.hits.passed_over += usize::from(searched.is_err());
        self.hits.files += usize::from(self.hits.matches > before);
    }
}

/// Collects the matches of one file.
struct Lines<'a> {
    path: String,
    limit: usize,
    begun: bool,
    hits: &'a mut Hits,
}

impl Lines<'_> {
    fn line(&mut self, bytes: &[u8], number: Option<u64>, mark: char) {
        let line = String::from_utf8_lossy(bytes);
        let line = short_line(line.trim_end_matches(['\n', '\r']), LONGEST_LINE);
        let number = number.unwrap_or_default();
        let _ = writeln!(self.hits.text, "{}{mark}{number}{mark}{line}", self.path);
        self.begun = true;
    }
}

impl Sink for Lines<'_> {
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
