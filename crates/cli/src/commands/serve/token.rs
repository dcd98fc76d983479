//! `retake serve token`

use clap::Args;
use serde_json::json;

use super::token_file;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "\
Examples:
  curl -H \"Authorization: Bearer $(retake serve token)\" http://127.0.0.1:7878/v1/threads
  retake serve token --rotate               replace the token; old sessions end at once")]
pub(crate) struct Arguments {
    /// Replace the token. The old one stops working, and its sessions and event streams end.
    #[arg(long)]
    rotate: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let file = token_file(context)?;
        let token = if self.rotate {
            let token = file.rotate()?;
            context.timeline()?.store().runtime_database()?.revoke_other_browser_sessions(&token.hash())?;
            token
        } else {
            file.read_or_create()?
        };
        let answer = json!({"token": token.secret(), "file": file.path(), "rotated": self.rotate});
        context.answer_verbatim(&answer, &format!("{}\n", token.secret()))
    }
}
