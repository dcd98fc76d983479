//! `retake serve link`

use clap::Args;
use retake_api::{new_ticket, reachable};
use serde_json::json;

use super::address::AddressFile;
use super::token_file;
use crate::config::Listen;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake serve link
  xdg-open \"$(retake serve link)\"          open it at once")]
pub(crate) struct Arguments {
    /// The address that the server listens on [default: that of the one that runs, or else serve.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let address = match (&self.listen, AddressFile::of(context)?.answering()) {
            (Some(named), _) => named.address()?,
            (None, Some(running)) => running,
            (None, None) => {
                context.remark(
                    "No server runs on this store; the link is for one that `retake serve` starts.",
                )?;
                context.config.serve.listen.address()?
            }
        };
        let timeline = context.timeline()?;
        let token = token_file(context)?.read_or_make()?;
        let link = new_ticket(&timeline.store().ledger()?, &token, timeline.now())?;
        let link = format!("http://{}{link}", reachable(address));
        context.answer_as_it_is(&json!({"link": link}), &format!("{link}\n"))
    }
}
