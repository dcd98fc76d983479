//! Random ids and tokens. A token is stored as its hash only.

use data_encoding::{Encoding, Specification};

/// A token: 256 random bits with a prefix that secret scanners find.
pub struct Token(String);

impl Token {
    /// A new token.
    pub fn generate(prefix: &str) -> Self {
        Self(format!("{prefix}_{}", letters().encode(&random::<32>())))
    }

    /// The text, which is shown once.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What is stored.
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.0)
    }
}

/// The hash of a token. It has 256 random bits, so that a plain hash is as good as a slow one.
pub fn hash(token: &str) -> [u8; 32] {
    blake3::derive_key("retake hub token 1", token.as_bytes())
}

/// A new id with 128 random bits.
pub fn new_id() -> String {
    letters().encode(&random::<16>())
}

/// A code that a person reads from one screen and types on another: 8 consonants, 2^34 possibilities.
pub(crate) fn user_code() -> String {
    const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
    let mut code = String::new();
    while code.len() < 8 {
        let [byte] = random::<1>();
        // 240 is a multiple of 20, so that all letters are equally likely.
        if byte < 240 {
            code.push(char::from(LETTERS[usize::from(byte % 20)]));
        }
    }
    code
}

/// A code as typed: without spaces and dashes, in capitals.
pub(crate) fn normalized_code(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_uppercase()).collect()
}

pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

fn letters() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification.encoding().expect("the 32 symbols differ")
}
