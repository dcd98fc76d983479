//! Finds the secrets in a header value or URL: servers may quote a key alone or together with its
//! surroundings.
//!
//! ```text
//!   Bearer KEY                      KEY
//!   Basic dXNlcjpwYXNz              dXNlcjpwYXNz, user:pass, user, pass
//!   session=KEY; theme=dark         KEY
//!   Signature id="A", sig="B"       A, B
//!   https://host/v1?api-key=KEY     KEY
//! ```

use reqwest::Url;

use super::Secret;

/// Minimum length of a key in a header whose name does not suggest a secret.
const KEY_LENGTH: usize = 16;

/// All secrets in a header value, including the whole value. The caller ignores those that are too short.
pub(super) fn of(name: &str, value: &str) -> Vec<Secret> {
    let mut found = vec![value.to_owned()];
    let tokens: Vec<&str> = value
        .split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';'))
        .filter(|token| !token.is_empty())
        .collect();
    for (index, token) in tokens.iter().enumerate() {
        // The first of several words is the scheme.
        let scheme =
            index == 0 && tokens.len() > 1 && token.chars().all(|letter| letter.is_ascii_alphabetic());
        if !scheme {
            parts(token, &mut found);
        }
    }
    if !is_secret_name(name) {
        found = found
            .into_iter()
            .enumerate()
            .filter(|(n, part)| *n == 0 || is_like_a_key(part))
            .map(|(_, part)| part)
            .collect();
    }
    found.iter().map(|part| Secret::new(part)).collect()
}

/// All secrets in a URL: user and password, and query values whose name or form suggests a secret.
pub(super) fn of_address(address: &str) -> Vec<Secret> {
    let Ok(url) = Url::parse(address.trim()) else { return Vec::new() };
    let mut found = vec![url.username().to_owned(), url.password().unwrap_or_default().to_owned()];
    // Both encoded and decoded, because a server may quote either.
    let written = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let query_pairs = url.query_pairs();
    let pairs = written.map(|(name, value)| (name.into(), value.into())).chain(query_pairs);
    for (name, value) in pairs {
        if is_secret_name(&name) || is_like_a_key(&value) {
            parts(&value, &mut found);
        }
    }
    found.iter().map(|part| Secret::new(part)).collect()
}

/// Whether the query of a URL has a value with a secret name.
pub(super) fn has_secret_query(url: &Url) -> bool {
    url.query_pairs().any(|(name, value)| is_secret_name(&name) && !value.is_empty())
}

/// Whether the name of a header or query value suggests a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    ["auth", "key", "token", "cookie", "secret", "password", "credential", "signature"]
        .iter()
        .any(|word| name.contains(word))
}

fn is_like_a_key(part: &str) -> bool {
    let has = |test: fn(&char) -> bool| part.chars().any(|letter| test(&letter));
    part.len() >= KEY_LENGTH && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

fn parts(token: &str, found: &mut Vec<String>) {
    let quotes: &[char] = &['"', '\''];
    let token = token.trim_matches(quotes);
    found.push(token.to_owned());
    // `name=value`; a trailing `=` is only base64 padding.
    if let Some((_, value)) = token.split_once('=').filter(|(_, value)| value.contains(|c| c != '=')) {
        found.push(value.trim_matches(quotes).to_owned());
    }
    credentials(token, found);
    if let Some(decoded) = decoded(token) {
        found.push(decoded.clone());
        credentials(&decoded, found);
    }
}

/// `user:password`; either may be the key.
fn credentials(token: &str, found: &mut Vec<String>) {
    if let Some((user, password)) = token.split_once(':') {
        found.extend([user.to_owned(), password.to_owned()]);
    }
}

/// Decodes base64, if the result is text with a colon, as in `Basic` authorization.
fn decoded(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len() * 3 / 4);
    let (mut bit_buffer, mut bits) = (0_u32, 0);
    for letter in token.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (bit_buffer, bits) = ((bit_buffer << 6 | u32::from(six)) & 0xffff, bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((bit_buffer >> bits & 0xff) as u8);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| text.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redacts the secrets of a header in a text.
    fn redact(name: &str, value: &str, text: &str) -> String {
        let mut secrets = of(name, value);
        Secret::longest_first(&mut secrets);
        secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text).into_owned())
    }

    #[test]
    fn each_secret_in_a_header_is_removed_separately() {
        let check = |name: &str, value: &str, text: &str, expected: &str| {
            assert_eq!(redact(name, value, text), expected, "{name}: {value}");
        };
        check("Authorization", "Bearer sk-abcdef", "bad key sk-abcdef", "bad key [key]");
        check("Authorization", "Bearer sk-abcdef", "Bearer sk-abcdef", "[key]");
        check("Authorization", "Bearer sk-abcdef", "use Bearer", "use Bearer");
        // user-1:pass-word
        let basic = "Basic dXNlci0xOnBhc3Mtd29yZA==";
        check("Authorization", basic, "dXNlci0xOnBhc3Mtd29yZA==", "[key]");
        check("Authorization", basic, "user-1:pass-word", "[key]");
        check("Authorization", basic, "no user user-1 with pass-word", "no user [key] with [key]");
        check("Cookie", "session=abc-def; theme=dark-mode", "session abc-def", "session [key]");
        check("X-Api-Key", "id=\"first-part\", sig='second-part'", "first-part second-part", "[key] [key]");
        check("X-Trace", "team platform, build 7", "platform", "platform");
        let address = |address: &str, text: &str, expected: &str| {
            let mut secrets = of_address(address);
            Secret::longest_first(&mut secrets);
            let shown =
                secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text).into_owned());
            assert_eq!(shown, expected, "{address}");
        };
        address("https://a.test/v1?api-key=abc-def", "no key abc-def", "no key [key]");
        address("https://a.test/?x-token=ab%2Fcdefg", "ab/cdefg or ab%2Fcdefg", "[key] or [key]");
        address("https://a.test/?c=0123456789abcdef0", "0123456789abcdef0", "[key]");
        address("https://user-1:pass-word@a.test/", "user-1, pass-word", "[key], [key]");
        address("https://a.test/v1?api-version=2024-06-01", "2024-06-01", "2024-06-01");
        check("X-Own", "v1 0123456789abcdef0", "0123456789abcdef0", "[key]");
    }
}
