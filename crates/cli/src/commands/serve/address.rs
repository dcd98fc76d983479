//! The file with the address of a running server, next to its token.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use retake_api::reachable;

use crate::context::Context;
use crate::failure::Failure;

/// A local server responds much faster.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The file with the server's address. A killed server leaves it behind, so readers must check that the server
/// responds.
pub(super) struct AddressFile(PathBuf);

impl AddressFile {
    pub(super) fn of(context: &Context) -> Result<Self, Failure> {
        Ok(Self(context.timeline()?.store().folder().join("serve.address")))
    }

    /// Records the address. Without it, only `serve link` is affected.
    pub(super) fn write(&self, address: SocketAddr) -> std::io::Result<()> {
        let aside = self.0.with_extension(format!("address-{}", std::process::id()));
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside);
        let placed = written
            .and_then(|mut file| writeln!(file, "{address}"))
            .and_then(|()| std::fs::rename(&aside, &self.0));
        if placed.is_err() {
            // The file is partial or missing; removing it is best effort.
            let _ = std::fs::remove_file(&aside);
        }
        placed
    }

    /// Removes the address of a stopped server, unless another server has replaced it.
    pub(super) fn remove(&self, address: SocketAddr) {
        if self.read() == Some(address) {
            // A leftover file is harmless: the server does not respond.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// The address of the running server, if any.
    pub(super) fn running_server(&self) -> Option<SocketAddr> {
        self.read()
            .filter(|address| TcpStream::connect_timeout(&reachable(*address), CONNECT_TIMEOUT).is_ok())
    }

    fn read(&self) -> Option<SocketAddr> {
        std::fs::read_to_string(&self.0).ok()?.trim().parse().ok()
    }
}
