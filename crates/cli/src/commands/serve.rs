//! `retake serve`

mod address;
mod link;
mod start;
mod token;

use clap::{Args, Subcommand};
use retake_api::TokenFile;

use crate::context::Context;
use crate::failure::Failure;

pub(crate) use start::LogFormat;

/// Serve the studio and the HTTP API.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  retake serve --open                       open the studio in your browser
  retake serve                              listen on 127.0.0.1:7878, for this folder's project
  retake serve --listen 127.0.0.1:0         use any free port
  curl -H \"Authorization: Bearer $(retake serve token)\" http://127.0.0.1:7878/v1/threads
  retake serve link                         print a single-use login link for a browser
  retake serve token --rotate               replace the token; old sessions end at once

By default the server listens on this machine only. It always requires the token. GET /docs documents the API."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    start: start::Start,
}

#[derive(Subcommand)]
enum Command {
    /// Print the API token, or replace it.
    Token(token::Arguments),
    /// Print a single-use login link for a browser.
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

fn token_file(context: &Context) -> Result<TokenFile, Failure> {
    Ok(TokenFile::at(context.timeline()?.store().folder().join("serve.token")))
}
