//! `retake serve link`

use clap::Args;
use retake_api::{new_login_link, reachable};
use serde_json::json;

use super::address::AddressFile;
use super::token_file;
use crate::config::ListenAddress;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake serve link
  xdg-open \"$(retake serve link)\"          open it right away")]
pub(crate) struct Arguments {
    /// Address of the server [default: the running server's, otherwise serve.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let address = match (&self.listen, AddressFile::of(context)?.running_server()) {
            (Some(named), _) => named.address()?,
            (None, Some(running)) => running,
            (None, None) => {
                context.note("No server is running; the link works once `retake serve` has started.")?;
                context.config.serve.listen.address()?
            }
        };
        let timeline = context.timeline()?;
        let token = token_file(context)?.read_or_create()?;
        let link = new_login_link(&timeline.store().runtime_database()?, &token, timeline.now())?;
        let link = format!("http://{}{link}", reachable(address));
        context.answer_verbatim(&json!({"link": link}), &format!("{link}\n"))
    }
}
