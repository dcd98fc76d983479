//! `retake hub token`

use clap::{Args, Subcommand};
use retake_hub::accounts;
use serde_json::json;

use super::{HubLocation, failure};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Add a device, and print its token. The hub stores only a hash of it.
    Add(Add),
    /// List the devices of an account.
    #[command(visible_alias = "ls")]
    List(List),
    /// Revoke the token of a device. Open connections end within a second.
    Revoke(Revoke),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub token add ada laptop > token.txt")]
pub(super) struct Add {
    /// Name of the account.
    account: String,
    /// Name of the device.
    device: String,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub token list ada")]
pub(super) struct List {
    /// Name of the account.
    account: String,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub token revoke ada 4mzs6vlnpyd2h7cj3q5xwr2k4u")]
pub(super) struct Revoke {
    /// Name of the account.
    account: String,
    /// Id of the device, as listed.
    device: String,
}

pub(super) fn run(command: Command, location: &HubLocation, context: &Context) -> Result<(), Failure> {
    let hub = location.administer()?;
    let now = hub.now();
    match command {
        Command::Add(Add { account, device }) => {
            let added = hub.write(|connection| {
                let id = accounts::id_of(connection, &account)?;
                accounts::add_device(connection, &id, &device, now)
            });
            let added = added.map_err(failure)?;
            let answer = json!({"account": account, "device": added.device, "token": added.token});
            context.answer_verbatim(&answer, &format!("{}\n", added.token))
        }
        Command::List(List { account }) => {
            let devices = hub.read(|connection| {
                let id = accounts::id_of(connection, &account)?;
                accounts::devices_of(connection, &id)
            });
            let devices = devices.map_err(failure)?;
            context.answer(&json!({"account": account, "devices": devices}), |out, styles| {
                let muted = styles.muted;
                for device in &devices {
                    let name = sanitize(&device.name, LineBreaks::Fold);
                    let state = if device.revoked.is_some() { ", revoked" } else { "" };
                    let seen = jiff::Timestamp::from_millisecond(device.last_seen).unwrap_or_default();
                    writeln!(out, "{} {name:<20} {muted}seen {seen}{state}{muted:#}", device.id)?;
                }
                Ok(())
            })
        }
        Command::Revoke(Revoke { account, device }) => {
            let revoked = hub.write(|connection| {
                let id = accounts::id_of(connection, &account)?;
                accounts::revoke_of(connection, &id, &device, now)
            });
            revoked.map_err(failure)?;
            context.report(&json!({"account": account, "device": device, "revoked": true}), |out, _| {
                writeln!(out, "Revoked the token of {device}.")
            })
        }
    }
}
