//! `retake hub`: the server that threads sync to, and its administration.

mod account;
mod login;
mod serve;
mod space;
mod token;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use etcetera::BaseStrategy;
use retake_hub::database::{Database, Postgres, Sqlite};
use retake_hub::error::HubError;
use retake_hub::service::{Hub, Settings};
use retake_sync::remote::Folder;
use retake_sync::wire::ProblemCode;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// Run a hub: the server that threads of several people and machines sync to.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub account add ada --device laptop    create an account, and print the token of a device
  retake hub serve                              listen on 127.0.0.1:7979, with an embedded database
  retake hub token list ada
  retake hub login approve WDJB-MJHT --account ada

The commands work on the database, also while the server runs. docs/hub.md explains TLS, backup, restore and upgrade.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    location: HubLocation,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve devices.
    Serve(serve::Arguments),
    /// Manage accounts.
    #[command(subcommand)]
    Account(account::Command),
    /// Manage the tokens of devices.
    #[command(subcommand)]
    Token(token::Command),
    /// Approve logins of devices.
    #[command(subcommand)]
    Login(login::Command),
    /// Manage spaces: of one account, or of an organization.
    #[command(subcommand)]
    Space(space::Command),
}

/// Where the hub has its data.
#[derive(Args, Clone)]
struct HubLocation {
    /// Folder of database and objects [default: `RETAKE_HUB_DATA`, or retake-hub in the data folder of the user].
    #[arg(long, global = true, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Database: `postgres://USER@HOST/NAME` [default: `RETAKE_HUB_DATABASE`, or hub.db in the folder].
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let location = self.location;
        match self.command {
            Command::Serve(arguments) => arguments.run(&location, context),
            Command::Account(command) => account::run(command, &location, context),
            Command::Token(command) => token::run(command, &location, context),
            Command::Login(command) => login::run(command, &location, context),
            Command::Space(command) => space::run(command, &location, context),
        }
    }
}

/// Connections of an administration command to Postgres.
const FEW_CONNECTIONS: usize = 2;

impl HubLocation {
    fn folder(&self) -> Result<PathBuf, Failure> {
        let named = self.data.clone().or_else(|| std::env::var_os("RETAKE_HUB_DATA").map(PathBuf::from));
        if let Some(folder) = named {
            return Ok(folder);
        }
        let home = etcetera::choose_base_strategy();
        let home = home.map_err(|error| Failure::new(Code::Failed, error))?;
        Ok(home.data_dir().join("retake-hub"))
    }

    /// Opens the hub, and creates what is missing.
    fn open(&self, connections: usize, settings: Settings) -> Result<Hub, Failure> {
        let folder = self.folder()?;
        let objects = folder.join("objects");
        create(&objects)?;
        // A password in the environment is not in the list of processes.
        let named = self.database.clone().or_else(|| crate::ui::command::environment("RETAKE_HUB_DATABASE"));
        let database: Box<dyn Database> = match &named {
            None => Box::new(Sqlite::open(&folder.join("hub.db")).map_err(|error| failure(error.into()))?),
            Some(address) if address.starts_with("postgres://") || address.starts_with("postgresql://") => {
                Box::new(Postgres::connect(address, connections).map_err(|error| failure(error.into()))?)
            }
            Some(_) => {
                let message = "--database is an address such as postgres://hub@localhost/hub; without it, the hub uses \
                               a database in its folder";
                return Err(Failure::new(Code::Usage, message));
            }
        };
        let clock = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.as_millis() as i64
        };
        Ok(Hub::new(database, Box::new(Folder::at(&objects)), settings, Arc::new(clock)))
    }

    /// Opens the hub for one command of the operator.
    fn administer(&self) -> Result<Hub, Failure> {
        self.open(FEW_CONNECTIONS, Settings::default())
    }
}

fn create(folder: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Failure::new(Code::Failed, format!("cannot create {}: {error}", folder.display())))
}

fn failure(error: HubError) -> Failure {
    match error.code() {
        Some(ProblemCode::NotFound) => {
            Failure::not_found("no such account, device, login or space on this hub")
        }
        Some(ProblemCode::Invalid) => Failure::new(Code::Usage, error),
        Some(_) => Failure::refused(error),
        None => Failure::new(Code::Failed, error),
    }
}

/// A size such as `10G`.
fn parse_size(text: &str) -> Result<u64, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("a size is a number with K, M, G or T, such as 10G".to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| i64::try_from(*bytes).is_ok()).ok_or_else(|| "the size is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("10g", Some(10 << 30)),
            ("512M", Some(512 << 20)),
            ("1X", None),
            ("G", None),
            ("99999999T", None),
        ] {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
    }
}
