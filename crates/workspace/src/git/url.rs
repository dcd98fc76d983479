//! Removes credentials from the addresses of remotes.
//!
//! Addresses are compared, shown and perhaps synchronised, so passwords and tokens must not survive. Without them, the
//! address also stays the same when a token is renewed.

/// The address without user names, passwords and tokens; `None` if it is not a plain line of text.
pub(super) fn without_credentials(address: &str) -> Option<String> {
    if address.is_empty() || address.len() > 4096 || address.chars().any(char::is_control) {
        return None;
    }
    let Some((scheme, rest)) = address.split_once("://") else {
        return Some(short_form(address).to_owned());
    };
    let rest = if is_web(scheme) { rest.split(['?', '#']).next().unwrap_or_default() } else { rest };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if let Some((user, host)) = host.rsplit_once('@') {
        // The user of an SSH address is part of the destination; that of a web address can be a token.
        let user = user.split(':').next().unwrap_or_default();
        let user =
            if scheme.ends_with("ssh") && !user.is_empty() { format!("{user}@") } else { String::new() };
        return Some(format!("{scheme}://{user}{host}{path}"));
    }
    // A slash in a password ends the host too early; the apparent port is then not a number.
    let port_is_wrong = host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.starts_with('[') && !port.bytes().all(|byte| byte.is_ascii_digit())
    });
    match path.rsplit_once('@') {
        Some((_, host_and_path)) if port_is_wrong => Some(format!("{scheme}://{host_and_path}")),
        _ => Some(format!("{scheme}://{host}{path}")),
    }
}

/// `user@host:path` keeps its user; with a password, which SSH does not accept, it loses both.
fn short_form(address: &str) -> &str {
    let first = address.split('/').next().unwrap_or_default();
    match first.split_once('@') {
        Some((user, _)) if user.contains(':') => &address[user.len() + 1..],
        _ => address,
    }
}

fn is_web(scheme: &str) -> bool {
    // Also behind a helper, as in `helper::https`.
    let scheme = scheme.rsplit(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_urls() {
        for (address, expected) in [
            ("https://example.org/a.git", "https://example.org/a.git"),
            ("https://user:secret@example.org/a.git", "https://example.org/a.git"),
            ("https://token@example.org/a.git", "https://example.org/a.git"),
            ("HTTPS://token@example.org:8443/a@b.git", "HTTPS://example.org:8443/a@b.git"),
            ("https://user:se@cret@example.org/a", "https://example.org/a"),
            ("https://user:se/cret@example.org/a", "https://example.org/a"),
            ("https://example.org:80/@scope/a", "https://example.org:80/@scope/a"),
            ("https://[::1]:80/@scope/a", "https://[::1]:80/@scope/a"),
            ("https://example.org/a?access_token=secret#x", "https://example.org/a"),
            ("helper::https://user:secret@example.org/a", "helper::https://example.org/a"),
            ("ftp://user:secret@example.org/a", "ftp://example.org/a"),
            ("ssh://git@example.org/a", "ssh://git@example.org/a"),
            ("ssh://git:secret@example.org:22/a", "ssh://git@example.org:22/a"),
            ("git+ssh://git:secret@example.org/a", "git+ssh://git@example.org/a"),
            ("git@example.org:a/b.git", "git@example.org:a/b.git"),
            ("user:secret@example.org:a/b.git", "example.org:a/b.git"),
            ("/srv/git/a@b.git", "/srv/git/a@b.git"),
            ("../a", "../a"),
            ("https://", "https://"),
        ] {
            assert_eq!(without_credentials(address).as_deref(), Some(expected), "{address:?}");
        }
    }

    #[test]
    fn urls_other_than_one_line_of_text_are_refused() {
        for address in ["", "a\nb", "\u{1b}]52;c;x\u{7}", "a\u{9b}31m", &"a".repeat(5000)] {
            assert_eq!(without_credentials(address), None, "{address:?}");
        }
    }
}
