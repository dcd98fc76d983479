//! `retake settings get`

use clap::Args;
use retake_model::id::ThreadId;
use serde::Serialize;
use serde_json::Value;

use super::known;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Print the value of a setting.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake settings get temperature
  retake settings get project_system_prompt --json")]
pub(crate) struct Arguments {
    /// Name of the setting.
    name: String,
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    name: &'static str,
    /// A string, a number, a boolean, or null if not set.
    value: Value,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let name = known(&self.name)?;
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.thread.as_deref())?.summary.id;
        let settings = reader.settings(thread).effective()?;
        let text = settings.get(name).unwrap_or_default();
        let all = serde_json::to_value(&settings).map_err(|error| Failure::new(Code::Failed, error))?;
        let answer = Answer { thread, name, value: all.get(name).cloned().unwrap_or_default() };
        context.answer(&answer, |out, _| writeln!(out, "{}", sanitize(&text, LineBreaks::Keep)))
    }
}
