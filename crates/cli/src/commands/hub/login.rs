//! `retake hub login`

use clap::{Args, Subcommand};
use retake_hub::accounts;
use serde_json::json;

use super::{HubLocation, failure};
use crate::context::Context;
use crate::failure::Failure;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Approve the login of a device that shows this code.
    Approve(Approve),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub login approve WDJB-MJHT --account ada")]
pub(super) struct Approve {
    /// The code that the device shows.
    code: String,
    /// Name of the account.
    #[arg(long, value_name = "NAME")]
    account: String,
}

pub(super) fn run(command: Command, location: &HubLocation, context: &Context) -> Result<(), Failure> {
    let Command::Approve(Approve { code, account }) = command;
    let hub = location.administer()?;
    let now = hub.now();
    let approved = hub.write(|connection| {
        let id = accounts::id_of(connection, &account)?;
        accounts::approve_for(connection, &id, &code, now)
    });
    if !approved.map_err(failure)? {
        let message =
            "no login waits with this code; it expires after 15 minutes, then start the login again";
        return Err(Failure::not_found(message));
    }
    context.report(&json!({"account": account, "approved": true}), |out, _| {
        writeln!(out, "Approved. The device is logged in as {account}.")
    })
}
