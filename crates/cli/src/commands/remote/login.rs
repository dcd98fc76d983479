//! `retake remote login`

use clap::Args;
use retake_surface::{log_in, store_credentials};
use retake_sync::config::Address;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::remotes::read_secret;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Store the credentials of a bucket or a hub, as `retake keys` stores keys. The secret is read from a prompt that shows
/// nothing, or from standard input. A token that the hub refuses is not stored.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pass show bucket | retake remote login bucket --access-key AKIAEXAMPLE
  retake remote login hub < token.txt

AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and RETAKE_HUB_TOKEN, take precedence.")]
pub(crate) struct Arguments {
    /// Name of the remote.
    name: String,
    /// Access key of a bucket.
    #[arg(long, value_name = "KEY")]
    access_key: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let remotes = context.remotes()?;
        let config = remotes.get(&self.name)?;
        let usage = |message: &str| Failure::new(Code::Usage, message.to_owned());
        let question = match (config.url.parse::<Address>(), &self.access_key) {
            (Ok(Address::Folder(_)), _) => {
                return Err(usage("a folder needs no credentials; nothing was stored"));
            }
            (Ok(Address::Bucket { .. }), None) => {
                return Err(usage("a bucket needs --access-key KEY; the secret key is asked for"));
            }
            (Ok(Address::Bucket { .. }), Some(_)) => "Secret key",
            (Ok(Address::Hub(_)), None) => "Token",
            (Ok(Address::Hub(_)), Some(_)) => return Err(usage("a hub has a token and no access key")),
            (Err(error), _) => return Err(Failure::new(Code::Usage, error)),
        };
        let name = sanitize(&config.name, LineBreaks::Fold).into_owned();
        let text = read_secret(&format!("{question} of {name}: "))?;
        match self.access_key {
            Some(key) => store_credentials(&config.name, &format!("{key}:{text}"))?,
            None => log_in(&config, &text)?,
        }
        context.report(&config, |out, _| writeln!(out, "Stored the credentials of {name}."))
    }
}
