//! The host names of the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The allowed host names.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// Loopback names, and those that the user allows: `name` or `name:port`.
    pub(crate) fn new(allowed: &[String]) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].into_iter().map(str::to_owned);
        Self { names: own.chain(allowed.iter().map(|name| name.to_lowercase())).collect() }
    }

    pub(crate) fn allows(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        let Some(name) = name_of(&host) else { return false };
        self.names.iter().any(|allowed| *allowed == host || *allowed == name)
    }
}

/// The address of a server as seen from its own machine; an unspecified address becomes loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let own = match address.ip() {
        IpAddr::V4(all) if all.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(all) if all.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        one => one,
    };
    SocketAddr::new(own, address.port())
}

/// The host name for an address, without a port.
pub(crate) fn name_of_address(address: SocketAddr) -> String {
    match reachable(address).ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// The name without its port; `None` if it is invalid.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(']') {
        Some(end) => host.split_at(end + 1),
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let digits = port.strip_prefix(':');
    let whole = port.is_empty() || digits.is_some_and(|digits| digits.parse::<u16>().is_ok());
    let fits = |character: char| character.is_ascii_alphanumeric() || "-.:[]".contains(character);
    (whole && !name.is_empty() && name.chars().all(fits)).then_some(name)
}

/// Whether an Origin is the server with that Host.
pub(super) fn is_same(origin: &str, host: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_names_are_accepted() {
        let hosts = Hosts::new(&["studio.example".to_owned(), "hub.example:8443".to_owned()]);
        let check = |host: &str, expected: bool| assert_eq!(hosts.allows(host), expected, "{host}");
        for own in ["localhost", "LOCALHOST:7878", "127.0.0.1:1", "[::1]", "[::1]:7878", "studio.example:80"]
        {
            check(own, true);
        }
        check("hub.example:8443", true);
        for foreign in [
            "",
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "evil.test:7878",
            "localhost:",
            "localhost:99999",
            "localhost:80:80",
            "localhost@evil.test",
            "127.0.0.1/",
            "0.0.0.0",
            "[::2]:80",
            "hub.example",
            "hub.example:1",
            "::1",
        ] {
            check(foreign, false);
        }
    }

    #[test]
    fn the_reported_address_is_allowed() {
        let check = |address: &str, place: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(reachable(address).to_string(), place);
            let hosts = Hosts::new(&[name_of_address(address)]);
            assert!(hosts.allows(place), "{place}");
            assert!(
                !hosts.allows("0.0.0.0:1") && !hosts.allows("[::]:1"),
                "an unspecified address is not a name"
            );
        };
        check("127.0.0.1:1", "127.0.0.1:1");
        check("127.0.0.2:1", "127.0.0.2:1");
        check("0.0.0.0:1", "127.0.0.1:1");
        check("[::]:1", "[::1]:1");
        check("[2001:db8::A]:1", "[2001:db8::a]:1");
        check("192.0.2.7:1", "192.0.2.7:1");
    }

    #[test]
    fn an_origin_must_match_the_host() {
        let check = |origin: &str, host: &str, expected: bool| {
            assert_eq!(is_same(origin, host), expected, "{origin} at {host}");
        };
        check("http://127.0.0.1:7878", "127.0.0.1:7878", true);
        check("https://Studio.example", "studio.example", true);
        for foreign in ["null", "", "http://127.0.0.1", "http://127.0.0.1:3000", "file://", "127.0.0.1:7878"]
        {
            check(foreign, "127.0.0.1:7878", false);
        }
    }
}
