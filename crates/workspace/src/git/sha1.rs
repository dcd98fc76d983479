//! Object ids of git (SHA-1), to compare files, index and commit. Nothing relies on them for security.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// The id of a file's content.
pub(super) fn blob(bytes: &[u8]) -> [u8; 20] {
    object("blob", bytes)
}

/// The id of an encoded folder.
pub(super) fn tree(bytes: &[u8]) -> [u8; 20] {
    object("tree", bytes)
}

/// The id of an object of any kind.
pub(super) fn object(kind: &str, bytes: &[u8]) -> [u8; 20] {
    let mut hash = ObjectHash::new(kind, bytes.len() as u64);
    hash.update(bytes);
    hash.finish()
}

/// The id of an object whose content arrives in pieces.
pub(super) struct ObjectHash(Context);

impl ObjectHash {
    pub(super) fn new(kind: &str, size: u64) -> Self {
        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        context.update(format!("{kind} {size}\0").as_bytes());
        Self(context)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> [u8; 20] {
        self.0.finish().as_ref().try_into().expect("SHA-1 has 20 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_match_those_of_git() {
        let check = |bytes: &[u8], expected: &str| {
            let digits = |at: usize| u8::from_str_radix(&expected[2 * at..2 * at + 2], 16).expect("digits");
            assert_eq!(blob(bytes), std::array::from_fn(digits), "{expected}");
        };
        check(b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        check(b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a");
    }
}
