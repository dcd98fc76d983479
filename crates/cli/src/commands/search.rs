//! `retake search`

use std::io::{self, Write};

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_store::{DeletedFilter, SearchIndex, SearchOrder, SearchQuery, SearchScope, ThreadFilter};
use retake_timeline::{FoundEntries, FoundEntry};
use serde::Serialize;

use crate::arguments::Target;
use crate::commands::thread::{Facets, role_style};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::progress::Progress;
use crate::ui::style::Styles;
use crate::ui::time_input::{PeriodEnd, parse};

/// Search entries in all takes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake search login cookie                 both words, anywhere in an entry
  retake search '\"read it on the server\"'    this phrase
  retake search 'pars*' -- -test             words that start with pars, without test
  retake search history                      also the parts of parseHistory, parse_history and a/history.rs
  retake search theme --role AI --since 3d
  retake search theme --history              include edited, deleted and undone versions
  retake search theme --at turn:3            the take as it was after turn 3
  retake search --since yesterday --newest   all recent entries
  retake search theme --all --json")]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate option")]
pub(crate) struct Arguments {
    /// Search terms [default: all entries that match the options].
    words: Vec<String>,
    /// Only entries of this role; can be repeated.
    #[arg(short, long, value_name = "ROLE")]
    role: Vec<String>,
    #[command(flatten)]
    facets: Facets,
    /// Only entries added or edited at or after this time: 2026-11-01, "2026-11-01 14:30", 3d, 12h, yesterday.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only entries added or edited at or before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Search the threads of all projects.
    #[arg(short, long)]
    all: bool,
    /// Include versions that are no longer in any take.
    #[arg(long)]
    history: bool,
    /// Search one take as it was at this version: a number, a saved name or `turn:NUMBER`.
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["all", "history", "deleted"])]
    at: Option<String>,
    /// With --at: thread, by title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD", requires = "at")]
    thread: Option<String>,
    /// With --at: take, by name or id prefix [default: the active take].
    #[arg(short = 'k', long, value_name = "TAKE", requires = "at")]
    take: Option<String>,
    /// Include deleted threads.
    #[arg(long)]
    deleted: bool,
    /// Maximum number of results.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Sort by time, newest first, instead of by relevance.
    #[arg(long)]
    newest: bool,
}

#[derive(Serialize)]
struct Answer {
    hits: Vec<Line>,
    more: bool,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    found: FoundEntry,
    /// The command that shows the entry in its thread.
    command: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let reader = timeline.read()?;
        let query = self.query(context)?;
        let index = SearchIndex::open(timeline.store().folder())?;
        let mut progress = Progress::begin("Indexing", context.observer());
        index.catch_up(&reader.queries(), &mut |at| {
            progress.set_progress(at.reached as u64, at.goal as u64);
        })?;
        drop(progress);
        let found = if let Some(text) = &self.at {
            let target = Target { thread: self.thread.clone(), take: self.take.clone(), expect: None };
            let resolved = context.resolve(&reader, &target)?;
            let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
            let version = reader.history(thread).in_take(Some(take)).version_named(text)?;
            FoundEntries::search_at(&reader, &index, &query, (thread, take, version))?
        } else {
            let mut progress = Progress::begin("Searching history", context.observer());
            FoundEntries::search(&reader, &index, &query, &mut |done, total| {
                progress.set_progress(done, total);
            })?
        };
        let answer = Answer { hits: found.hits.into_iter().map(Line::of).collect(), more: found.more };
        if answer.hits.is_empty() {
            context.note_empty("No results", self.hint())?;
        }
        context.answer(&answer, |out, styles| {
            write_hits(out, context, styles, &answer.hits)?;
            if answer.more {
                let muted = styles.muted;
                writeln!(out, "{muted}More results exist; refine your search or raise --limit.{muted:#}")?;
            }
            Ok(())
        })
    }

    fn query(&self, context: &Context) -> Result<SearchQuery, Failure> {
        let moment = |text: &Option<String>, edge| {
            let parsed = text.as_deref().map(|text| parse(text, context.now(), &context.zone, edge));
            parsed.transpose().map_err(|error| Failure::new(Code::Usage, error))
        };
        let project =
            if self.all { None } else { Some(context.timeline()?.project_if_known(context.directory())?.id) };
        let deleted = if self.deleted { DeletedFilter::Shown } else { DeletedFilter::Hidden };
        Ok(SearchQuery {
            words: self.words.join(" "),
            roles: self.role.clone(),
            thread: None,
            threads: ThreadFilter { project, deleted, ..self.facets.filter() },
            since: moment(&self.since, PeriodEnd::First)?,
            until: moment(&self.until, PeriodEnd::Last)?,
            scope: if self.history { SearchScope::History } else { SearchScope::Now },
            order: if self.newest { SearchOrder::Newest } else { SearchOrder::Relevance },
            limit: self.limit,
            offset: 0,
        })
    }

    /// A hint where else to search.
    fn hint(&self) -> &'static str {
        if self.at.is_some() {
            return "without `--at`, all current entries of the project are searched";
        }
        match (self.all, self.history) {
            (false, _) => "`--all` searches all projects",
            (true, false) => "`--history` searches all old versions",
            (true, true) => "try fewer or shorter words",
        }
    }
}

impl Line {
    fn of(found: FoundEntry) -> Self {
        let place = if !found.in_active_take || found.at.is_some() {
            format!("/{}", typeable(found.take_name.as_deref(), found.take))
        } else {
            String::new()
        };
        let version = found.at.map(|at| format!(" --at {at}")).unwrap_or_default();
        let (thread, number) = (found.thread.short(), found.number);
        let command = format!("retake thread show {thread}{place} --from {number}{version}");
        Self { found, command }
    }
}

/// The take's name, or its id if the name would need quoting.
fn typeable(name: Option<&str>, id: TakeId) -> String {
    let plain = |name: &&str| name.chars().all(|one| one.is_ascii_alphanumeric() || "_-.".contains(one));
    name.filter(plain).map_or_else(|| id.short(), str::to_owned)
}

/// Groups hits by thread, in the order of their best hit.
fn write_hits(out: &mut dyn Write, context: &Context, styles: &Styles, hits: &[Line]) -> io::Result<()> {
    let mut threads: Vec<ThreadId> = Vec::new();
    for hit in hits {
        if !threads.contains(&hit.found.thread) {
            threads.push(hit.found.thread);
        }
    }
    for thread in threads {
        let own: Vec<&Line> = hits.iter().filter(|hit| hit.found.thread == thread).collect();
        let heading = Label::new()
            .with(styles.heading, &own[0].found.title)
            .plain(" ")
            .with(styles.id, &thread.short())
            .with(styles.muted, &format!("  {}", counted(own.len() as u64, "hit", "hits")));
        writeln!(out, "{heading}\n")?;
        for hit in own {
            write_hit(out, context, styles, hit)?;
        }
    }
    Ok(())
}

fn write_hit(out: &mut dyn Write, context: &Context, styles: &Styles, hit: &Line) -> io::Result<()> {
    let mut about = Label::new()
        .with(styles.count, &format!("{:>4} ", hit.found.number))
        .with(role_style(styles, &hit.found.role), &hit.found.role)
        .with(styles.muted, &format!("  {}", context.ago(hit.found.time)));
    if let Some(name) = &hit.found.take_name {
        about = about.with(styles.muted, &format!(", {name}"));
    }
    if let Some(at) = hit.found.at {
        about = about.with(styles.warning, &format!(", as of version {at}"));
    }
    writeln!(out, "{about}")?;
    let mut line = Label::new().plain("     ");
    for piece in &hit.found.snippet.pieces {
        let style = if piece.matched { styles.matched } else { anstyle::Style::new() };
        line = line.with(style, &piece.text);
    }
    writeln!(out, "{line}")?;
    let command = styles.muted;
    writeln!(out, "     {command}{}{command:#}\n", hit.command)
}
