//! `retake exec`

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;

use clap::Args;
use retake_model::id::TurnId;
use retake_model::intent::RunningCommand;
use retake_model::operation::Actor;
use retake_timeline::{Caller, RecordedChanges};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::failure::{Code, Failure, report};
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
The exit code is that of the command, or 128 and the number of the signal that ended it. As with env and timeout, 127 \
means that the command was not found, 126 that it could not be started, and 125 that Retake itself failed.")]
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
        let (program, arguments) = self.command.split_first().expect("clap requires at least one argument");
        let command = RunningCommand { program: program_name(program), process: std::process::id() };
        let started = working_copy.mark_running(thread, caller, turn, Some(command))?.version;
        // Ctrl-C reaches the command too; Retake stays alive to record its changes.
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::default())?;
        }
        let ended = Command::new(program).args(arguments).current_dir(folder).status();
        // The changes are recorded even if waiting for the command failed.
        let caller = Caller { actor: by, turn: Some(turn), ..context.caller(thread, None)? };
        let recorded = working_copy
            .record_run(thread, caller, started)
            .map_err(|error| not_recorded(error.into(), ended.as_ref().ok()))?;
        drop(alive);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Ok(not_started(context, program, &error)),
        };
        let answer = Answer { exit: ended.code(), recorded };
        if context.general.json {
            context.report(&answer, |_, _| Ok(()))?;
        } else if !context.general.quiet {
            // Standard output belongs to the command.
            write_report(&mut stderr(context.general.color), context, &answer.recorded.files)?;
        }
        let code = ended.code().or_else(|| ended.signal().map(|signal| SIGNALLED + signal));
        let code = code.and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

/// Exit code if Retake itself failed, so that it is not taken for that of the command. `env`, `timeout` and `nice` use
/// the same codes.
pub(crate) const OWN_FAILURE: u8 = 125;
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;
/// Added to the number of a signal that ended the command, as shells do.
const SIGNALLED: i32 = 128;

/// The name of a program without its folder.
fn program_name(program: &str) -> String {
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| program.to_owned())
}

/// Reports a command that could not be started.
fn not_started(context: &Context, program: &str, error: &io::Error) -> ExitCode {
    let (code, exit) = match error.kind() {
        io::ErrorKind::NotFound => (Code::NotFound, NOT_FOUND),
        _ => (Code::Failed, NOT_STARTED),
    };
    report(Failure::new(code, format!("{program}: {error}")), &context.general);
    ExitCode::from(exit)
}

/// The failure to record the changes of a command that has run. Running it again would repeat its effects.
fn not_recorded(mut failure: Failure, ended: Option<&ExitStatus>) -> Failure {
    let Some(ended) = ended else { return failure };
    failure.message = format!(
        "the command ran ({ended}), but its changes could not be recorded: {}\n\
         Do not run it again: the next command in this folder records its changes, and `retake undo --shared` undoes them.",
        failure.message
    );
    failure.with("exit", ended.code())
}
