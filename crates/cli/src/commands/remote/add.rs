//! `retake remote add`

use clap::Args;
use retake_surface::{needs_login, open_remote, store_credentials};
use retake_sync::config::{RemoteConfig, Remotes};
use retake_sync::remote::OpenMode;

use crate::context::Context;
use crate::failure::Failure;
use crate::remotes::read_secret;
use crate::ui::command::environment;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Add a remote: a folder, a bucket or a hub. The first `retake sync` sends all threads that are not private.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake remote add home file:///media/disk/threads
  retake remote add home file:///media/disk/threads --manual
  retake remote add bucket s3://my-threads/retake --endpoint https://s3.example.org
  retake remote add hub https://hub.example.org --manual

A folder can be on a disk, a network file system, or in a folder that another program mirrors. An empty or missing folder \
becomes a remote. A bucket must exist; its server must support If-None-Match, which is tried. A hub needs \
`retake remote login` afterwards, if RETAKE_HUB_TOKEN is not set.")]
pub(crate) struct Arguments {
    /// Name of the remote on this machine.
    name: String,
    /// Address: `file:///PATH`, `s3://BUCKET/PREFIX` or `https://HUB`.
    url: String,
    /// Synchronize only with `retake sync`, not after commands and not in `retake serve`.
    #[arg(long)]
    manual: bool,
    /// Access key of a bucket; the secret key is asked for, or read from standard input. Without it,
    /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` are used.
    #[arg(long, value_name = "KEY")]
    access_key: Option<String>,
    /// Server of a bucket [default: Amazon S3, or `AWS_ENDPOINT_URL`].
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Region of a bucket [default: us-east-1, or `AWS_REGION`].
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let is_bucket = self.url.starts_with("s3://");
        let of_bucket = |name| environment(name).filter(|value| is_bucket && !value.is_empty());
        let config = RemoteConfig {
            name: self.name,
            url: self.url,
            automatic: !self.manual,
            endpoint: self.endpoint.or_else(|| of_bucket("AWS_ENDPOINT_URL")),
            region: self.region.or_else(|| of_bucket("AWS_REGION")),
        };
        let remotes: Remotes = context.remotes()?;
        remotes.check_new(&config)?;
        if let Some(access_key) = &self.access_key {
            let secret = read_secret(&format!("Secret key of {}: ", config.name))?;
            store_credentials(&config.name, &format!("{access_key}:{secret}"))?;
        }
        // A remote that cannot be used is not added. A hub answers only those who are logged in, and `remote login` needs the
        // remote, so that a hub is tried by its login.
        let needs_login = needs_login(&config)?;
        if !needs_login {
            open_remote(&config, OpenMode::Create)?;
        }
        remotes.add(config.clone())?;
        context.report(&config, |out, _| {
            let (name, url) =
                (sanitize(&config.name, LineBreaks::Fold), sanitize(&config.url, LineBreaks::Fold));
            let login = if needs_login {
                format!(" This machine is not logged in to it: `retake remote login {name}` does that. Then")
            } else {
                String::new()
            };
            writeln!(
                out,
                "Added remote {name}: {url}.{login} `retake sync` sends all threads that are not private."
            )
        })
    }
}
