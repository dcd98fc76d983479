//! `retake role list`

use clap::Args;

use super::Roles;
use crate::commands::thread::role_style;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// List the roles, in order.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake role
  retake role list --json")]
pub(crate) struct Arguments {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.thread.as_deref())?.summary.id;
        let answer = Roles { thread, roles: reader.settings(thread).roles()? };
        context.answer(&answer, |out, styles| {
            for role in &answer.roles {
                let style = role_style(styles, role);
                writeln!(out, "{style}{}{style:#}", sanitize(role, LineBreaks::Fold))?;
            }
            Ok(())
        })
    }
}
