//! `retake exec`

use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;

use clap::Args;
use retake_model::id::TurnId;
use retake_model::operation::Actor;
use retake_timeline::{Caller, RecordedChanges};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::failure::{Code, Failure};
use crate::ui::style::stderr;

/// Run a command and record its file changes as one undoable operation.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake exec -- cargo fmt
  retake exec --by agent -- ./agent.sh \"tidy up\"
  retake undo                             undoes the command's changes and keeps yours

Your earlier changes are recorded first, as yours. If Retake is killed, the next command still records the changes as \
the program's. Files that change while other commands or tools run are shared: undo asks before it reverts them. \
The exit code is that of the command.")]
pub(crate) struct Arguments {
    /// Name of the author to record.
    #[arg(long, value_name = "NAME", default_value = "agent")]
    by: String,
    #[command(flatten)]
    target: ThreadTarget,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Serialize)]
struct Answer {
    /// The command's exit code; `None` if a signal ended it.
    exit: Option<i32>,
    #[serde(flatten)]
    recorded: RecordedChanges,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?.summary.id;
        let working_copy = context.working_copy_of(thread)?;
        // If the thread belongs to another project, the command runs in that project's folder.
        let here = context.directory();
        let inside = here.canonicalize().is_ok_and(|here| here.starts_with(working_copy.path()));
        let folder = if inside { here } else { working_copy.path() };
        let turn = TurnId::generate(&mut context.timeline()?.fresh());
        let alive = context.timeline()?.store().lock_alive(turn)?;
        let by = Actor::named(&self.by);
        let caller =
            Caller { actor: by.clone(), turn: Some(turn), ..context.caller(thread, self.target.expect)? };
        working_copy.mark_running(thread, caller, turn)?;
        let (program, arguments) = self.command.split_first().expect("clap requires at least one argument");
        // Ctrl-C reaches the command too; Retake stays alive to record its changes.
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::default())?;
        }
        let ended = Command::new(program).args(arguments).current_dir(folder).status();
        // The changes are recorded even if waiting for the command failed.
        let caller = Caller { actor: by, turn: Some(turn), ..context.caller(thread, None)? };
        let recorded = working_copy
            .record_as_caller(thread, caller)
            .map_err(|error| not_recorded(error.into(), ended.as_ref().ok()))?;
        drop(alive);
        let ended = ended.map_err(|error| Failure::new(Code::NotFound, format!("{program}: {error}")))?;
        let answer = Answer { exit: ended.code(), recorded };
        if context.general.json {
            context.answer(&answer, |_, _| Ok(()))?;
        } else if !context.general.quiet {
            // Standard output belongs to the command.
            write_report(&mut stderr(context.general.color), context, &answer.recorded.files)?;
        }
        let code = ended.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

/// The failure to record the changes of a command that has run. Running it again would repeat its effects.
fn not_recorded(mut failure: Failure, ended: Option<&ExitStatus>) -> Failure {
    let Some(ended) = ended else { return failure };
    failure.message = format!(
        "the command ran ({ended}), but its changes could not be recorded: {}\n\
         Do not run it again: the next command in this folder records the changes as the command's.",
        failure.message
    );
    failure.with("exit", ended.code())
}
