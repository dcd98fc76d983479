//! Paths that rules deny to tools, and path patterns.

use globset::{Candidate, GlobBuilder, GlobSet};
use retake_workspace::pattern;

/// A path pattern. Without a slash it matches the file name at any depth; a leading slash anchors it to the
/// project folder.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    matcher: GlobSet,
    last_name: bool,
    everything: bool,
}

/// Case sensitivity, since some file systems ignore case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseSensitivity {
    Matters,
    Ignored,
}

impl PathPattern {
    /// Parses a pattern.
    pub(crate) fn new(text: &str, case: CaseSensitivity) -> Result<Self, String> {
        let inner = text.strip_prefix("./").unwrap_or(text).trim_end_matches('/');
        let tied = inner.strip_prefix('/').unwrap_or(inner);
        pattern::check(text).map_err(|error| error.to_string())?;
        let compiled = GlobBuilder::new(tied)
            .literal_separator(true)
            .case_insensitive(case == CaseSensitivity::Ignored)
            .build()
            .and_then(|glob| GlobSet::builder().add(glob).build());
        let matcher = compiled.map_err(|error| error.kind().to_string())?;
        let everything = matches!(tied, "*" | "**" | "." | "**/*");
        Ok(Self { matcher, last_name: !inner.contains('/'), everything })
    }

    /// Whether it matches a path.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let part = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) if self.last_name => &path[slash + 1..],
            _ => path,
        };
        self.matcher.is_match_candidate(&Candidate::from_bytes(part))
    }

    /// Whether it matches a path or one of its parent folders.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index);
        self.everything || ends.chain([path.len()]).any(|end| self.matches(&path[..end]))
    }

    /// Whether it matches everything.
    pub(crate) fn covers_everything(&self) -> bool {
        self.everything
    }
}

/// Denied paths, each for one tool or all.
#[derive(Clone, Debug, Default)]
pub struct DeniedPaths(Vec<(Option<&'static str>, PathPattern)>);

impl DeniedPaths {
    pub(crate) fn new(patterns: Vec<(Option<&'static str>, PathPattern)>) -> Self {
        Self(patterns)
    }

    /// Whether any path is denied to a tool.
    pub(super) fn concerns(&self, tool: &str) -> bool {
        self.0.iter().any(|(closed_to, _)| closed_to.is_none_or(|name| name == tool))
    }

    /// Whether a path is denied to a tool.
    pub(super) fn holds(&self, tool: &str, path: &[u8]) -> bool {
        let closes = |(closed_to, pattern): &(Option<&str>, PathPattern)| {
            closed_to.is_none_or(|name| name == tool) && pattern.covers(path)
        };
        self.0.iter().any(closes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_folder_denies_everything_below_it() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let pattern = PathPattern::new(pattern, CaseSensitivity::Matters).expect("a pattern");
            assert_eq!(pattern.covers(path.as_bytes()), expected, "{pattern:?} {path}");
        };
        check("secrets", "secrets", true);
        check("secrets/", "secrets/key", true);
        check("secrets", "a/secrets/b/c", true);
        check("/secrets", "a/secrets", false);
        check("/secrets", "secrets/a", true);
        check("secrets", "secrets2/a", false);
        check("src/**", "src/a/b", true);
        check("src/*", "src/a/b", true);
        check("src/**", "source/a", false);
        check("*.pem", "deep/down/key.pem", true);
        check("**", "a/b", true);
        check("*", "a/b", true);
        check(".env", "a/.env", true);
        check(".env", ".ENV", false);
        let whatever_case = PathPattern::new(".env", CaseSensitivity::Ignored).expect("a pattern");
        assert!(whatever_case.covers(b"a/.ENV"));
        assert!(PathPattern::new("a[", CaseSensitivity::Matters).is_err());
    }
}
