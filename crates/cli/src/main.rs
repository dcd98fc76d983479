//! The `retake` command.
//!
//! `main` stays a table: each command is one file, what they share of the terminal is in [`ui`].

// The toolkit comes before the commands that use it; this line goes with the first of them.
#![allow(dead_code)]

mod ui;

use clap::Parser;

/// Conversation and files on one timeline.
#[derive(Parser)]
#[command(name = "retake", version)]
struct Arguments {
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: ui::style::ColorWhen,
}

fn main() {
    let _ = Arguments::parse();
}
