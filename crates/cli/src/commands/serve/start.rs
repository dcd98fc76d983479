//! `retake serve`: starts the server.

use std::io::IsTerminal;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use retake_agent::provider::config::Surroundings;
use retake_api::{Limits, Options, Pages, ServeError, TicketError, TokenError, new_ticket, reachable};
use retake_studio::{HOME, Studio};
use serde_json::json;

use super::address::AddressFile;
use super::token_file;
use crate::agent::Interruptible;
use crate::config::Listen;
use crate::context::Context;
use crate::failure::{Code, Failure};

#[derive(Args)]
pub(crate) struct Start {
    /// Address to listen on; port 0 picks a free one [default: serve.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,
    /// Additional host name to accept: NAME or NAME:PORT; can be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Open the studio in your browser, using a running server if there is one.
    #[arg(long)]
    open: bool,
    /// Log format on standard error [default: text on a terminal, otherwise json].
    #[arg(long, value_enum, value_name = "HOW")]
    log: Option<Log>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Log {
    /// For people.
    Text,
    /// For programs: one JSON object per line.
    Json,
    /// No log.
    Off,
}

impl Start {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let usual = if std::io::stderr().is_terminal() { Log::Text } else { Log::Json };
        self.log.unwrap_or(usual).begin();
        let token = token_file(context)?;
        let secret = token.read_or_make()?;
        let timeline = context.timeline()?.clone();
        let link = new_ticket(&timeline.store().ledger()?, &secret, timeline.now())?;
        let running = AddressFile::of(context)?.answering().filter(|_| self.open && self.listen.is_none());
        if let Some(address) = running {
            context.remark("A server is already running; opening its studio.")?;
            tell(context, address, &link)?;
            return browse(context, address, &link);
        }
        let address = self.listen.as_ref().unwrap_or(&context.config.serve.listen).address()?;
        if !address.ip().is_loopback() {
            context.remark(&format!(
                "{address} is reachable from other machines, and the connection is not encrypted: put a TLS proxy in \
                 front of it, and allow its name with --allow-host."
            ))?;
        }
        let hosts = context.config.serve.hosts.iter().chain(&self.allow_host).cloned().collect();
        let studio = Studio::new(timeline.clone(), context.setup(), context.directory().to_owned())?;
        let options = Options {
            timeline: timeline.clone(),
            setup: context.setup(),
            around: Surroundings::of_process,
            folder: context.directory().to_owned(),
            token,
            hosts,
            limits: Limits::default(),
            pages: Some(Pages { routes: studio.routes(), home: HOME }),
        };
        let interruptible = Interruptible::new()?;
        let (place, mut listening, mut told) = (AddressFile::of(context)?, None, Ok(()));
        let served = retake_api::serve(options, address, interruptible.cancel(), |address| {
            listening = Some(address);
            let noted = place.write(address).or_else(|error| {
                context.remark(&format!("`retake serve link` will not find this server: {error}"))
            });
            told = noted.and_then(|()| tell(context, address, &link));
            if self.open {
                told = std::mem::replace(&mut told, Ok(())).and_then(|()| browse(context, address, &link));
            }
        });
        if let Some(address) = listening {
            place.remove(address);
        }
        served?;
        told
    }
}

fn tell(context: &Context, address: SocketAddr, link: &str) -> Result<(), Failure> {
    let place = format!("http://{}", reachable(address));
    let answer = json!({"address": address, "url": place, "link": format!("{place}{link}")});
    context.answer(&answer, |out, styles| {
        let (strong, muted) = (styles.title, styles.muted);
        writeln!(out, "Listening on {strong}{place}{strong:#}")?;
        writeln!(out, "  in a browser   {place}{link}  {muted}(single-use, valid for ten minutes){muted:#}")?;
        writeln!(out, "  for programs   Authorization: Bearer $(retake serve token)")?;
        writeln!(out, "{muted}Ctrl-C stops the server; running turns are recorded as interrupted.{muted:#}")?;
        out.flush()
    })
}

fn browse(context: &Context, address: SocketAddr, link: &str) -> Result<(), Failure> {
    match open::that_detached(format!("http://{}{link}", reachable(address))) {
        Ok(()) => Ok(()),
        Err(error) => context.remark(&format!("Could not open a browser ({error}); open the link yourself.")),
    }
}

impl Log {
    /// Installs the logger.
    fn begin(self) {
        let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
        // An already installed logger stays.
        let _ = match self {
            Self::Text => builder.with_ansi(false).compact().try_init(),
            Self::Json => builder.json().flatten_event(true).try_init(),
            Self::Off => return,
        };
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Listen { .. } => Self::new(
                Code::Refused,
                format!("{error}. Another server may be running; `--listen 127.0.0.1:0` picks a free port"),
            ),
            other => Self::new(Code::Failed, other),
        }
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        Self::new(Code::Storage, error)
    }
}

impl From<TicketError> for Failure {
    fn from(error: TicketError) -> Self {
        match error {
            TicketError::Dice(error) => error.into(),
            TicketError::Store(error) => error.into(),
        }
    }
}
