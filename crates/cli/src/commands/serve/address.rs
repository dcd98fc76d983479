//! Where the server of a store listens: beside its token, for as long as it runs.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use retake_api::reachable;

use crate::context::Context;
use crate::failure::Failure;

/// A server on this machine answers sooner.
const SOON: Duration = Duration::from_millis(500);

/// The file that says where the server listens. A server that was killed leaves it behind, so that whoever reads it asks
/// whether somebody is there.
pub(super) struct AddressFile(PathBuf);

impl AddressFile {
    pub(super) fn of(context: &Context) -> Result<Self, Failure> {
        Ok(Self(context.timeline()?.store().folder().join("serve.address")))
    }

    /// Says where the server is. Without it only `serve link` knows less.
    pub(super) fn write(&self, address: SocketAddr) -> std::io::Result<()> {
        let aside = self.0.with_extension(format!("address-{}", std::process::id()));
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside);
        let placed = written
            .and_then(|mut file| writeln!(file, "{address}"))
            .and_then(|()| std::fs::rename(&aside, &self.0));
        if placed.is_err() {
            // What is half written is of no use, and there may be nothing.
            let _ = std::fs::remove_file(&aside);
        }
        placed
    }

    /// The server at that address is gone. Another one may have said where it is meanwhile.
    pub(super) fn remove(&self, address: SocketAddr) {
        if self.read() == Some(address) {
            // Whoever reads it finds nobody there, which says the same.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Where a server listens now.
    pub(super) fn answering(&self) -> Option<SocketAddr> {
        self.read().filter(|address| TcpStream::connect_timeout(&reachable(*address), SOON).is_ok())
    }

    fn read(&self) -> Option<SocketAddr> {
        std::fs::read_to_string(&self.0).ok()?.trim().parse().ok()
    }
}
