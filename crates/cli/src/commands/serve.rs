//! `retake serve`

mod address;
mod link;
mod start;
mod token;

use clap::{Args, Subcommand};
use retake_api::TokenFile;

use crate::context::Context;
use crate::failure::Failure;

/// Serve the studio to a browser, and the HTTP API to any program.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  retake serve --open                       the studio, in your browser
  retake serve                              on 127.0.0.1:7878, for this folder's project
  retake serve --listen 127.0.0.1:0         on any free port
  curl -H \"Authorization: Bearer $(retake serve token)\" http://127.0.0.1:7878/v1/threads
  retake serve link                         a link that lets a browser in, once
  retake serve token --rotate               a new token; the old one, and whoever came in by it, is out at once

The server answers on this machine alone, and to nobody without the token. GET /docs lists all that it can do."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    start: start::Start,
}

#[derive(Subcommand)]
enum Command {
    /// Print the token, or make a new one.
    Token(token::Arguments),
    /// Make a link that lets a browser in, once.
    Link(link::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.command {
            None => self.start.run(context),
            Some(Command::Token(arguments)) => arguments.run(context),
            Some(Command::Link(arguments)) => arguments.run(context),
        }
    }
}

/// The file that the token is in.
fn token_file(context: &Context) -> Result<TokenFile, Failure> {
    Ok(TokenFile::at(context.timeline()?.store().folder().join("serve.token")))
}
