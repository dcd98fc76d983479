//! `retake remote list`

use clap::Args;
use retake_model::time::Timestamp;
use retake_sync::config::RemoteConfig;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List remotes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake remote list
  retake remote list --json")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    config: RemoteConfig,
    /// The last round without failure, in milliseconds since 1970.
    synced_at: Option<i64>,
    /// The last failure of the remote as a whole.
    error: Option<String>,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let remotes = context.remotes()?;
        let listed: Vec<Listed> = remotes
            .list()?
            .into_iter()
            .map(|config| {
                let state = remotes.state(&config.name);
                Listed {
                    config,
                    synced_at: state.synced_at,
                    error: state.pending.map(|pending| pending.error),
                }
            })
            .collect();
        context.answer(&serde_json::json!({ "remotes": listed }), |out, styles| {
            if listed.is_empty() {
                return writeln!(out, "No remotes; `retake remote add NAME URL` adds one.");
            }
            let mut table = Table::new([
                Column::left("NAME"),
                Column::left("ADDRESS").flexible(),
                Column::left("LAST SYNC"),
            ]);
            for remote in &listed {
                let when = match (&remote.error, remote.synced_at) {
                    (Some(error), _) => Label::new().with(styles.error, error),
                    (None, Some(at)) => {
                        Label::new().with(styles.muted, &context.ago(Timestamp::from_millis(at)))
                    }
                    (None, None) => Label::new().with(styles.muted, "never"),
                };
                let url = Label::new().plain(&remote.config.url);
                let url = if remote.config.automatic { url } else { url.with(styles.muted, " (manual)") };
                table.row([Label::new().with(styles.active, &remote.config.name), url, when]);
            }
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))
        })
    }
}
