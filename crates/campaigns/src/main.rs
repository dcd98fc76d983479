//! The program that runs the campaigns, at any size.
//!
//! Each prints its seed and a summary. A violation is printed to standard error with the seed and the step that
//! reproduce it, and the exit code is 1.

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Arguments::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("campaigns: {error}");
            ExitCode::FAILURE
        }
    }
}
