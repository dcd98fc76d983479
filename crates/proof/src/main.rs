//! `proof`: the campaigns that try to break Retake's promises, by command and at any size.
//!
//! Each prints its seed and one line of what it did. A violation goes to the error output with the seed and
//! the step that show it again, and the exit code is 1.

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Proof::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proof: {error}");
            ExitCode::FAILURE
        }
    }
}
