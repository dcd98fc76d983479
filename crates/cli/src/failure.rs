//! Prints failures, and saves the text that the user typed if a command fails.

use std::io::Write;
use std::process::ExitCode;

pub(crate) use retake_surface::{Code, Failure};
use serde_json::{Value, json};

use crate::arguments::GlobalOptions;
use crate::command_line::help;
use crate::ui::confirm::ConfirmError;
use crate::ui::input::InputError;
use crate::ui::json::to_text;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::{Styles, stderr};

/// Prints a failure and returns the exit status.
pub(crate) fn report(failure: Failure, general: &GlobalOptions) -> ExitCode {
    let code = failure.code;
    let mut out = stderr(general.color);
    // A closed standard error is ignored.
    let _ = if general.json {
        writeln!(out, "{}", to_text(&json!({"error": as_json(failure)})))
    } else {
        let style = Styles::new().error;
        writeln!(out, "{style}error:{style:#} {}", sanitize(&failure.message, LineBreaks::Keep))
    };
    code.into()
}

fn as_json(failure: Failure) -> Value {
    let Failure { code, message, details, .. } = failure;
    let mut error = json!({"code": code, "message": message, "action": code.action()});
    if let Value::Object(fields) = &mut error {
        fields.extend(details);
    }
    error
}

/// Prints a usage error, or the requested help.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // The request for help or the version was fulfilled, even if nobody reads the answer.
        let _ = write!(anstream::AutoStream::auto(std::io::stdout()), "{}", help(error).ansi());
        return ExitCode::SUCCESS;
    }
    // The message quotes the command line, which may contain pasted control sequences.
    let text = error.render().to_string();
    eprint!("{}", sanitize(&text, LineBreaks::Keep));
    Code::Usage.into()
}

/// Saves text that the user typed to a file, and reports its path.
pub(crate) fn preserve(mut failure: Failure, text: Option<&str>) -> Failure {
    let Some(text) = text else { return failure };
    let kept = tempfile::Builder::new().prefix("retake-").suffix(".md").tempfile().and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.keep().map_err(|error| error.error)
    });
    match kept {
        Ok((_, path)) => {
            failure.message = format!("{}\nYour text was saved to {}", failure.message, path.display());
            failure.with("saved_to", path.display().to_string())
        }
        Err(error) => {
            failure.message = format!("{}\nYour text could not be saved ({error}):\n{text}", failure.message);
            failure
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::caused_by(Code::Usage, &error)
    }
}

impl From<ConfirmError> for Failure {
    fn from(error: ConfirmError) -> Self {
        Self::caused_by(Code::Refused, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_code_the_message_and_the_details_of_every_error() {
        for failure in retake_surface::samples::failures() {
            let shown = as_json(failure.clone());
            assert_eq!(shown["code"], failure.code.name());
            assert_eq!(shown["message"], failure.message);
            assert_eq!(shown["action"], failure.code.action());
            assert!(failure.details.iter().all(|(name, value)| &shown[name] == value), "{shown}");
        }
    }
}
