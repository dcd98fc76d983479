//! Limits for path patterns. Patterns come from models, clients and ignore files of untrusted projects, and the
//! compiler recurses for each nested brace: without a limit, a pattern can overflow the stack.

/// Maximum length in bytes. No path that could match is longer.
const MAX_LENGTH: usize = 4096;
/// Maximum number of opening braces. Counting all of them bounds their depth, including escaped ones and those in
/// classes.
const MAX_BRACES: usize = 32;

/// Why a pattern is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern is too long.
    #[error("the pattern is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The pattern has too many braces.
    #[error("the pattern has more than {MAX_BRACES} opening braces")]
    TooManyBraces,
}

/// Checks the size of a pattern before it is compiled.
pub fn check(text: &str) -> Result<(), PatternError> {
    if text.len() > MAX_LENGTH {
        return Err(PatternError::TooLong);
    }
    if text.bytes().filter(|byte| *byte == b'{').count() > MAX_BRACES {
        return Err(PatternError::TooManyBraces);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_limited_in_length_and_depth() {
        let nested = |depth: usize| "{".repeat(depth) + "a" + &"}".repeat(depth);
        assert_eq!(check("src/**/*.{ts,tsx}"), Ok(()));
        assert_eq!(check(&nested(32)), Ok(()));
        assert_eq!(check(&nested(33)), Err(PatternError::TooManyBraces));
        assert_eq!(check(&"{[}]".repeat(33)), Err(PatternError::TooManyBraces));
        assert_eq!(check(&"a".repeat(4096)), Ok(()));
        assert_eq!(check(&"a".repeat(4097)), Err(PatternError::TooLong));
    }
}
