//! `retake serve`: starts the server.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use retake_agent::Cancel;
use retake_agent::provider::config::ProviderEnvironment;
use retake_api::{Limits, Options, Pages, new_login_link, reachable};
use retake_studio::{HOME, Studio};
use retake_surface::open_remote;
use retake_sync::config::RemoteConfig;
use retake_sync::remote::OpenMode;
use retake_sync::session::Session;
use retake_sync::watch::watch;
use serde_json::json;
use tracing::warn;

use super::address::AddressFile;
use super::token_file;
use crate::agent::InterruptGuard;
use crate::config::ListenAddress;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::command::environment;

#[derive(Args)]
pub(crate) struct Start {
    /// Address to listen on; port 0 picks a free one [default: serve.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
    /// Additional host name to accept: NAME or NAME:PORT; can be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Open the studio in your browser, using a running server if there is one.
    #[arg(long)]
    open: bool,
    /// Log format on standard error [default: text on a terminal, otherwise json].
    #[arg(long, value_enum, value_name = "HOW")]
    log: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object per line.
    Json,
    /// No log.
    Off,
}

impl Start {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        LogFormat::install_or_default(self.log);
        let token = token_file(context)?;
        let secret = token.read_or_create()?;
        let timeline = context.timeline()?.clone();
        let link = new_login_link(&timeline.store().runtime_database()?, &secret, timeline.now())?;
        let running =
            AddressFile::of(context)?.running_server().filter(|_| self.open && self.listen.is_none());
        if let Some(address) = running {
            context.note("A server is already running; opening its studio.")?;
            print_address(context, address, &link)?;
            return open_browser(context, address, &link);
        }
        let address = self.listen.as_ref().unwrap_or(&context.config.serve.listen).address()?;
        if !address.ip().is_loopback() {
            context.note(&format!(
                "{address} is reachable from other machines, and the connection is not encrypted: put a TLS proxy in \
                 front of it, and allow its name with --allow-host."
            ))?;
        }
        let hosts = context.config.serve.hosts.iter().chain(&self.allow_host).cloned().collect();
        let studio = Studio::new(timeline.clone(), context.setup(), context.directory().to_owned())?;
        let options = Options {
            timeline: timeline.clone(),
            setup: context.setup(),
            provider_environment: ProviderEnvironment::from_process,
            folder: context.directory().to_owned(),
            token,
            hosts,
            limits: Limits::default(),
            pages: Some(Pages { routes: studio.routes(), home: HOME }),
        };
        let interruptible = InterruptGuard::new()?;
        let (place, mut listening, mut printed) = (AddressFile::of(context)?, None, Ok(()));
        let syncing = sync_while_serving(context, interruptible.cancel())?;
        let served = retake_api::serve(options, address, interruptible.cancel(), |address| {
            listening = Some(address);
            let noted = place.write(address).or_else(|error| {
                context.note(&format!("`retake serve link` will not find this server: {error}"))
            });
            printed = noted.and_then(|()| print_address(context, address, &link));
            if self.open {
                printed = std::mem::replace(&mut printed, Ok(()))
                    .and_then(|()| open_browser(context, address, &link));
            }
        });
        if let Some(address) = listening {
            place.remove(address);
        }
        // They end by themselves, after a request that is under way.
        drop(syncing);
        served?;
        printed
    }
}

/// Exchanges with each automatic remote, in a thread of its own, as long as the server runs.
fn sync_while_serving(context: &Context, stop: &Cancel) -> Result<Vec<std::thread::JoinHandle<()>>, Failure> {
    if !context.config.sync.automatic || environment("RETAKE_SYNC").is_some_and(|value| value == "off") {
        return Ok(Vec::new());
    }
    let remotes = context.remotes()?;
    let automatic = remotes.list()?.into_iter().filter(|remote| remote.automatic);
    let start = |config: RemoteConfig| {
        let (timeline, remotes, stop) = (context.timeline()?.clone(), remotes.clone(), stop.clone());
        Ok(std::thread::spawn(move || {
            while !stop.is_set() {
                match open_remote(&config, OpenMode::Existing) {
                    Ok(remote) => {
                        let session = Session {
                            timeline: &timeline,
                            remotes: &remotes,
                            name: &config.name,
                            remote: &*remote,
                        };
                        // Failures of rounds are stored, and shown by `sync status`.
                        if let Err(error) = watch(&session, Duration::MAX, &|| stop.is_set(), &mut |_| {}) {
                            warn!(%error, remote = config.name, "failed to synchronize");
                        }
                    }
                    Err(failure) => {
                        warn!(error = failure.message, remote = config.name, "failed to synchronize");
                    }
                }
                // Another process is at work, or the remote is away.
                for _ in 0..100 {
                    if stop.is_set() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }))
    };
    automatic.map(start).collect()
}

fn print_address(context: &Context, address: SocketAddr, link: &str) -> Result<(), Failure> {
    let place = format!("http://{}", reachable(address));
    let answer = json!({"address": address, "url": place, "link": format!("{place}{link}")});
    context.answer(&answer, |out, styles| {
        let (strong, muted) = (styles.title, styles.muted);
        writeln!(out, "Listening on {strong}{place}{strong:#}")?;
        writeln!(out, "  in a browser   {place}{link}  {muted}(single-use, valid for ten minutes){muted:#}")?;
        writeln!(out, "  for programs   Authorization: Bearer $(retake serve token)")?;
        writeln!(out, "{muted}Ctrl-C stops the server; running turns can be resumed.{muted:#}")?;
        out.flush()
    })
}

fn open_browser(context: &Context, address: SocketAddr, link: &str) -> Result<(), Failure> {
    match open::that_detached(format!("http://{}{link}", reachable(address))) {
        Ok(()) => Ok(()),
        Err(error) => context.note(&format!("Could not open a browser ({error}); open the link yourself.")),
    }
}

impl LogFormat {
    /// Installs the logger of this format, or of the one that suits standard error.
    pub(crate) fn install_or_default(chosen: Option<Self>) {
        let usual = if std::io::stderr().is_terminal() { Self::Text } else { Self::Json };
        chosen.unwrap_or(usual).install();
    }

    /// Installs the logger.
    fn install(self) {
        let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
        // An already installed logger stays.
        let _ = match self {
            Self::Text => builder.with_ansi(false).compact().try_init(),
            Self::Json => builder.json().flatten_event(true).try_init(),
            Self::Off => return,
        };
    }
}
