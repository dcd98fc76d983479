//! `retake usage`

use clap::Args;
use retake_store::{BudgetState, Usage};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::{count, size};
use crate::ui::sanitize::{Lines, sanitize};

/// Show how much room the store takes, and for what.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake usage
  retake config set storage.budget \"5 GB\"    warn before it grows beyond that")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    folder: String,
    #[serde(flatten)]
    usage: Usage,
    budget: Option<u64>,
    against: Option<BudgetState>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let store = context.timeline()?.store();
        let usage = store.usage()?;
        let budget = context.config.storage.budget.map(|budget| budget.0);
        let answer = Answer {
            folder: store.folder().to_string_lossy().into_owned(),
            usage,
            budget,
            against: budget.map(|budget| usage.against(budget)),
        };
        context.answer(&answer, |out, styles| {
            let (muted, warning) = (styles.muted, styles.warning);
            for (name, value) in [
                ("folder", sanitize(&answer.folder, Lines::Fold).into_owned()),
                ("database", size(usage.database)),
                ("its log", size(usage.log)),
                ("search index", size(usage.search)),
                ("backups", size(usage.backups)),
                ("all", size(usage.total)),
                ("threads", count(usage.threads)),
                ("operations", count(usage.operations)),
                ("objects", count(usage.objects)),
            ] {
                writeln!(out, "{muted}{name:>14}{muted:#}  {value}")?;
            }
            let Some(budget) = answer.budget else {
                return writeln!(
                    out,
                    "{muted}        budget  none (`retake config set storage.budget \"5 GB\"`){muted:#}"
                );
            };
            write!(out, "{muted}        budget{muted:#}  {}", size(budget))?;
            match answer.against {
                Some(BudgetState::Near { percent } | BudgetState::Over { percent }) => {
                    writeln!(out, "{warning}, {percent} % used{warning:#}")
                }
                _ => writeln!(out),
            }
        })
    }
}
