//! `retake search`

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use clap::Args;
use retake_model::content::ContentId;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_store::{Deleted, Hit, Order, Scope, SearchIndex, SearchQuery, Snippet, ThreadFilter};
use retake_timeline::Looking;
use serde::Serialize;

use crate::commands::thread::{Facets, role_style};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::past::Past;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::moment::{Edge, parse};
use crate::ui::progress::Progress;
use crate::ui::style::Styles;

/// Find entries by their words, in all takes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake search login cookie                 both words, anywhere in an entry
  retake search '\"read it on the server\"'    these words, one after another
  retake search 'pars*' -- -test             words that begin with pars, without test
  retake search theme --role AI --since 3d
  retake search theme --history              also what was edited away, deleted or undone
  retake search --since yesterday --newest   everything that was said lately
  retake search theme --all --json")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Arguments {
    /// What to look for [default: everything that the options let through].
    words: Vec<String>,
    /// Only what that role said.
    #[arg(short, long, value_name = "ROLE")]
    role: Option<String>,
    #[command(flatten)]
    facets: Facets,
    /// Only what was said or edited then or later: 2026-11-01, "2026-11-01 14:30", 3d, 12h, yesterday.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what was said or edited then or earlier.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// In the threads of all projects.
    #[arg(short, long)]
    all: bool,
    /// Also versions that no take holds any more.
    #[arg(long)]
    history: bool,
    /// Also in threads that were put away.
    #[arg(long)]
    deleted: bool,
    /// At most that many hits.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// The newest first, instead of the best.
    #[arg(long)]
    newest: bool,
}

#[derive(Serialize)]
struct Answer {
    hits: Vec<Line>,
    /// Whether there are more than the limit let through.
    more: bool,
}

#[derive(Serialize)]
struct Line {
    thread: ThreadId,
    title: String,
    /// The take that holds it, or held it first.
    take: TakeId,
    take_name: Option<String>,
    /// Its place in that take, counted from 1.
    number: u64,
    /// For what no take holds any more: the version of the thread that it came with.
    at: Option<u64>,
    entry: EntryId,
    version: ContentId,
    role: String,
    time: Timestamp,
    snippet: Snippet,
    /// The command that shows it where it stands.
    command: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let looking = timeline.look()?;
        let query = self.query(context)?;
        let index = SearchIndex::open(timeline.store().folder())?;
        let mut progress = Progress::begin("Indexing", context.audience());
        index.catch_up(&looking.queries(), &mut |at| progress.reach(at.reached as u64, at.goal as u64))?;
        drop(progress);
        let mut hits = index.search(&looking.queries(), &query)?;
        let more = hits.len() > self.limit;
        hits.truncate(self.limit);
        let answer = Answer { hits: lines(context, &looking, hits)?, more };
        context.answer(&answer, |out, styles| {
            if answer.hits.is_empty() {
                return writeln!(out, "Nothing found.{}", self.hint());
            }
            write_hits(out, context, styles, &answer.hits)?;
            if answer.more {
                let muted = styles.muted;
                writeln!(out, "{muted}There are more: --limit shows them, more words narrow them.{muted:#}")?;
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
        let deleted = if self.deleted { Deleted::Shown } else { Deleted::Hidden };
        Ok(SearchQuery {
            words: self.words.join(" "),
            role: self.role.clone(),
            threads: ThreadFilter { project, deleted, ..self.facets.filter() },
            since: moment(&self.since, Edge::First)?,
            until: moment(&self.until, Edge::Last)?,
            scope: if self.history { Scope::History } else { Scope::Now },
            order: if self.newest { Order::Newest } else { Order::Relevance },
            // One more, to know whether there are more.
            limit: self.limit.saturating_add(1),
            offset: 0,
        })
    }

    /// Where else one might look.
    fn hint(&self) -> &'static str {
        match (self.all, self.history) {
            (false, _) => " --all looks in all projects.",
            (true, false) => " --history looks at all versions that ever were.",
            (true, true) => "",
        }
    }
}

/// The hits with what leads to them.
fn lines(context: &Context, looking: &Looking<'_>, hits: Vec<Hit>) -> Result<Vec<Line>, Failure> {
    let pasts = pasts(context, looking, &hits)?;
    let mut names: HashMap<i64, HashMap<TakeId, String>> = HashMap::new();
    let mut lines = Vec::new();
    for hit in hits {
        let takes = match names.entry(hit.thread.number) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(empty) => {
                let takes = looking.queries().takes_of(hit.thread.number)?;
                empty.insert(takes.into_iter().map(|take| (take.summary.id, take.summary.name)).collect())
            }
        };
        let past =
            pasts.get(&hit.thread.number).and_then(|past| past.versions.get(&(hit.entry, hit.version)));
        let (take, number, at) = match (hit.take, hit.position, past) {
            (Some(take), Some(position), _) => (take, position + 1, None),
            (_, _, Some(arrival)) => (arrival.take, arrival.number, Some(arrival.at)),
            // The index knows what the log no longer has: it will be checked out of it.
            _ => continue,
        };
        let take_name = takes.get(&take).cloned();
        let summary = &hit.thread.summary;
        let place = if take != summary.active.id || at.is_some() {
            format!("/{}", typeable(take_name.as_deref(), take))
        } else {
            String::new()
        };
        let moment = at.map(|at| format!(" --at {at}")).unwrap_or_default();
        let command = format!("retake thread show {}{place} --from {number}{moment}", summary.id.short());
        lines.push(Line {
            thread: summary.id,
            title: summary.title.clone(),
            take,
            take_name,
            number,
            at,
            entry: hit.entry,
            version: hit.version,
            role: hit.role,
            time: hit.time,
            snippet: hit.snippet,
            command,
        });
    }
    Ok(lines)
}

/// The history of the threads with hits that no take holds any more.
fn pasts(context: &Context, looking: &Looking<'_>, hits: &[Hit]) -> Result<HashMap<i64, Past>, Failure> {
    let mut wanted: HashMap<i64, BTreeSet<EntryId>> = HashMap::new();
    for hit in hits.iter().filter(|hit| hit.take.is_none()) {
        wanted.entry(hit.thread.number).or_default().insert(hit.entry);
    }
    let mut progress = Progress::begin("Looking through history", context.audience());
    let mut pasts = HashMap::new();
    for hit in hits {
        if let Some(entries) = wanted.remove(&hit.thread.number) {
            let past =
                Past::of(looking, &hit.thread, &entries, &mut |done, total| progress.reach(done, total))?;
            pasts.insert(hit.thread.number, past);
        }
    }
    Ok(pasts)
}

/// A take as it can be typed in any shell.
fn typeable(name: Option<&str>, id: TakeId) -> String {
    let plain = |name: &&str| name.chars().all(|one| one.is_ascii_alphanumeric() || "_-.".contains(one));
    name.filter(plain).map_or_else(|| id.short(), str::to_owned)
}

/// Hits in their order, those of one thread together where the first of them stands.
fn write_hits(out: &mut dyn Write, context: &Context, styles: &Styles, hits: &[Line]) -> io::Result<()> {
    let mut threads: Vec<ThreadId> = Vec::new();
    for hit in hits {
        if !threads.contains(&hit.thread) {
            threads.push(hit.thread);
        }
    }
    for thread in threads {
        let own: Vec<&Line> = hits.iter().filter(|hit| hit.thread == thread).collect();
        let heading = Label::new()
            .with(styles.heading, &own[0].title)
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
        .with(styles.count, &format!("{:>4} ", hit.number))
        .with(role_style(styles, &hit.role), &hit.role)
        .with(styles.muted, &format!("  {}", context.ago(hit.time)));
    if let Some(name) = &hit.take_name {
        about = about.with(styles.muted, &format!(", {name}"));
    }
    if let Some(at) = hit.at {
        about = about.with(styles.warning, &format!(", as of version {at}"));
    }
    writeln!(out, "{about}")?;
    let mut line = Label::new().plain("     ");
    for piece in &hit.snippet.pieces {
        let style = if piece.matched { styles.matched } else { anstyle::Style::new() };
        line = line.with(style, &piece.text);
    }
    writeln!(out, "{line}")?;
    let command = styles.muted;
    writeln!(out, "     {command}{}{command:#}\n", hit.command)
}
