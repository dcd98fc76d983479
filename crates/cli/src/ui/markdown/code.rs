//! Code in colours, by what its words mean.
//!
//! The grammars know hundreds of kinds of words; a terminal has sixteen colours. The few kinds below are what helps
//! a reader; the rest looks like any text.

use std::str::FromStr;
use std::sync::LazyLock;

use anstyle::Style;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use super::CODE_LINE_BYTES;
use super::flow::Piece;
use crate::ui::style::Styles;

/// Loaded once some code is shown, since that takes a moment.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// The lines of the code in their colours, or nothing if its language is not known.
pub(super) fn colour(language: &str, code: &str, styles: &Styles) -> Option<Vec<Vec<Piece>>> {
    if code.lines().any(|line| line.len() > CODE_LINE_BYTES) {
        return None;
    }
    let syntax = SYNTAXES.find_syntax_by_token(alias(language))?;
    let palette = Palette::new(styles);
    let mut state = ParseState::new(syntax);
    let mut scopes = ScopeStack::new();
    let mut lines = Vec::new();
    for line in code.split_inclusive('\n') {
        let changes = state.parse_line(line, &SYNTAXES).ok()?;
        let solid = line.trim_end_matches('\n');
        let mut pieces = Vec::new();
        let mut start = 0;
        for (at, change) in changes {
            let at = at.min(solid.len());
            pieces.push((palette.of(&scopes), solid[start..at].to_owned()));
            start = at;
            scopes.apply(&change).ok()?;
        }
        pieces.push((palette.of(&scopes), solid[start..].to_owned()));
        pieces.retain(|(_, text)| !text.is_empty());
        lines.push(pieces);
    }
    Some(lines)
}

/// What people call a language, where its grammar goes by another name.
fn alias(language: &str) -> &str {
    match language {
        "typescript" | "ts" | "tsx" | "jsx" | "mjs" => "js",
        "shell" | "console" | "zsh" => "sh",
        "jsonc" | "json5" => "json",
        "c++" => "cpp",
        other => other,
    }
}

struct Palette {
    kinds: Vec<(Scope, Style)>,
}

impl Palette {
    fn new(styles: &Styles) -> Self {
        let kinds = [
            ("comment", styles.muted),
            ("string", styles.code_text),
            ("constant", styles.code_value),
            ("keyword.operator", Style::new()),
            ("keyword", styles.code_keyword),
            ("storage", styles.code_keyword),
            ("entity.name.tag", styles.code_keyword),
            ("entity.name", styles.code_name),
            ("support.function", styles.code_name),
            ("markup.inserted", styles.added),
            ("markup.deleted", styles.removed),
        ];
        let kinds = kinds.into_iter().filter_map(|(name, style)| Some((Scope::from_str(name).ok()?, style)));
        Self { kinds: kinds.collect() }
    }

    /// The innermost kind that has a colour decides.
    fn of(&self, scopes: &ScopeStack) -> Style {
        let known = |scope: &Scope| self.kinds.iter().find(|(kind, _)| kind.is_prefix_of(*scope));
        scopes.as_slice().iter().rev().find_map(known).map_or_else(Style::new, |(_, style)| *style)
    }
}
