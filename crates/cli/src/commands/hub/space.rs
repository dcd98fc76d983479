//! `retake hub space`

use clap::{Args, Subcommand};
use retake_hub::spaces;
use serde_json::json;

use super::{HubLocation, failure, parse_size};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

#[derive(Subcommand)]
pub(super) enum Command {
    /// List spaces with their size and quota.
    #[command(visible_alias = "ls")]
    List(List),
    /// Set the quota of a space.
    Quota(Quota),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub space list")]
pub(super) struct List {}

#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub space quota 4mzs6vlnpyd2h7cj3q5xwr2k4u 50G")]
pub(super) struct Quota {
    /// Id of the space, as listed.
    space: String,
    /// The most that it may have, such as 50G.
    #[arg(value_parser = parse_size)]
    size: u64,
}

pub(super) fn run(command: Command, location: &HubLocation, context: &Context) -> Result<(), Failure> {
    let hub = location.administer()?;
    match command {
        Command::List(List {}) => {
            let found = hub.read(spaces::list).map_err(failure)?;
            context.answer(&json!({"spaces": found}), |out, styles| {
                let muted = styles.muted;
                for space in &found {
                    let name = sanitize(&space.name, LineBreaks::Fold);
                    let (bytes, quota) = (space.bytes, space.quota);
                    writeln!(out, "{} {name:<24} {muted}{bytes} of {quota} bytes{muted:#}", space.id)?;
                }
                Ok(())
            })
        }
        Command::Quota(Quota { space, size }) => {
            hub.write(|connection| spaces::set_quota(connection, &space, size)).map_err(failure)?;
            context.report(&json!({"space": space, "quota": size}), |out, _| {
                writeln!(out, "The space may have {size} bytes.")
            })
        }
    }
}
