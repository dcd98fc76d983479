//! `retake hub account`

use clap::{Args, Subcommand};
use retake_hub::accounts;
use serde_json::json;

use super::{HubLocation, failure, parse_size};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Create an account with its personal space.
    Add(Add),
    /// List accounts.
    #[command(visible_alias = "ls")]
    List(List),
    /// Refuse all tokens of an account. Its threads stay.
    #[command(after_help = "Examples:\n  retake hub account disable ada")]
    Disable(Named),
    /// Accept the tokens of an account again.
    #[command(after_help = "Examples:\n  retake hub account enable ada")]
    Enable(Named),
    /// Let an account read the threads that others share with support, or no longer.
    Support(Support),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub account add ada
  retake hub account add ben --device laptop > token.txt")]
pub(super) struct Add {
    /// Name: small letters, digits, and - _ . @
    name: String,
    /// Also add a device with this name, and print its token.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Quota of the personal space, such as 10G.
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = parse_size)]
    quota: u64,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub account list")]
pub(super) struct List {}

#[derive(Args)]
pub(super) struct Named {
    /// Name of the account.
    name: String,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub account support ada
  retake hub account support ada --remove")]
pub(super) struct Support {
    /// Name of the account.
    name: String,
    /// No longer.
    #[arg(long)]
    remove: bool,
}

pub(super) fn run(command: Command, location: &HubLocation, context: &Context) -> Result<(), Failure> {
    let hub = location.administer()?;
    let now = hub.now();
    match command {
        Command::Add(Add { name, device, quota }) => {
            let added = hub.write(|connection| {
                let id = accounts::create(connection, &name, quota, now)?;
                device.as_ref().map(|device| accounts::add_device(connection, &id, device, now)).transpose()
            });
            let token = added.map_err(failure)?.map(|device| device.token);
            if let Some(token) = token {
                let answer = json!({"account": name, "token": token});
                return context.answer_verbatim(&answer, &format!("{token}\n"));
            }
            context.report(&json!({"account": name}), |out, _| {
                writeln!(out, "Created the account {name}. Next: `retake hub token add {name} DEVICE`.")
            })
        }
        Command::List(List {}) => {
            let found = hub.read(accounts::list).map_err(failure)?;
            let rows: Vec<_> = found
                .iter()
                .map(|account| {
                    json!({
                        "account": account.name, "created": account.created, "disabled": account.disabled,
                        "support": account.support, "devices": account.devices,
                    })
                })
                .collect();
            context.answer(&json!({"accounts": rows}), |out, styles| {
                let muted = styles.muted;
                for account in &found {
                    let name = sanitize(&account.name, LineBreaks::Fold);
                    let state = if account.disabled.is_some() { ", disabled" } else { "" };
                    let support = if account.support { ", support" } else { "" };
                    writeln!(out, "{name:<24} {muted}devices: {}{state}{support}{muted:#}", account.devices)?;
                }
                Ok(())
            })
        }
        Command::Disable(Named { name }) => {
            hub.write(|connection| accounts::set_disabled(connection, &name, Some(now))).map_err(failure)?;
            context.report(&json!({"account": name, "disabled": true}), |out, _| {
                writeln!(out, "Disabled {name}.")
            })
        }
        Command::Enable(Named { name }) => {
            hub.write(|connection| accounts::set_disabled(connection, &name, None)).map_err(failure)?;
            context.report(&json!({"account": name, "disabled": false}), |out, _| {
                writeln!(out, "Enabled {name}.")
            })
        }
        Command::Support(Support { name, remove }) => {
            hub.write(|connection| accounts::set_support(connection, &name, !remove)).map_err(failure)?;
            context.report(&json!({"account": name, "support": !remove}), |out, _| {
                let what = if remove { "no longer belongs" } else { "belongs" };
                writeln!(out, "{name} {what} to support.")
            })
        }
    }
}
