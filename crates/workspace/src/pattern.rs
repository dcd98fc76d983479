//! Limits on patterns for paths. They come from models, clients and the ignore files of projects that nobody vouches for,
//! and the library that compiles them recurses once per nested brace: without a limit a pattern can overflow the stack.

/// The longest pattern, in bytes. No path that it could match is longer.
const LONGEST: usize = 4096;
/// The most opening braces in a pattern. Counting all of them bounds their depth, whatever is escaped or in a class.
const MOST_BRACES: usize = 32;

/// Why a pattern is not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternTooLarge {
    /// It is too long.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// It has too many braces.
    #[error("it has more than {MOST_BRACES} opening braces")]
    TooManyBraces,
}

/// Checks that a pattern is small enough to be compiled.
pub fn check(text: &str) -> Result<(), PatternTooLarge> {
    if text.len() > LONGEST {
        return Err(PatternTooLarge::TooLong);
    }
    if text.bytes().filter(|byte| *byte == b'{').count() > MOST_BRACES {
        return Err(PatternTooLarge::TooManyBraces);
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
        assert_eq!(check(&nested(33)), Err(PatternTooLarge::TooManyBraces));
        assert_eq!(check(&"{[}]".repeat(33)), Err(PatternTooLarge::TooManyBraces));
        assert_eq!(check(&"a".repeat(4096)), Ok(()));
        assert_eq!(check(&"a".repeat(4097)), Err(PatternTooLarge::TooLong));
    }
}
