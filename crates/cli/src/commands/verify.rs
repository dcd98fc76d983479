//! `retake verify`

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use retake_store::{SearchIndex, VerifyReport};
use retake_timeline::PendingMove;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::{count, counted, size};
use crate::ui::progress::Progress;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// Check the integrity of the store without changing it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake verify
  retake verify --json | jq .problems

Every object is hashed, every reference and log is followed, and every index is compared with its source. The exit code \
is 6 if there are problems; `retake repair` repairs them where possible. A file written by a newer version of Retake is \
not damage: update this program to use it.")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
pub(crate) struct Report {
    clean: bool,
    #[serde(flatten)]
    store: VerifyReport,
    /// Problems of the search index.
    search_problems: Vec<String>,
    /// A problem of the runtime database, such as damage to the trace.
    runtime_database_problem: Option<String>,
    /// Set if a newer version wrote the runtime database. This is not damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_database_newer: Option<String>,
    /// Unfinished file moves. These are not damage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let report = Report::make(context)?;
        context.answer(&report, |out, styles| report.write(out, styles))?;
        Ok(if report.clean { ExitCode::SUCCESS } else { Code::Damaged.into() })
    }
}

impl Report {
    pub(crate) fn make(context: &Context) -> Result<Self, Failure> {
        let timeline = context.timeline()?;
        let mut progress = Progress::begin("Checking", context.observer());
        let mut stage = None;
        let store = timeline.store().verify(&mut |at| {
            if stage.replace(at.stage) != Some(at.stage) {
                progress.set_stage(&format!("Checking {}", at.stage));
            }
            progress.set_progress(at.done, at.total);
        })?;
        progress.set_stage("Checking the search index");
        let search_problems = search_problems(context)?;
        let runtime_database_problem = timeline.store().runtime_database_problem();
        let runtime_database_newer = timeline.store().newer_runtime_database().map(|newer| newer.to_string());
        let clean = store.is_clean() && search_problems.is_empty() && runtime_database_problem.is_none();
        // A damaged store may not be able to list them.
        let pending_moves = match context.pending_moves(|_| true) {
            Err(_) if !clean => Vec::new(),
            other => other?,
        };
        Ok(Self {
            clean,
            store,
            search_problems,
            runtime_database_problem,
            runtime_database_newer,
            pending_moves,
        })
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.clean
    }

    pub(crate) fn write(&self, out: &mut dyn Write, styles: &Styles) -> io::Result<()> {
        let (success, error, muted) = (styles.success, styles.error, styles.muted);
        let problems = self.store.problems.iter().map(ToString::to_string);
        for problem in
            problems.chain(self.search_problems.iter().chain(&self.runtime_database_problem).cloned())
        {
            writeln!(out, "{error}✗{error:#} {}", sanitize(&problem, LineBreaks::Fold))?;
        }
        let found = &self.store;
        let counts = format!(
            "{} of {}, {}, {}, {}",
            counted(found.objects, "object", "objects"),
            size(found.object_bytes),
            counted(found.operations, "operation", "operations"),
            counted(found.threads, "thread", "threads"),
            counted(found.takes, "take", "takes"),
        );
        if self.clean {
            writeln!(out, "{success}clean{success:#}: {counts}")?;
        } else {
            let beside = self.search_problems.len() + usize::from(self.runtime_database_problem.is_some());
            let problems = (found.problems.len() + beside) as u64;
            let problems = counted(problems, "problem", "problems");
            writeln!(out, "\n{error}{problems}{error:#} in {counts}")?;
            writeln!(out, "{muted}`retake repair` repairs what it can.{muted:#}")?;
        }
        if let Some(newer) = &self.runtime_database_newer {
            let warning = styles.warning;
            writeln!(out, "{warning}note:{warning:#} {}", sanitize(newer, LineBreaks::Fold))?;
        }
        if found.known_losses > 0 {
            let losses = count(found.known_losses);
            writeln!(out, "{muted}{losses} pieces of content were lost earlier.{muted:#}")?;
        }
        Ok(())
    }
}

/// Problems of the search index; none if it was never built.
fn search_problems(context: &Context) -> Result<Vec<String>, Failure> {
    let timeline = context.timeline()?;
    let folder = timeline.store().folder();
    if !folder.join("search.db").exists() {
        return Ok(Vec::new());
    }
    // An interrupted purge is not damage; it is finished here, as by every command.
    timeline.store().finish_erasure()?;
    let reader = timeline.read()?;
    let problems = SearchIndex::open(folder)?.check(&reader.queries())?;
    Ok(problems.iter().map(ToString::to_string).collect())
}
