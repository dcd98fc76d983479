//! `retake usage`

pub(super) mod models;

use clap::Args;
use retake_agent::{ModelUsage, models_used};
use retake_store::{BudgetState, ProjectUsage, StoreUsage};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::{count, size};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Show storage use, and model use with its cost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake usage
  retake usage --projects                     per project
  retake config set storage.budget \"5 GB\"    warn when the store grows beyond 5 GB")]
pub(crate) struct Arguments {
    /// Show the use of each project; this reads the whole history.
    #[arg(long)]
    projects: bool,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    share: ProjectUsage,
    path: Option<String>,
    /// Whether it exceeds `files.budget`.
    over: bool,
}

#[derive(Serialize)]
struct Answer {
    folder: String,
    #[serde(flatten)]
    usage: StoreUsage,
    budget: Option<u64>,
    budget_status: Option<BudgetState>,
    /// Use of each model in all threads, as far back as the trace goes.
    models: Vec<ModelUsage>,
    /// Use of each project, largest first, with `--projects`.
    #[serde(skip_serializing_if = "Option::is_none")]
    projects: Option<Vec<Line>>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let store = timeline.store();
        let usage = store.usage()?;
        let budget = context.config.storage.budget.map(|budget| budget.0);
        let answer = Answer {
            folder: store.folder().to_string_lossy().into_owned(),
            usage,
            budget,
            budget_status: budget.map(|budget| usage.budget_state(budget)),
            models: models_used(timeline, None)?,
            projects: if self.projects { Some(shares(context)?) } else { None },
        };
        context.answer(&answer, |out, styles| {
            let (muted, warning) = (styles.muted, styles.warning);
            for (name, value) in [
                ("folder", sanitize(&answer.folder, LineBreaks::Fold).into_owned()),
                ("database", size(usage.database)),
                ("write-ahead log", size(usage.log)),
                ("search index", size(usage.search)),
                ("trace and turns", size(usage.runtime_database)),
                ("backups", size(usage.backups)),
                ("files in packs", size(usage.packs)),
                ("folder data", size(usage.folders)),
                ("all", size(usage.total)),
                ("threads", count(usage.threads)),
                ("operations", count(usage.operations)),
                ("objects", count(usage.objects)),
            ] {
                writeln!(out, "{muted}{name:>14}{muted:#}  {value}")?;
            }
            match answer.budget {
                None => writeln!(
                    out,
                    "{muted}        budget  none (`retake config set storage.budget \"5 GB\"`){muted:#}"
                )?,
                Some(budget) => {
                    write!(out, "{muted}        budget{muted:#}  {}", size(budget))?;
                    match answer.budget_status {
                        Some(BudgetState::Near { percent } | BudgetState::Over { percent }) => {
                            writeln!(out, "{warning}, {percent} % used{warning:#}")?;
                        }
                        _ => writeln!(out)?,
                    }
                }
            }
            for Line { share, path, over } in answer.projects.iter().flatten() {
                let path =
                    sanitize(path.as_deref().unwrap_or("a project without a folder"), LineBreaks::Fold);
                let own = size(share.own_bytes);
                write!(
                    out,
                    "{muted}{:>14}{muted:#}  {path}{muted}, {own} unshared{muted:#}",
                    size(share.bytes)
                )?;
                if *over {
                    write!(
                        out,
                        "{warning}, above files.budget{warning:#}: run `retake purge --deleted --to-fit`"
                    )?;
                }
                writeln!(out)?;
            }
            models::write(out, styles, &answer.models)
        })
    }
}

fn shares(context: &Context) -> Result<Vec<Line>, Failure> {
    let timeline = context.timeline()?;
    let mut shares = timeline.store().usage_by_project()?;
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    let projects = timeline.read()?.queries().projects()?;
    let budget = context.config.files.budget;
    let line = |share: ProjectUsage| Line {
        path: projects.iter().find(|row| row.id == share.project).map(|row| row.path.clone()),
        over: budget.is_some_and(|budget| share.bytes > budget.0),
        share,
    };
    Ok(shares.into_iter().map(line).collect())
}
