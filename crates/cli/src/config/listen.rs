//! The address to listen on.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::Deserialize;

use crate::failure::{Code, Failure};

/// An address, or a host name with a port. Names are resolved when needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress(String);

impl ListenAddress {
    /// Resolves the address. Of several, prefers IPv4, which clients try first.
    pub(crate) fn address(&self) -> Result<SocketAddr, Failure> {
        let failed = |why: String| Failure::new(Code::Usage, format!("cannot listen on {}: {why}", self.0));
        let found: Vec<SocketAddr> =
            self.0.to_socket_addrs().map_err(|error| failed(error.to_string()))?.collect();
        let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
        first.copied().ok_or_else(|| failed("the name has no address".to_owned()))
    }
}

impl Default for ListenAddress {
    fn default() -> Self {
        Self("127.0.0.1:7878".to_owned())
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = || {
            let (name, port) = text.rsplit_once(':')?;
            let fits = |character: char| character.is_ascii_alphanumeric() || "-.".contains(character);
            (!name.is_empty() && name.chars().all(fits) && port.parse::<u16>().is_ok()).then_some(())
        };
        if text.parse::<SocketAddr>().is_ok() || named().is_some() {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} is not an address such as 127.0.0.1:7878, [::1]:7878 or localhost:7878"))
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_or_a_name_with_a_port() {
        let check = |text: &str, expected: Option<&str>| {
            let found = text.parse::<ListenAddress>().ok().and_then(|listen| listen.address().ok());
            assert_eq!(found.map(|address| address.to_string()).as_deref(), expected, "{text}");
        };
        check("127.0.0.1:7878", Some("127.0.0.1:7878"));
        check("[::1]:1", Some("[::1]:1"));
        check("0.0.0.0:0", Some("0.0.0.0:0"));
        check("localhost:7878", Some("127.0.0.1:7878"));
        for none in
            ["", "7878", "localhost", ":7878", "localhost:", "localhost:http", "::1:80", "a b:80", "x:99999"]
        {
            check(none, None);
        }
    }
}
