//! `retake serve link`

use std::net::SocketAddr;

use clap::Args;
use retake_api::new_ticket;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake serve link
  xdg-open \"$(retake serve link)\"          open it at once")]
pub(crate) struct Arguments {
    /// The address that the server listens on [default: serve.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let address = self.listen.unwrap_or(context.config.serve.listen);
        let timeline = context.timeline()?;
        let link = new_ticket(&timeline.store().ledger()?, timeline.now())?;
        let link = format!("http://{address}{link}");
        context.answer_as_it_is(&json!({"link": link}), &format!("{link}\n"))
    }
}
