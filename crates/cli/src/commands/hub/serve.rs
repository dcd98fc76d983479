//! `retake hub serve`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use retake_hub::http::{ServeError, ServeOptions};
use retake_hub::service::Settings;
use serde_json::json;

use super::{HubLocation, parse_size};
use crate::agent::InterruptGuard;
use crate::commands::serve::LogFormat;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Serve devices until Ctrl-C or SIGTERM.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake hub serve
  retake hub serve --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --behind-proxy

The connection is not encrypted: put a proxy with TLS in front of it, as docs/hub.md shows. With --database, several \
processes share one Postgres. SIGTERM ends requests in \
order: those under way are answered.")]
pub(crate) struct Arguments {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7979")]
    listen: SocketAddr,
    /// Address of Prometheus metrics, at /metrics [default: none].
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Take the address of a client from X-Forwarded-For: only with a proxy in front.
    #[arg(long)]
    behind_proxy: bool,
    /// Quota of new spaces, such as 10G.
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = parse_size)]
    quota: u64,
    /// The most connections of devices.
    #[arg(long, value_name = "COUNT", default_value_t = 4096)]
    connections: usize,
    /// The most requests that work at a time, and connections to Postgres.
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    workers: usize,
    /// Log format on standard error [default: text on a terminal, otherwise json].
    #[arg(long, value_enum, value_name = "HOW")]
    log: Option<LogFormat>,
}

impl Arguments {
    pub(super) fn run(self, location: &HubLocation, context: &Context) -> Result<(), Failure> {
        LogFormat::install_or_default(self.log);
        let settings = Settings { quota: self.quota, ..Settings::default() };
        let workers = self.workers.max(1);
        let hub = Arc::new(location.open(workers, settings)?);
        if !self.listen.ip().is_loopback() {
            context.note(&format!(
                "{} is reachable from other machines, and the connection is not encrypted: put a proxy with TLS in front \
                 of it.",
                self.listen
            ))?;
        }
        let options = ServeOptions {
            address: self.listen,
            metrics: self.metrics,
            connections: self.connections.max(1),
            workers,
            behind_proxy: self.behind_proxy,
        };
        let interruptible = InterruptGuard::new()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (cancel, stopper) = (interruptible.cancel().clone(), Arc::clone(&stop));
        let watcher = std::thread::spawn(move || {
            while !stopper.load(Ordering::SeqCst) && !cancel.wait_timeout(Duration::from_millis(50)) {}
            stopper.store(true, Ordering::SeqCst);
        });
        let mut printed = Ok(());
        let served = retake_hub::http::serve(&hub, &options, &stop, |address, metrics| {
            printed = print_address(context, address, metrics);
        });
        stop.store(true, Ordering::SeqCst);
        let _ = watcher.join();
        served.map_err(|error| match error {
            ServeError::Listen { .. } => Failure::refused(error),
            ServeError::System(_) => Failure::new(Code::Failed, error),
        })?;
        printed
    }
}

fn print_address(context: &Context, address: SocketAddr, metrics: Option<SocketAddr>) -> Result<(), Failure> {
    let answer = json!({"address": address, "url": format!("http://{address}"), "metrics": metrics});
    context.answer(&answer, |out, styles| {
        let strong = styles.title;
        writeln!(out, "Listening on {strong}http://{address}{strong:#}")?;
        if let Some(metrics) = metrics {
            writeln!(out, "  metrics   http://{metrics}/metrics")?;
        }
        out.flush()
    })
}
