//! SHA-1 for git's object names. It only decides whether files, index and commit agree.

/// Git's object name for the content of a file.
pub(super) fn blob(bytes: &[u8]) -> [u8; 20] {
    object("blob", bytes)
}

/// Git's object name for a folder.
pub(super) fn tree(bytes: &[u8]) -> [u8; 20] {
    object("tree", bytes)
}

fn object(kind: &str, bytes: &[u8]) -> [u8; 20] {
    let mut message = format!("{kind} {}\0", bytes.len()).into_bytes();
    message.extend(bytes);
    digest(message)
}

fn digest(mut message: Vec<u8>) -> [u8; 20] {
    let bits = message.len() as u64 * 8;
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend(bits.to_be_bytes());
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in message.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let mut mixed = state;
        for (round, word) in words.iter().enumerate() {
            let [first, second, third, fourth, fifth] = mixed;
            let (choice, constant) = match round / 20 {
                0 => ((second & third) | (!second & fourth), 0x5A82_7999),
                1 => (second ^ third ^ fourth, 0x6ED9_EBA1),
                2 => ((second & third) | (second & fourth) | (third & fourth), 0x8F1B_BCDC),
                _ => (second ^ third ^ fourth, 0xCA62_C1D6_u32),
            };
            let sum = first.rotate_left(5).wrapping_add(choice).wrapping_add(fifth);
            let next = sum.wrapping_add(constant).wrapping_add(*word);
            mixed = [next, first, second.rotate_left(30), third, fourth];
        }
        for (kept, mixed) in state.iter_mut().zip(mixed) {
            *kept = kept.wrapping_add(mixed);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_git_gives() {
        let check = |bytes: &[u8], expected: &str| {
            let digits = |at: usize| u8::from_str_radix(&expected[2 * at..2 * at + 2], 16).expect("digits");
            assert_eq!(blob(bytes), std::array::from_fn(digits), "{expected}");
        };
        check(b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        check(b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a");
    }
}
